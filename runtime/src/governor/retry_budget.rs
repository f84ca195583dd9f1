//! The retries that all sessions of one provider may make together (MDL-6).
//!
//! The budget keeps a thousand sessions, each of which retries politely, from being a
//! storm together: what fails more often than it succeeds soon retries at a fixed low rate.

use super::limits::RetryLimits;

/// Parts of one retry in which the balance is kept.
const PARTS: u64 = 1_000;

/// Counts how many retries successful calls have paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RetryBudget {
    limits: RetryLimits,
    balance: u64,
    at: u64,
}

impl RetryBudget {
    /// Makes a full budget, at `now` in milliseconds.
    pub(crate) fn new(limits: RetryLimits, now: u64) -> Self {
        Self { limits, balance: most(limits), at: now }
    }

    /// Credits the budget for a call that succeeded.
    pub(crate) fn earn(&mut self, now: u64) {
        let earned = u64::from(self.limits.percent) * PARTS / 100;
        self.set(now, self.balance_at(now).saturating_add(earned));
    }

    /// Takes one retry, if there is one.
    pub(crate) fn take(&mut self, now: u64) -> bool {
        let balance = self.balance_at(now);
        let is_there = PARTS <= balance;
        if is_there {
            self.set(now, balance - PARTS);
        }
        is_there
    }

    /// Puts back a retry that was taken and not made.
    pub(crate) fn put_back(&mut self, now: u64) {
        self.set(now, self.balance_at(now).saturating_add(PARTS));
    }

    /// Returns the milliseconds until there is one; `None` when only a success can bring it.
    pub(crate) fn wait_ms(&self, now: u64) -> Option<u64> {
        let missing = PARTS.saturating_sub(self.balance_at(now));
        if missing == 0 {
            return Some(0);
        }
        (0 < self.limits.per_second && 0 < self.limits.most)
            .then(|| (missing * 1_000).div_ceil(u64::from(self.limits.per_second) * PARTS))
    }

    /// Returns the whole retries in it.
    #[cfg(test)]
    pub(crate) fn retries(&self, now: u64) -> u64 {
        self.balance_at(now) / PARTS
    }

    fn set(&mut self, now: u64, balance: u64) {
        self.balance = balance.min(most(self.limits));
        self.at = self.at.max(now);
    }

    /// `per_second` retries a second are as many parts of one a millisecond.
    fn balance_at(&self, now: u64) -> u64 {
        let free = now.saturating_sub(self.at).saturating_mul(u64::from(self.limits.per_second));
        self.balance.saturating_add(free).min(most(self.limits))
    }
}

fn most(limits: RetryLimits) -> u64 {
    u64::from(limits.most) * PARTS
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: MDL-6
    #[test]
    fn retries_are_a_fifth_of_successes_and_ten_a_second() {
        let mut budget = RetryBudget::new(RetryLimits::default(), 0);
        assert_eq!((0..1_000).filter(|_| budget.take(0)).count(), 100);
        assert_eq!(budget.wait_ms(0), Some(100));
        for _ in 0..50 {
            budget.earn(0);
        }
        assert_eq!((0..1_000).filter(|_| budget.take(0)).count(), 10);
        assert_eq!((0..1_000).filter(|_| budget.take(3_000)).count(), 30);
        assert_eq!(budget.retries(1_000_000), 100);
    }

    #[test]
    fn without_a_free_rate_only_a_success_brings_one() {
        let limits = RetryLimits { per_second: 0, ..RetryLimits::default() };
        let mut budget = RetryBudget::new(limits, 0);
        assert_eq!((0..200).filter(|_| budget.take(0)).count(), 100);
        assert_eq!(budget.wait_ms(1_000_000), None);
        budget.put_back(0);
        assert_eq!(budget.wait_ms(0), Some(0));
    }
}
