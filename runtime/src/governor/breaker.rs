//! The circuit breaker: when no call is to be made at all.
//!
//! Closed, it looks at how the newest calls ended. Open, no call is sent. When its time is over the
//! next call is a probe, one at a time; its outcome closes the circuit or opens it for twice as long.

use super::limits::BreakerLimits;
use crate::entropy::EntropyStream;

/// Doublings at most; the caps are reached long before.
const MAX_DOUBLINGS: u32 = 16;

/// Why the circuit is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Too many calls failed.
    Storm,
    /// The quota of the key is used up.
    Quota,
    /// The account of the key has nothing to pay with.
    Bill,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BreakerState {
    Closed,
    Open { until: u64, cause: Cause },
    HalfOpen { probing: bool, cause: Cause },
}

/// What the breaker says to the next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BreakerVerdict {
    /// The call may be made.
    Call,
    /// Go on, as the probe.
    Probe,
    /// Wait, until this time if it is known.
    Wait(Cause, Option<u64>),
}

/// The breaker of one provider and key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Breaker {
    limits: BreakerLimits,
    state: BreakerState,
    /// The newest calls, the newest in the lowest bit; set: failed.
    failed: u64,
    n_seen: u32,
    /// Openings since it last held for a while.
    doublings: u32,
    n_openings: u64,
    /// For the jitter of open times.
    stream: EntropyStream,
}

impl Breaker {
    /// Returns a closed breaker.
    pub(crate) fn new(limits: BreakerLimits, stream: EntropyStream) -> Self {
        let (failed, n_seen, doublings, n_openings) = (0, 0, 0, 0);
        Self { limits, state: BreakerState::Closed, failed, n_seen, doublings, n_openings, stream }
    }

    /// Returns whether a call may be made at `now`, in milliseconds.
    pub(crate) fn verdict(&self, now: u64) -> BreakerVerdict {
        match self.state {
            BreakerState::Closed => BreakerVerdict::Call,
            BreakerState::Open { until, .. } if until <= now => BreakerVerdict::Probe,
            BreakerState::Open { until, cause } => BreakerVerdict::Wait(cause, Some(until)),
            BreakerState::HalfOpen { probing: false, .. } => BreakerVerdict::Probe,
            BreakerState::HalfOpen { cause, .. } => BreakerVerdict::Wait(cause, None),
        }
    }

    /// Notes that a call was let through as the probe.
    pub(crate) fn probe_sent(&mut self) {
        if let BreakerState::Open { cause, .. } | BreakerState::HalfOpen { cause, .. } = self.state
        {
            self.state = BreakerState::HalfOpen { probing: true, cause };
        }
    }

    /// Notes that the probe was given up: the next call is one.
    pub(crate) fn probe_lost(&mut self) {
        if let BreakerState::HalfOpen { cause, .. } = self.state {
            self.state = BreakerState::HalfOpen { probing: false, cause };
        }
    }

    /// Notes that a call was answered. Returns whether this closed the circuit.
    pub(crate) fn note_success(&mut self, is_probe: bool) -> bool {
        match self.state {
            BreakerState::Closed => {
                self.note(false);
                // It has held for as long as it takes to see a storm.
                if self.limits.min_calls <= self.n_seen && !self.is_storm() {
                    self.doublings = 0;
                }
                false
            }
            BreakerState::HalfOpen { .. } if is_probe => {
                self.state = BreakerState::Closed;
                (self.failed, self.n_seen) = (0, 0);
                true
            }
            // Sent before the circuit opened; says nothing about now.
            BreakerState::Open { .. } | BreakerState::HalfOpen { .. } => false,
        }
    }

    /// Notes that a call failed. Returns whether this opened the circuit.
    pub(crate) fn note_failure(&mut self, now: u64, is_probe: bool) -> bool {
        match self.state {
            BreakerState::Closed => {
                self.note(true);
                let storm = self.is_storm();
                if storm {
                    self.open(now, Cause::Storm, None);
                }
                storm
            }
            BreakerState::HalfOpen { cause, .. } if is_probe => {
                self.open(now, cause, None);
                true
            }
            BreakerState::Open { .. } | BreakerState::HalfOpen { .. } => false,
        }
    }

    /// Notes that the provider reports an account with nothing to pay with. Returns whether this opened the circuit.
    pub(crate) fn bill_is_open(&mut self, now: u64, is_probe: bool) -> bool {
        let opens = match self.state {
            BreakerState::Closed | BreakerState::Open { cause: Cause::Storm, .. } => true,
            BreakerState::Open { .. } => false,
            BreakerState::HalfOpen { .. } => is_probe,
        };
        if opens {
            self.open(now, Cause::Bill, None);
        }
        opens
    }

    /// Notes that the provider reports a used-up quota, for this many milliseconds if it knows. Returns whether this
    /// opened the circuit, or opened it for longer. However long the provider names, a probe is sent after the longest
    /// time of the limits: who buys more does not wait for the end of the month.
    pub(crate) fn quota_is_over(&mut self, now: u64, for_ms: Option<u64>, is_probe: bool) -> bool {
        let for_ms = for_ms.map(|it| it.min(self.limits.quota_cap_ms));
        let known = match self.state {
            BreakerState::Open { cause: Cause::Quota, until } => Some(until),
            BreakerState::HalfOpen { cause: Cause::Quota, .. } if !is_probe => return false,
            _ => None,
        };
        match (known, for_ms) {
            // Calls that were under way when it opened say the same.
            (Some(_), None) => false,
            (Some(until), Some(ms)) if now.saturating_add(ms) <= until => false,
            _ => {
                self.open(now, Cause::Quota, for_ms);
                true
            }
        }
    }

    fn open(&mut self, now: u64, cause: Cause, for_ms: Option<u64>) {
        let (first, cap) = match cause {
            Cause::Storm => (self.limits.storm_ms, self.limits.storm_cap_ms),
            Cause::Quota => (self.limits.quota_ms, self.limits.quota_cap_ms),
            // Who has paid goes on soon, however often somebody looked before.
            Cause::Bill => (self.limits.billing_ms, self.limits.billing_ms),
        };
        let doubled = first.saturating_mul(1 << self.doublings.min(MAX_DOUBLINGS)).min(cap);
        let ms = for_ms.unwrap_or(doubled);
        // Up to a tenth more, so that several processes with one key do not probe together.
        let draw = self.stream.draw("breaker", self.n_openings) as u64;
        let until = now.saturating_add(ms).saturating_add(draw % (ms / 10 + 1));
        self.state = BreakerState::Open { until, cause };
        if cause != Cause::Bill {
            self.doublings = (self.doublings + 1).min(MAX_DOUBLINGS);
        }
        self.n_openings += 1;
        (self.failed, self.n_seen) = (0, 0);
    }

    fn note(&mut self, failed: bool) {
        self.failed = self.failed << 1 | u64::from(failed);
        self.n_seen = (self.n_seen + 1).min(self.window());
    }

    fn window(&self) -> u32 {
        self.limits.window.clamp(1, u64::BITS)
    }

    fn is_storm(&self) -> bool {
        let newest = u64::MAX >> (u64::BITS - self.window());
        let n_failed = (self.failed & newest).count_ones();
        let needed = self.limits.min_calls.min(self.window());
        needed <= self.n_seen && self.n_seen * self.limits.failure_percent <= n_failed * 100
    }
}

#[cfg(test)]
mod tests;
