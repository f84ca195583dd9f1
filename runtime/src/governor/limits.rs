//! The numbers of a governor that an embedder may set, each with its source.

use std::num::NonZeroU32;

/// Limits of a governor. The defaults hold no call back until the provider itself objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GovernorLimits {
    /// Calls at once. `None`, the default: as many as are asked for, until the provider says it is
    /// overloaded; from then on a window as in TCP holds.
    pub concurrency: Option<NonZeroU32>,
    /// How long a call may be parked, in milliseconds; 10 minutes, which is also the longest pause
    /// that a provider may ask a turn for (`recovery::backoff::MAX_RETRY_AFTER_MS`).
    pub max_park_ms: u64,
    /// The same for a call that has another provider to turn to; 10 s.
    pub max_park_with_fallback_ms: u64,
    /// When calls stop altogether.
    pub breaker: BreakerLimits,
    /// How many calls may be retries.
    pub retries: RetryLimits,
    /// Tokens a tenant may send in its turn before the next one has its own; 16,384. Deficit round
    /// robin is cheap as long as this is about the cost of one call (Shreedhar and Varghese,
    /// "Efficient Fair Queuing using Deficit Round Robin", 1995).
    pub quantum: u64,
}

/// When the circuit breaker opens, and for how long.
///
/// Share and window follow resilience4j (50 % of a window of 100, at least 100 calls). Calls of
/// models are dear and slow, so half that window is looked at, and from 20 calls on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BreakerLimits {
    /// Calls that are looked at, the newest ones; 50, and at most 64.
    pub window: u32,
    /// Calls that must have ended before a share counts; 20.
    pub min_calls: u32,
    /// Share of them that failed, in percent; 50.
    pub failure_percent: u32,
    /// How long it stays open after a storm, in milliseconds; 5 s, doubled each time a probe fails.
    pub storm_ms: u64,
    /// The longest of these, in milliseconds; 2 minutes.
    pub storm_cap_ms: u64,
    /// How long it stays open when a quota is used up and the provider names no time, in milliseconds;
    /// 60 s, doubled each time a probe fails.
    pub quota_ms: u64,
    /// The longest of these, in milliseconds; 15 minutes. Also of what the provider says.
    pub quota_cap_ms: u64,
    /// How long it stays open when the account has nothing to pay with, in milliseconds; 10 s each time.
    /// A refused request costs nothing, and the one that has paid does not want to wait.
    pub billing_ms: u64,
}

/// The budget that all retries of all sessions share.
///
/// The numbers are those of Finagle's `RetryBudget`: a fifth of what succeeds, and 10 a second saved
/// up for at most 10 s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryLimits {
    /// Retries earned by 100 calls that succeed; 20.
    pub percent: u32,
    /// Retries a second that are free; 10.
    pub per_second: u32,
    /// Retries that can be saved up; 100.
    pub most: u32,
}

impl Default for GovernorLimits {
    fn default() -> Self {
        Self {
            concurrency: None,
            max_park_ms: 600_000,
            max_park_with_fallback_ms: 10_000,
            breaker: BreakerLimits::default(),
            retries: RetryLimits::default(),
            quantum: 16_384,
        }
    }
}

impl Default for BreakerLimits {
    fn default() -> Self {
        Self {
            window: 50,
            min_calls: 20,
            failure_percent: 50,
            storm_ms: 5_000,
            storm_cap_ms: 120_000,
            quota_ms: 60_000,
            quota_cap_ms: 900_000,
            billing_ms: 10_000,
        }
    }
}

impl Default for RetryLimits {
    fn default() -> Self {
        Self { percent: 20, per_second: 10, most: 100 }
    }
}
