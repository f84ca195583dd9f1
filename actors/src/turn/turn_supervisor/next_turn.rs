//! What a supervisor is given with each turn of a run. It names no session, so that messages may carry it.

use ennead_runtime::{session::TurnKey, step1_settings_resolution::LayerText, turn::TurnSetup};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::world::source_files::Fingerprints;

/// A turn that is to be walked.
pub(crate) struct NextTurn {
    /// Which turn of the session this is; names it in messages to the session.
    pub(crate) key: TurnKey,
    /// What the rules start from.
    pub(crate) turn: Box<TurnSetup>,
    /// What holds the turn's leaves and says when they are done.
    pub(crate) scope: TurnScope,
    /// State of the settings files when they were last read.
    pub(crate) fingerprints: Option<Fingerprints>,
    /// What was chosen while the session lives, over all settings but those of an organisation.
    pub(crate) chosen: Option<LayerText>,
    /// What the files held when the session was opened, for its first turn.
    pub(crate) first_layers: Option<Vec<LayerText>>,
}

/// What ends with the turn: a flag to give up, and a count of those who still work.
#[derive(Clone, Debug, Default)]
pub(crate) struct TurnScope {
    pub(crate) cancel: CancellationToken,
    pub(crate) tracker: TaskTracker,
}
