//! What a session holds of its commands in the background.

use ennead_tools::shells::Shells;
use tokio_util::task::TaskTracker;

/// The commands of a session in the background.
#[derive(Debug, Default)]
pub(crate) struct SessionShells {
    pub(crate) table: Shells,
    /// Empty when nothing of them is left.
    pub(crate) tracker: TaskTracker,
}
