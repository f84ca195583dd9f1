//! Path 2: a summary in the middle of a turn.
//!
//! At most once per turn. It is an input to the same shaper chain as any other compaction, so it
//! never runs at the same time as one. A summary that is itself too long to ask for is made shorter
//! instead.

use super::table::{Action, Cap, Condition, RecoveryRow, row};
use crate::step5_model_call::FailureClass;

/// Reactive compactions per turn (MDL-5).
pub(crate) const MAX_COMPACTIONS: u32 = 1;

/// Times that a summary request is made shorter.
pub(crate) const MAX_SHRINKS: u32 = 3;

/// Makes the row about an answer that does not fit.
pub(super) const fn compact(class: FailureClass) -> RecoveryRow {
    row(class, &[Condition::ForTurn], Action::Compact, &[Cap::PerTurn(MAX_COMPACTIONS)])
}

/// Makes the row about a summary that does not fit.
pub(super) const fn shrink(class: FailureClass) -> RecoveryRow {
    row(class, &[Condition::ForSummary], Action::ShrinkSummary, &[Cap::PerTurn(MAX_SHRINKS)])
}
