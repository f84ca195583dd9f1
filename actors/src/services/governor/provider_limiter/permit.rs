//! What a call holds while it waits or runs, and what it reports of it.

use ennead_runtime::governor::{CallOutcome, GovernorInput, Ticket, headers::RateLimitReport};
use ennead_tools::locked::Locked as _;

use super::ProviderLimiter;

/// A call that was let through, or waits to be. Dropped without an end it counts as given up: its
/// slot is free again, and so is what it had not used.
#[derive(Debug)]
#[must_use = "dropping it gives the call up"]
pub(crate) struct CallPermit {
    pub(super) limiter: ProviderLimiter,
    pub(super) ticket: Ticket,
    pub(super) is_over: bool,
}

impl CallPermit {
    /// Passes on what the head of the answer reports of the provider's limits.
    pub(crate) fn on_report(&self, report: RateLimitReport) {
        self.limiter.send(GovernorInput::LimitsReported { ticket: self.ticket, report });
    }

    /// Settles the call, which has ended. `used` is what it cost: input and output, in tokens.
    pub(crate) fn settle(mut self, outcome: CallOutcome, used: Option<(u64, u64)>) {
        self.is_over = true;
        self.limiter.send(GovernorInput::Ended { ticket: self.ticket, outcome, used });
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let now = self.limiter.now();
        let mut state = self.limiter.0.state.locked();
        state.waiting.remove(&self.ticket);
        state.handle(now, GovernorInput::Abandoned(self.ticket), None);
    }
}
