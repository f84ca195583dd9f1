//! Path 1: the output ceiling.
//!
//! A cut answer is asked for again with twice the ceiling; a ceiling that does not fit the window
//! is lowered. Both move one number, so they live together: what was once found too high is never
//! asked for again.

use super::{Remedy, Situation};

/// Escalations per turn (MDL-4).
pub const MAX_ESCALATIONS: u32 = 3;

/// At or below this ceiling, in tokens, it is not lowered further: the input must shrink (MDL-9).
pub const REDUCTION_FLOOR: u32 = 4_096;

/// Reductions per turn; from 1,048,576 tokens down to the floor it takes 16.
pub const MAX_REDUCTIONS: u32 = 16;

/// What is known of the output ceiling.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OutputCeiling {
    n_escalations: u32,
    n_reductions: u32,
    /// The lowest ceiling that did not fit.
    too_high: Option<u32>,
}

impl OutputCeiling {
    pub(super) fn escalate(&mut self, situation: &Situation) -> Remedy {
        let highest = self.too_high.map_or(u32::MAX, |it| it.saturating_sub(1));
        let highest = highest.min(situation.model_max_tokens);
        let max_tokens = situation.max_tokens.saturating_mul(2).min(highest);
        if MAX_ESCALATIONS <= self.n_escalations || max_tokens <= situation.max_tokens {
            return Remedy::Surface;
        }
        self.n_escalations += 1;
        Remedy::EscalateOutput { max_tokens }
    }

    /// `None` when the ceiling is not the problem.
    pub(super) fn reduce(&mut self, situation: &Situation) -> Option<Remedy> {
        let max_tokens = situation.max_tokens;
        self.too_high = Some(self.too_high.map_or(max_tokens, |it| it.min(max_tokens)));
        if max_tokens <= REDUCTION_FLOOR || MAX_REDUCTIONS <= self.n_reductions {
            return None;
        }
        self.n_reductions += 1;
        let reduced = u64::from(max_tokens) * 7 / 10;
        Some(Remedy::ReduceOutput { max_tokens: u32::try_from(reduced).unwrap_or(max_tokens) })
    }
}
