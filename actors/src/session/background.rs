//! What a session holds of its commands and sub-agents in the background.

use std::sync::{Mutex, MutexGuard};

use ennead_runtime::{ids::AgentId, ports::agents::BackgroundAgent};
use ennead_tools::{locked::Locked as _, shells::Shells};
use tokio_util::task::TaskTracker;

/// The commands of a session in the background.
#[derive(Debug, Default)]
pub(crate) struct SessionShells {
    pub(crate) table: Shells,
    /// Empty when nothing of them is left.
    pub(crate) tracker: TaskTracker,
}

/// The sub-agents of a session that work in the background, oldest first.
#[derive(Debug, Default)]
pub(crate) struct SessionAgents(Mutex<Vec<BackgroundAgent>>);

impl SessionAgents {
    fn lock(&self) -> MutexGuard<'_, Vec<BackgroundAgent>> {
        // Nothing in here can be left half done.
        self.0.locked()
    }

    /// Adds one that was started.
    pub(crate) fn add(&self, agent: BackgroundAgent) {
        self.lock().push(agent);
    }

    /// Takes out one that has ended.
    pub(crate) fn remove(&self, agent: &AgentId) {
        self.lock().retain(|it| it.agent != *agent);
    }

    /// Returns those that are at work.
    pub(crate) fn running(&self) -> Vec<BackgroundAgent> {
        self.lock().clone()
    }
}
