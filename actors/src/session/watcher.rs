//! The leaf that looks after the files that hooks of a session wait for.

use std::sync::{Arc, Mutex};

use ractor::ActorCell;

use crate::world::watched_files::KnownFiles;

/// The leaf that looks, with what it knows; one that is killed has a successor that knows as much.
pub(super) struct FileWatcher {
    pub(super) leaf: ActorCell,
    pub(super) known: Arc<Mutex<KnownFiles>>,
}

impl Drop for FileWatcher {
    fn drop(&mut self) {
        self.leaf.kill();
    }
}
