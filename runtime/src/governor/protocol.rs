//! The inputs of a governor and its outputs.

use std::sync::Arc;

use serde::Serialize;

use super::{Tenant, breaker::Cause, headers::RateLimitReport};

/// One call, as long as it is asked for or under way. Given by who asks; never twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// A call that wants to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Names the call in all later messages.
    pub ticket: Ticket,
    /// The tenant whose share the call counts against.
    pub tenant: Tenant,
    /// Input, estimated, in tokens.
    pub tokens: u64,
    /// Whether it repeats a call that failed.
    pub is_retry: bool,
    /// How long it may wait, in milliseconds.
    pub patience_ms: u64,
}

/// How a call ended, as far as others are concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// The server did what it should, a refusal of this request included.
    Answered,
    /// Too many requests, or too much load.
    Overloaded {
        /// The pause it asks for, which then holds for all, for 10 minutes at most.
        retry_after_ms: Option<u64>,
    },
    /// No connection, a server error, or a stream that broke.
    Broken,
    /// The quota of the key is used up.
    QuotaOver {
        /// For how long, if it says.
        for_ms: Option<u64>,
    },
    /// The account of the key has nothing to pay with.
    Unpaid {
        /// What the provider says about it.
        message: Arc<str>,
    },
    /// It says nothing about the server: what is wrong is the request, or what one session says about
    /// who is to be believed.
    Unclear,
}

/// The inputs of the governor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GovernorInput {
    /// May this call be made?
    Ask(Ask),
    /// The head of an answer reports the limits of the provider.
    LimitsReported {
        /// The call it answers.
        ticket: Ticket,
        /// The limits that the provider reported.
        report: RateLimitReport,
    },
    /// A call has ended.
    Ended {
        /// Ticket of the call that ended.
        ticket: Ticket,
        /// How the call ended.
        outcome: CallOutcome,
        /// What it really cost: input and output, in tokens.
        used: Option<(u64, u64)>,
    },
    /// A call was given up, before or after it was sent.
    Abandoned(Ticket),
    /// The time that `Governor::wake_at` named has come.
    Tick,
}

/// What becomes of calls. Each ticket is admitted or refused exactly once, unless it is abandoned
/// before; between that it may be reported as parked several times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GovernorOutput {
    /// The call may be sent now.
    Admit(Ticket),
    /// The call waits, for the reason given.
    Park(Ticket, Parking),
    /// It is not to be sent.
    Refuse(Ticket, Refusal),
}

/// Why a call waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Parking {
    /// What the call waits for.
    pub reason: ParkReason,
    /// Until when at least, in milliseconds on the governor's clock; `None`: until something ends.
    pub until: Option<u64>,
}

/// Why calls wait. The codes are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ParkReason {
    /// The quota of the key is used up.
    ProviderQuota,
    /// The account of the key has nothing to pay with, and a probe looks whether it has again.
    Billing,
    /// Too many calls failed.
    BreakerOpen,
    /// The provider asked for a pause, or its limit is used up for the moment.
    RateLimit,
    /// As many calls as may be are under way.
    Concurrency,
    /// All sessions together have retried as often as they may.
    RetryBudget,
}

impl ParkReason {
    /// Returns the code, as in events.
    pub fn code(self) -> &'static str {
        match self {
            Self::ProviderQuota => "provider_quota",
            Self::Billing => "billing",
            Self::BreakerOpen => "breaker_open",
            Self::RateLimit => "rate_limit",
            Self::Concurrency => "concurrency",
            Self::RetryBudget => "retry_budget",
        }
    }

    /// Returns the reason for people; it follows "the call waits because".
    pub fn in_words(self) -> &'static str {
        match self {
            Self::ProviderQuota => "the quota of this provider and key is used up",
            Self::Billing => "the account of this provider and key has nothing to pay with",
            Self::BreakerOpen => "too many calls to this provider have failed",
            Self::RateLimit => "the provider's rate limit is reached",
            Self::Concurrency => "as many calls as the provider takes are under way",
            Self::RetryBudget => "all sessions together have retried as often as they may",
        }
    }
}

impl From<Cause> for ParkReason {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::Storm => Self::BreakerOpen,
            Cause::Quota => Self::ProviderQuota,
            Cause::Bill => Self::Billing,
        }
    }
}

/// A call that will not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why it is not made.
    pub reason: ParkReason,
    /// How long it waited, in milliseconds.
    pub waited_ms: u64,
    /// The provider's message, where the account has nothing to pay with.
    pub bill: Option<Arc<str>>,
}
