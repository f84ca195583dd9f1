//! What a session holds of its commands and sub-agents in the background.

use std::sync::{Mutex, MutexGuard};

use ennead_runtime::{
    ids::AgentId,
    ports::agents::{BackgroundAgent, EndedAgent},
};
use ennead_tools::{locked::Locked as _, shells::Shells};
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

/// Agents that are kept after their end.
const MAX_ENDED: usize = 32;

/// The commands of a session in the background.
#[derive(Debug, Default)]
pub(crate) struct SessionShells {
    pub(crate) table: Shells,
    /// Empty when nothing of them is left, nor of hooks.
    pub(crate) tracker: TaskTracker,
}

/// The sub-agents of a session that work in the background, and those that ended lately; oldest first.
#[derive(Debug, Default)]
pub(crate) struct SessionAgents {
    all: Mutex<Vec<KnownAgent>>,
    /// Changes when one has ended.
    changed: watch::Sender<()>,
}

#[derive(Debug)]
struct KnownAgent {
    agent: BackgroundAgent,
    end: Option<EndedAgent>,
}

impl SessionAgents {
    fn lock(&self) -> MutexGuard<'_, Vec<KnownAgent>> {
        // Nothing in here can be left half done.
        self.all.locked()
    }

    /// Adds one that was started.
    pub(crate) fn add(&self, agent: BackgroundAgent) {
        let mut all = self.lock();
        // One that goes on is at work again.
        all.retain(|it| it.agent.agent != agent.agent);
        all.push(KnownAgent { agent, end: None });
    }

    /// Keeps how one ended. The oldest of those that have ended give way.
    pub(crate) fn keep_end(&self, end: EndedAgent) {
        let mut all = self.lock();
        let mut known = all.iter_mut();
        if let Some(known) = known.find(|it| it.agent.agent == end.agent.agent) {
            known.agent = end.agent.clone();
            known.end = Some(end);
        }
        let n_ended = all.iter().filter(|it| it.end.is_some()).count();
        let mut n_surplus = n_ended.saturating_sub(MAX_ENDED);
        all.retain(|it| {
            let is_surplus = it.end.is_some() && 0 < n_surplus;
            n_surplus -= usize::from(is_surplus);
            !is_surplus
        });
        drop(all);
        self.changed.send_replace(());
    }

    /// Returns those that are at work.
    pub(crate) fn running(&self) -> Vec<BackgroundAgent> {
        let all = self.lock();
        all.iter().filter(|it| it.end.is_none()).map(|it| it.agent.clone()).collect()
    }

    /// Returns the one of this name, and how it ended, if it has.
    pub(crate) fn find(&self, agent: &AgentId) -> Option<(BackgroundAgent, Option<EndedAgent>)> {
        let all = self.lock();
        let found = all.iter().find(|it| it.agent.agent == *agent)?;
        Some((found.agent.clone(), found.end.clone()))
    }

    /// Waits until this one has ended; `None` when it is not known.
    pub(crate) async fn ended(&self, agent: &AgentId) -> Option<EndedAgent> {
        // From before the look, so no end is missed.
        let mut changed = self.changed.subscribe();
        loop {
            if let (_, Some(end)) = self.find(agent)? {
                return Some(end);
            }
            changed.changed().await.ok()?;
        }
    }
}
