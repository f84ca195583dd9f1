//! Before the first run: is a long prompt more than the window holds?
//!
//! A prompt that no request can hold is refused before a line is written. The window follows from the
//! settings, which the first turn reads; for a prompt that may be too long they are read before. A
//! leaf reads them: a session never waits.

use std::sync::Arc;

use ennead_runtime::{
    block::Block, run::RunRequest, step1_settings_resolution::Merged, turn::input::SettingsRead,
};
use ractor::{ActorId, ActorRef};

use crate::{
    directory::ActorKind,
    session::{SessionMsg, SessionState},
    source_reader::Look,
    supervision::{HandlerResult, spawn_leaf},
};

/// Characters of a prompt that fits any window worth having: three quarters of 4,096 tokens.
const FITS_ALWAYS: u64 = 12_288;

/// Whether the window is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::session) enum Measuring {
    /// The settings have not been read yet.
    #[default]
    Unknown,
    /// The settings are about to be read.
    Asked,
    /// They are being read, by this leaf.
    Reading(ActorId),
    /// As far as it can be.
    Known,
}

impl SessionState {
    /// Whether this prompt has to wait until the settings are known; they are read then.
    pub(super) fn is_measured_first(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        request: &RunRequest,
    ) -> Result<bool, ractor::ActorProcessingErr> {
        let is_known = self.conversation.memory.resolved.is_some();
        if is_known || self.measuring != Measuring::Unknown || !may_be_too_long(request) {
            return Ok(false);
        }
        self.measuring = Measuring::Asked;
        myself.cast(SessionMsg::Measure)?;
        Ok(true)
    }

    /// Whether the queue waits for that.
    pub(super) fn is_measuring(&self) -> bool {
        matches!(self.measuring, Measuring::Asked | Measuring::Reading(_))
    }

    pub(in crate::session) async fn measure(
        &mut self,
        myself: &ActorRef<SessionMsg>,
    ) -> HandlerResult {
        if !self.shared.facts.reads_settings {
            let nothing = SettingsRead::Layers(Vec::new());
            return self.settings_measured(myself, Ok((nothing, Default::default())));
        }
        let look = self.shared.world.files.settings(&self.shared.place, None);
        let back = myself.clone();
        let work = Box::pin(async move {
            let _gone = back.cast(SessionMsg::Measured(Box::new(look.await)));
        });
        let job = self.shared.job(ActorKind::SourceReader, work);
        self.measuring = Measuring::Reading(spawn_leaf(job, myself.get_cell()).await?.get_id());
        Ok(())
    }

    /// The settings were read. Where they cannot be, the first turn says so.
    pub(in crate::session) fn settings_measured(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        look: Look,
    ) -> HandlerResult {
        self.measuring = Measuring::Known;
        if let Ok((SettingsRead::Layers(read), _)) = look {
            let layers = self.shared.facts.layers.iter().cloned().chain(read).collect();
            let merged = Merged::new(layers, &self.conversation.memory.catalogue);
            self.conversation.memory.merged = Some(Arc::new(merged));
        }
        self.next_run(myself)
    }

    /// Whether this child was to read them. A prompt does not wait for one that is gone.
    pub(in crate::session) fn is_measured_by(&self, child: ActorId) -> bool {
        self.measuring == Measuring::Reading(child)
    }
}

fn may_be_too_long(request: &RunRequest) -> bool {
    FITS_ALWAYS < request.blocks().iter().map(Block::chars).sum()
}
