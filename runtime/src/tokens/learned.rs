//! How far off the estimates are for each model, learned from what its provider reports.
//!
//! Made of what the transcript holds, in its order, so that a session that is opened again, and one
//! that is walked again, knows the same.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Tokens;
use crate::saturating::Saturating as _;

/// Requests estimated at less teach nothing: what a provider adds to each outweighs the text.
const SMALLEST_SAMPLE: u64 = 1_000;

/// A report that is this many times more or less than the estimate counts something else than the text
/// of the request.
const FARTHEST: u64 = 4;

/// Thousandths that a factor has at least and at most.
const BOUNDS: (u64, u64) = (500, 2_000);

/// The part of the way to a new sample that a factor goes: one in this many.
const SMOOTHING: u64 = 4;

/// What estimates are multiplied by, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Factor(u64);

impl Default for Factor {
    fn default() -> Self {
        Self(1_000)
    }
}

impl Factor {
    /// Corrects the estimate; rounded up.
    pub(crate) fn apply(self, tokens: Tokens) -> Tokens {
        scaled(tokens, self.0, 1_000)
    }

    /// Returns the estimate that is corrected to this; rounded up.
    pub(crate) fn undo(self, tokens: Tokens) -> Tokens {
        scaled(tokens, 1_000, self.0)
    }

    /// The same after a request that was estimated and reported at this.
    fn after(self, estimated: Tokens, reported: Tokens) -> Self {
        let sample = scaled(reported, 1_000, estimated.0).0.clamp(BOUNDS.0, BOUNDS.1);
        Self((self.0 * (SMOOTHING - 1) + sample) / SMOOTHING)
    }
}

fn scaled(tokens: Tokens, by: u64, of: u64) -> Tokens {
    let scaled = (u128::from(tokens.0) * u128::from(by)).div_ceil(u128::from(of.max(1)));
    Tokens(u64::saturating(scaled))
}

/// The factors of the models of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Learned(Vec<(Arc<str>, Factor)>);

impl Learned {
    /// Returns the factor of a model. That of one that was never asked changes nothing. `is_model` is whether a name
    /// means it.
    pub(crate) fn factor(&self, is_model: impl Fn(&str) -> bool) -> Factor {
        let found = self.0.iter().find(|(name, _)| is_model(name));
        found.map(|(_, factor)| *factor).unwrap_or_default()
    }

    /// Learns from what was reported for a request, input alone. `is_model` is whether a name means the model that was
    /// asked.
    pub(crate) fn learn(
        &mut self,
        model: &Arc<str>,
        is_model: impl Fn(&str) -> bool,
        estimated: Tokens,
        reported: Tokens,
    ) {
        let is_far = |one: Tokens, other: Tokens| one.0.saturating_mul(FARTHEST) < other.0;
        if estimated.0 < SMALLEST_SAMPLE
            || is_far(estimated, reported)
            || is_far(reported, estimated)
        {
            return;
        }
        match self.0.iter_mut().find(|(name, _)| is_model(name)) {
            Some((_, factor)) => *factor = factor.after(estimated, reported),
            None => {
                let factor = Factor::default().after(estimated, reported);
                self.0.push((Arc::clone(model), factor));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factor_after(samples: &[(u64, u64)]) -> Factor {
        let (mut learned, model) = (Learned::default(), Arc::from("m"));
        for (estimated, reported) in samples {
            learned.learn(&model, |it| it == "m", Tokens(*estimated), Tokens(*reported));
        }
        assert_eq!(learned.factor(|it| it == "another"), Factor::default());
        learned.factor(|it| it == "m")
    }

    // REQ: CTX-8
    #[test]
    fn factor_goes_a_quarter_of_the_way_to_each_report() {
        assert_eq!(factor_after(&[]), Factor(1_000));
        assert_eq!(factor_after(&[(1_000, 1_400)]), Factor(1_100));
        assert_eq!(factor_after(&[(1_000, 1_400), (2_000, 1_400)]), Factor(1_000));
        assert_eq!(factor_after(&[(8_000, 12_000); 40]).apply(Tokens(1_000)), Tokens(1_497));
    }

    // REQ: CTX-8
    #[test]
    fn factor_stays_between_a_half_and_two() {
        assert_eq!(factor_after(&[(1_000, 4_000); 90]), Factor(1_997));
        assert_eq!(factor_after(&[(4_000, 1_000); 90]), Factor(500));
    }

    // REQ: CTX-8
    #[test]
    fn small_requests_and_reports_of_something_else_teach_nothing() {
        for sample in [(999, 1_500), (1_000, 4_001), (4_001, 1_000), (5_000, 0), (u64::MAX, 1)] {
            assert_eq!(factor_after(&[sample]), Factor(1_000), "{sample:?}");
        }
        assert_eq!(factor_after(&[(u64::MAX, u64::MAX)]), Factor(1_000));
    }

    // REQ: CTX-8
    #[test]
    fn estimate_set_right_and_undone_is_no_less() {
        for factor in [500, 777, 1_000, 1_333, 2_000].map(Factor) {
            for tokens in [0, 1, 7, 1_000, 123_456].map(Tokens) {
                assert!(tokens <= factor.apply(factor.undo(tokens)), "{factor:?} {tokens:?}");
            }
        }
    }
}
