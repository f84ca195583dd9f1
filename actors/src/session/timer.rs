//! The wall-clock limit of a run.

use std::time::Duration;

use ennead_runtime::session::RunNumber;
use ractor::ActorCell;

/// The leaf that waits for the time limit of a run. It ends with this value; one that is killed has
/// a successor.
pub(super) struct RunTimer {
    pub(super) run: RunNumber,
    pub(super) deadline: Duration,
    pub(super) leaf: ActorCell,
}

impl Drop for RunTimer {
    fn drop(&mut self) {
        self.leaf.kill();
    }
}
