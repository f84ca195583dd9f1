//! Alerts of a session about itself: limits that are near, and compactions that are frequent.

use std::time::Duration;

use super::{Machine, Now, SessionEffect};
use crate::{event::Event, lease::LimitUse, saturating::Saturating as _};

/// Turns from which on the share of those with a compaction says something.
const MIN_TURNS: u64 = 10;

/// Hundredths of the turns that may have a compaction without a warning (SHP-9).
const MAX_PERCENT: u64 = 10;

/// Hundredths that the share must have come down to before the next warning. A share that goes about its limit
/// would be warned of with every second compaction otherwise.
const CALM_PERCENT: u64 = 5;

/// In how many turns of a session auto_compact fired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CompactionShare {
    pub(super) turns: u64,
    pub(super) compacted: u64,
    is_reported: bool,
}

impl CompactionShare {
    /// Makes the share of what earlier processes of the session did.
    pub(super) fn of(turns: u64, compacted: u64) -> Self {
        let share = Self { turns, compacted, is_reported: false };
        Self { is_reported: share.is_over(), ..share }
    }

    /// Counts a turn. Gives the warning once when the share is over the limit, and not again before it was half
    /// of that.
    pub(super) fn count(&mut self, was_compacted: bool) -> Option<String> {
        self.turns = self.turns.saturating_add(1);
        self.compacted = self.compacted.saturating_add(u64::from(was_compacted));
        let was_reported = self.is_reported;
        self.is_reported = self.is_over() || was_reported && self.is_more_than(CALM_PERCENT);
        (self.is_reported && !was_reported).then(|| {
            format!(
                "auto_compact fired in {} of {} turns, which is more than {MAX_PERCENT} %",
                self.compacted, self.turns
            )
        })
    }

    fn is_over(&self) -> bool {
        MIN_TURNS <= self.turns && self.is_more_than(MAX_PERCENT)
    }

    fn is_more_than(&self, percent: u64) -> bool {
        u128::from(self.turns) * u128::from(percent) < u128::from(self.compacted) * 100
    }
}

impl Machine {
    /// Returns how much is used of limits that a run does not count itself.
    pub(super) fn limits_used(&mut self, now: Now) -> Vec<LimitUse> {
        let mut limits = self.agents.tree().map(|it| it.limits_used()).unwrap_or_default();
        limits.extend(self.active.as_ref().and_then(|active| {
            let millis = |it: Duration| u64::saturating(it.as_millis());
            let whole = active.limit.as_ref()?.deadline.saturating_sub(active.started);
            let used = now.elapsed.saturating_sub(active.started);
            Some(LimitUse { of: "milliseconds of the run", used: millis(used), max: millis(whole) })
        }));
        limits
    }

    /// Sends subscribers what an operator should look at.
    pub(super) fn publish_alerts(&mut self, alerts: impl IntoIterator<Item = String>) {
        let alerts = alerts.into_iter().map(|it| Event::Alert { what: it.into() });
        self.effects.extend(alerts.map(SessionEffect::Publish));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: SHP-9
    #[test]
    fn more_than_a_tenth_of_the_turns_with_a_compaction_warns_once_until_it_is_half_of_that() {
        let mut share = CompactionShare::default();
        let is_reported =
            |turn: &u64| share.count(matches!(turn, 5 | 9 | 28 | 29 | 90..=100)).is_some();
        let warned: Vec<u64> = (1..=100).filter(is_reported).collect();
        // Two of ten; three of twenty-eight are more than a tenth again, but it was never less than a twentieth
        // in between; four of eighty are no more than that.
        assert_eq!(warned, [10, 95]);
        assert_eq!((share.turns, share.compacted), (100, 15));
        let mut resumed = CompactionShare::of(30, 4);
        assert_eq!(resumed.count(false), None, "the process before reported it");
        let mut few = CompactionShare::default();
        assert!((0..9).all(|_| few.count(true).is_none()));
    }
}
