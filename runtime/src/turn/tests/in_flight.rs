//! What a played turn waits for, and what of its lines is safe.

use std::collections::BTreeMap;

use crate::{ids::ToolUseId, turn::TurnInput};

/// The inputs and appends of one turn that are under way.
#[derive(Default)]
pub(super) struct InFlight {
    /// Inputs that the turn has yet to receive.
    pub(super) waiting: Vec<TurnInput>,
    /// The last ticket that was acknowledged.
    pub(super) acknowledged: u64,
    /// The last ticket that was written.
    pub(super) written: u64,
    /// The append that a call's intent, or the last answer, was in.
    pub(super) intents: BTreeMap<ToolUseId, u64>,
    pub(super) answer: u64,
}
