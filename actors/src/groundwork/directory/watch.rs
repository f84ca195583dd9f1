//! Who watches the tree of actors as it lives and dies.
//!
//! Until the tree is watched for the first time, a change costs one look at a pointer; afterwards, without
//! a watcher, one at a counter. What waits for a watcher is bounded: one that is too slow receives how many
//! changes it missed and takes a new picture of the tree.

use tokio::sync::broadcast::{self, error::RecvError};

use super::{Directory, Live};

/// Changes that wait for one watcher at most.
const CAPACITY: usize = 4096;

/// A change of the tree.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "serve"), expect(dead_code, reason = "only the server reads it"))]
pub(crate) enum TreeChange {
    /// An actor was spawned.
    Started(Live),
    /// A turn supervisor has reached another step.
    Changed(Live),
    /// An actor is gone.
    Ended(Live),
}

/// The changes from a moment on.
#[derive(Debug)]
pub(crate) struct TreeWatch(broadcast::Receiver<TreeChange>);

impl TreeWatch {
    /// Waits for the next change; `Err` has the number of those that were missed. `None` when the
    /// tree is gone.
    #[cfg_attr(not(feature = "serve"), expect(dead_code, reason = "only the server watches"))]
    pub(crate) async fn next(&mut self) -> Option<Result<TreeChange, u64>> {
        match self.0.recv().await {
            Ok(change) => Some(Ok(change)),
            Err(RecvError::Lagged(missed)) => Some(Err(missed)),
            Err(RecvError::Closed) => None,
        }
    }
}

impl Directory {
    /// Watches the tree from now on.
    #[cfg_attr(not(feature = "serve"), expect(dead_code, reason = "only the server watches"))]
    pub(crate) fn watch(&self) -> TreeWatch {
        let watchers = self.0.watchers.get_or_init(|| broadcast::channel(CAPACITY).0);
        TreeWatch(watchers.subscribe())
    }

    /// Makes and sends a change where somebody watches.
    pub(super) fn publish(&self, change: impl FnOnce() -> TreeChange) {
        if let Some(watchers) = self.0.watchers.get().filter(|it| it.receiver_count() != 0) {
            // The last one may have left meanwhile.
            let _none_watches = watchers.send(change());
        }
    }
}
