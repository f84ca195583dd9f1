//! Path 1: the output ceiling.
//!
//! A cut answer is asked for again with twice the ceiling; a ceiling that does not fit the window
//! is lowered. Both move one number, so they live together: what was once found too high is never
//! asked for again.

use super::table::{Action, Cap, Condition, RecoveryRow, row};
use crate::step5_model_call::FailureClass::{MaxOutput, OutputOverflow};

/// Escalations per turn (MDL-4).
pub(crate) const MAX_ESCALATIONS: u32 = 3;

/// Reductions per turn; from 1,048,576 tokens down to the floor it takes 16.
pub(crate) const MAX_REDUCTIONS: u32 = 16;

/// Ceilings per turn that a server names; one is enough where it counts as it says.
pub(crate) const MAX_FITS: u32 = 3;

/// At or below this ceiling, in tokens, it is not lowered further: the input must shrink (MDL-9).
pub(crate) const REDUCTION_FLOOR: u32 = 4_096;

/// The output ceiling of an answer in one piece, in tokens. More would take longer than the 10
/// minutes that providers keep a silent connection open (128,000 tokens an hour).
pub(crate) const WHOLE_MAX_TOKENS: u32 = 21_333;

/// What path 3 goes on with where a lower ceiling does not help follows these.
pub(super) const ROWS: &[RecoveryRow] = &[
    row(
        MaxOutput,
        &[Condition::CeilingCanRise],
        Action::RaiseCeiling,
        &[Cap::PerTurn(MAX_ESCALATIONS)],
    ),
    row(MaxOutput, &[], Action::Surface, &[]),
    row(OutputOverflow, &[Condition::FitNamed], Action::FitCeiling, &[Cap::PerTurn(MAX_FITS)]),
    row(
        OutputOverflow,
        &[Condition::CeilingAboveFloor],
        Action::LowerCeiling,
        &[Cap::PerTurn(MAX_REDUCTIONS)],
    ),
];

/// Doubles the ceiling, within what the model gives and below what was found too high. `None` when that is no more than
/// there was.
pub(super) fn raised(max_tokens: u32, model_max: u32, too_high: Option<u32>) -> Option<u32> {
    let highest = too_high.map_or(u32::MAX, |it| it.saturating_sub(1)).min(model_max);
    let raised = max_tokens.saturating_mul(2).min(highest);
    (max_tokens < raised).then_some(raised)
}

/// Lowers the ceiling to 0.7 of it; `None` when the ceiling is not the problem.
pub(super) fn lowered(max_tokens: u32) -> Option<u32> {
    let lowered = u32::try_from(u64::from(max_tokens) * 7 / 10).unwrap_or(max_tokens);
    (REDUCTION_FLOOR < max_tokens).then_some(lowered)
}
