//! Where a session is, as its handle reports it.

use ennead_runtime::{ids::RunId, ports::shells::ShellStatus, session::Summary, step::Step};

use crate::groundwork::directory::ParkedCall;

/// The state of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// The run under way.
    pub run: Option<RunId>,
    /// Its turn, from 1.
    pub turn: u32,
    /// Where its turn is.
    pub step: Option<Step>,
    /// Why its call of the model is not sent yet, if it waits for the governor.
    pub parked: Option<ParkedCall>,
    /// Number of prompts that wait for their run.
    pub queued: usize,
    /// Number of sub-agents at work.
    pub agents: usize,
    /// Commands in the background, oldest first.
    pub shells: Vec<ShellStatus>,
    /// Bytes of the messages of its conversation, which it has in memory.
    pub n_bytes: u64,
}

impl Status {
    /// What the session itself knows.
    pub(crate) fn of(summary: Summary, shells: Vec<ShellStatus>) -> Self {
        let Summary { run, turn, n_queued, n_agents, n_bytes } = summary;
        let (step, parked) = (None, None);
        Self { run, turn, step, parked, queued: n_queued, agents: n_agents, shells, n_bytes }
    }
}
