//! Where a session is, as its handle reports it.

use ennead_runtime::{ids::RunId, ports::shells::ShellStatus, step::Step};

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
}
