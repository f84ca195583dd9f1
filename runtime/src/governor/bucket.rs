//! A token bucket that is filled by what the provider says, not by a rate we guess.
//!
//! Providers report a limit, what is left of it, and when it will be whole again. From these three
//! follows the rate at which it fills. What a provider says replaces what was reckoned.

/// Parts of one unit in which levels are kept, so that slow rates are not rounded away.
const PARTS: u64 = 1_000_000;

/// The time in which a limit fills when nothing else is known: providers give limits per minute.
const MINUTE_MS: u64 = 60_000;

/// What a provider says about one of its limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// The whole of it, in requests or tokens.
    pub limit: Option<u64>,
    /// What the provider says is left.
    pub remaining: u64,
    /// Milliseconds until it is whole again.
    pub reset_in_ms: Option<u64>,
}

/// What is left of one limit, and how it fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    limit: u64,
    level: u64,
    /// Parts a millisecond; never 0.
    rate: u64,
    at: u64,
}

impl Bucket {
    /// Makes the bucket that the provider reported at `now`, in milliseconds. `before` is the bucket as it was, for
    /// what the report leaves out.
    pub(crate) fn reported(now: u64, reported_level: Level, before: Option<Self>) -> Self {
        let known = before.map_or(0, |it| it.limit / PARTS);
        let limit = reported_level.limit.unwrap_or(known).max(reported_level.remaining).max(1);
        let limit = limit.saturating_mul(PARTS);
        let level = reported_level.remaining.saturating_mul(PARTS).min(limit);
        let missing = limit - level;
        let rate = match reported_level.reset_in_ms {
            Some(reset_in_ms) if 0 < missing && 0 < reset_in_ms => missing.div_ceil(reset_in_ms),
            _ => before.map_or(limit / MINUTE_MS, |it| it.rate),
        };
        // A reset that is over means that it is whole.
        let level = if reported_level.reset_in_ms == Some(0) { limit } else { level };
        Self { limit, level, rate: rate.max(1), at: now }
    }

    /// Returns the milliseconds until `cost` units can be taken and `reserve_divisor`-th of the limit is left; 0 when
    /// they can be taken now. A cost above the limit waits for a full bucket, not for ever.
    pub(crate) fn wait_ms(&self, now: u64, cost: u64, reserve_divisor: Option<u64>) -> u64 {
        let reserve = reserve_divisor.map_or(0, |it| self.limit / it.max(1));
        let needed = cost.saturating_mul(PARTS).saturating_add(reserve).min(self.limit);
        needed.saturating_sub(self.level_at(now)).div_ceil(self.rate)
    }

    /// Takes this many units, and what is there when there are fewer.
    pub fn take(&mut self, now: u64, cost: u64) {
        self.level = self.level_at(now).saturating_sub(cost.saturating_mul(PARTS));
        self.at = self.at.max(now);
    }

    /// Puts units back that were taken and not used.
    pub fn put_back(&mut self, now: u64, units: u64) {
        let level = self.level_at(now).saturating_add(units.saturating_mul(PARTS));
        self.level = level.min(self.limit);
        self.at = self.at.max(now);
    }

    /// Returns the whole units in it.
    #[cfg(test)]
    pub(crate) fn units(&self, now: u64) -> u64 {
        self.level_at(now) / PARTS
    }

    fn level_at(&self, now: u64) -> u64 {
        let filled = now.saturating_sub(self.at).saturating_mul(self.rate);
        self.level.saturating_add(filled).min(self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING_LEFT: Level = Level { limit: Some(50), remaining: 0, reset_in_ms: Some(60_000) };

    // REQ: MDL-13
    #[test]
    fn fills_so_that_it_is_whole_when_the_provider_says() {
        let bucket = Bucket::reported(0, NOTHING_LEFT, None);
        let units: Vec<u64> =
            [0, 1_199, 1_200, 30_000, 60_000, 90_000].iter().map(|it| bucket.units(*it)).collect();
        assert_eq!(units, [0, 0, 1, 25, 50, 50]);
        // As a server of 5,000 requests a minute says it: one is missing, for 12 ms.
        let reported_level = Level { limit: Some(5_000), remaining: 4_999, reset_in_ms: Some(12) };
        let mut bucket = Bucket::reported(0, reported_level, None);
        bucket.take(0, 4_999);
        assert_eq!((bucket.units(0), bucket.units(6_000)), (0, 500));
    }

    #[test]
    fn waits_for_what_is_missing_and_leaves_the_reserve() {
        let mut bucket = Bucket::reported(0, NOTHING_LEFT, None);
        assert_eq!(bucket.wait_ms(0, 1, None), 1_200);
        assert_eq!(bucket.wait_ms(60_000, 50, None), 0);
        bucket.take(60_000, 20);
        assert_eq!(bucket.wait_ms(60_000, 26, None), 0);
        // Of 30, 26 and an eighth of 50: 2.25 are missing, at 834 millionths a millisecond.
        assert_eq!(bucket.wait_ms(60_000, 26, Some(8)), 2_698);
        // More than there can ever be.
        assert_eq!(bucket.wait_ms(60_000, 1_000, Some(8)), bucket.wait_ms(60_000, 50, None));
    }

    #[test]
    fn what_is_not_said_stays_and_what_is_over_is_whole() {
        let before = Bucket::reported(0, NOTHING_LEFT, None);
        let after = Bucket::reported(10, Level { remaining: 10, ..Level::default() }, Some(before));
        assert_eq!((after.units(10), after.units(1_210)), (10, 11));
        let over = Level { limit: Some(50), remaining: 0, reset_in_ms: Some(0) };
        assert_eq!(Bucket::reported(10, over, None).units(10), 50);
    }

    #[test]
    fn never_goes_below_nothing_nor_above_the_limit() {
        let mut bucket = Bucket::reported(0, NOTHING_LEFT, None);
        bucket.take(0, u64::MAX);
        assert_eq!(bucket.units(0), 0);
        bucket.put_back(0, u64::MAX);
        assert_eq!((bucket.units(0), bucket.units(u64::MAX)), (50, 50));
    }
}
