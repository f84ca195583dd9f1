//! What an effect of a turn leaves to do.

use ennead_runtime::turn::TurnInput;

use super::Pending;
use crate::{groundwork::supervision::Job, turn::gate_worker::CheckedCall};

/// What is left to do after an effect was carried out.
pub(super) enum Outcome {
    /// Nothing is left; a result comes as a message.
    Done,
    /// A child is to be started, and its start awaited.
    Spawn(ChildToStart),
    /// The turn receives this input at once.
    Reply(TurnInput),
}

/// A child to be started.
pub(super) enum ChildToStart {
    /// A leaf that owes an answer.
    Leaf(Job, Pending),
    /// The dispatcher, for these calls, whose inputs were checked.
    Dispatcher(Vec<CheckedCall>),
}
