//! What a call leaves, and what it holds as long as something works on it.

use std::{
    any::Any,
    fmt,
    sync::{Arc, OnceLock},
};

use crate::tool::ToolOutcome;

/// Where a call leaves its outcome when its effect can no longer be undone.
///
/// An interrupt drops the future of a call, but not work on another thread. If that work was past
/// its point of no return, what is recorded is this outcome, and not an interruption.
#[derive(Clone, Debug, Default)]
pub struct CommittedOutcome(Arc<OnceLock<ToolOutcome>>);

impl CommittedOutcome {
    /// Leaves the outcome; the first one stays.
    pub fn set(&self, outcome: ToolOutcome) {
        let _first_stays = self.0.set(outcome);
    }

    /// Returns the outcome; `None` if none was committed.
    pub fn get(&self) -> Option<&ToolOutcome> {
        self.0.get()
    }
}

/// Kept while something works on a call. Equal are clones of one.
#[derive(Clone)]
pub struct WorkGuard(Arc<dyn Any + Send + Sync>);

impl WorkGuard {
    /// Keeps `token` until the last clone is dropped.
    pub fn new(token: impl Any + Send + Sync) -> Self {
        Self(Arc::new(token))
    }
}

impl PartialEq for WorkGuard {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for WorkGuard {}

impl fmt::Debug for WorkGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WorkGuard")
    }
}
