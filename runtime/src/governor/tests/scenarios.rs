//! What becomes of calls, as a log: who asks, how calls end, and what they receive. Built
//! under `#[cfg(test)]` only.

use std::num::NonZeroU32;

use super::super::{
    Ask, CallOutcome, Governor, GovernorInput, GovernorOutput, Ticket, bucket::Level,
    headers::RateLimitReport, limits::GovernorLimits,
};
use crate::entropy::EntropyStream;

/// A governor, driven by the test.
struct Scenario {
    governor: Governor,
    now: u64,
    n_asked: u64,
}

impl Scenario {
    fn new(limits: GovernorLimits) -> Self {
        Self { governor: Governor::new(limits, EntropyStream::from_seed(7)), now: 0, n_asked: 0 }
    }

    fn with_slots(slots: u32) -> Self {
        let concurrency = NonZeroU32::new(slots);
        Self::new(GovernorLimits { concurrency, ..GovernorLimits::default() })
    }

    /// The only place that knows the API. `1+` is admitted, `1 why` parked, `1- why` refused.
    fn give(&mut self, input: GovernorInput) -> String {
        let mut out = Vec::new();
        self.governor.handle(self.now, input, &mut out);
        let shown = out.iter().map(|it| match it {
            GovernorOutput::Admit(ticket) => format!("{}+", ticket.0),
            GovernorOutput::Park(ticket, parking) => {
                format!("{} {}", ticket.0, parking.reason.code())
            }
            GovernorOutput::Refuse(ticket, refusal) => {
                format!("{}- {}", ticket.0, refusal.reason.code())
            }
        });
        shown.collect::<Vec<_>>().join(", ")
    }

    fn ask_as(&mut self, tenant: &str, is_retry: bool, patience_ms: u64) -> String {
        let ticket = Ticket(self.n_asked);
        self.n_asked += 1;
        let tenant = tenant.into();
        self.give(GovernorInput::Ask(Ask { ticket, tenant, tokens: 1_000, is_retry, patience_ms }))
    }

    fn ask(&mut self, tenant: &str) -> String {
        self.ask_as(tenant, false, 600_000)
    }

    fn retry(&mut self) -> String {
        self.ask_as("a", true, 600_000)
    }

    fn end(&mut self, ticket: u64, outcome: CallOutcome) -> String {
        self.give(GovernorInput::Ended { ticket: Ticket(ticket), outcome, used: None })
    }

    fn answer(&mut self, ticket: u64) -> String {
        self.end(ticket, CallOutcome::Answered)
    }

    fn at(&mut self, now: u64) -> String {
        self.now = now;
        self.give(GovernorInput::Tick)
    }
}

const OVERLOADED: CallOutcome = CallOutcome::Overloaded { retry_after_ms: None };

// REQ: MDL-13
#[test]
fn by_default_nobody_waits_until_the_provider_objects() {
    let mut story = Scenario::new(GovernorLimits::default());
    for ticket in 0..5_000 {
        assert_eq!(story.ask("a"), format!("{ticket}+"));
    }
    assert_eq!(story.governor.wake_at(0), None);
    // The objection halves what is under way.
    story.end(0, OVERLOADED);
    assert_eq!(story.ask("a"), "5000 concurrency");
    let ended: Vec<String> = (1..2_500).map(|it| story.answer(it)).collect();
    // Each answer also makes room for one more, so half of those that are left is met half way.
    let at = ended.iter().position(|it| it == "5000+").unwrap();
    assert_eq!(at, 1_249);
}

// REQ: MDL-13
#[test]
fn retry_after_holds_everybody_back_and_the_reset_too() {
    let mut story = Scenario::new(GovernorLimits::default());
    assert_eq!((story.ask("a"), story.ask("a")), ("0+".into(), "1+".into()));
    assert_eq!(story.end(0, CallOutcome::Overloaded { retry_after_ms: Some(3_000) }), "");
    assert_eq!(story.answer(1), "");
    assert_eq!(story.ask("b"), "2 rate_limit");
    assert_eq!(story.governor.wake_at(0), Some(3_000));
    assert_eq!(story.at(2_999), "");
    assert_eq!(story.at(3_000), "2+");
    let empty = Level { limit: Some(60), remaining: 0, reset_in_ms: Some(60_000) };
    let report = RateLimitReport { requests: Some(empty), ..RateLimitReport::default() };
    story.give(GovernorInput::LimitsReported { ticket: Ticket(2), report });
    assert_eq!(story.answer(2), "");
    assert_eq!(story.ask("a"), "3 rate_limit");
    assert_eq!(story.governor.wake_at(3_000), Some(4_000));
    assert_eq!(story.at(4_000), "3+");
}

// REQ: MDL-13
#[test]
fn pause_of_a_day_holds_nobody_back_for_longer_than_ten_minutes() {
    let mut story = Scenario::new(GovernorLimits::default());
    story.ask("a");
    story.end(0, CallOutcome::Overloaded { retry_after_ms: Some(86_400_000) });
    story.now = 1;
    assert_eq!(story.ask("a"), "1 rate_limit");
    assert_eq!(story.at(599_999), "");
    assert_eq!(story.at(600_000), "1+");
}

// REQ: MDL-10, MDL-13
#[test]
fn open_bill_refuses_everybody_at_once_and_who_has_paid_goes_on_after_a_probe() {
    let mut story = Scenario::with_slots(2);
    assert_eq!((story.ask("a"), story.ask("a")), ("0+".into(), "1+".into()));
    assert_eq!(story.ask("a"), "2 concurrency");
    let unpaid = CallOutcome::Unpaid { message: "pay".into() };
    assert_eq!(story.end(0, unpaid.clone()), "2- billing");
    assert_eq!(
        (story.ask("b"), story.ask_as("b", true, 0)),
        ("3- billing".into(), "4- billing".into())
    );
    assert_eq!(story.end(1, unpaid.clone()), "");
    story.now = 11_000;
    assert_eq!(story.ask("a"), "5+");
    // While somebody looks it may have been paid.
    assert_eq!(story.ask("a"), "6 billing");
    assert_eq!(story.end(5, unpaid), "6- billing");
    story.now = 22_000;
    assert_eq!((story.ask("a"), story.ask("a")), ("7+".into(), "8 billing".into()));
    assert_eq!(story.answer(7), "8+");
}

// REQ: MDL-13
#[test]
fn request_that_fails_by_itself_neither_opens_nor_closes_the_breaker() {
    let mut story = Scenario::new(GovernorLimits::default());
    for ticket in 0..100 {
        assert_eq!(story.ask("a"), format!("{ticket}+"));
        assert_eq!(story.end(ticket, CallOutcome::Unclear), "");
    }
    story.ask("a");
    story.end(100, CallOutcome::QuotaOver { for_ms: Some(1_000) });
    assert_eq!(
        (story.ask("a"), story.ask("a")),
        ("101 provider_quota".into(), "102 provider_quota".into())
    );
    assert_eq!(story.at(1_100), "101+");
    assert_eq!(story.end(101, CallOutcome::Unclear), "102+");
}

// REQ: MDL-10, MDL-13
#[test]
fn quota_stop_parks_everybody_and_one_probe_at_a_time_looks() {
    let mut story = Scenario::with_slots(2);
    assert_eq!((story.ask("a"), story.ask("a")), ("0+".into(), "1+".into()));
    assert_eq!(story.ask("a"), "2 concurrency");
    let over = CallOutcome::QuotaOver { for_ms: None };
    assert_eq!(story.end(0, over.clone()), "2 provider_quota");
    assert_eq!(story.ask("b"), "3 provider_quota");
    // Somebody who cannot wait is told at once.
    assert_eq!(story.ask_as("b", false, 10_000), "4- provider_quota");
    assert_eq!(story.answer(1), "");
    let wake = story.governor.wake_at(0).unwrap();
    assert!((60_000..=66_000).contains(&wake), "{wake}");
    assert_eq!(story.at(wake), "2+");
    assert_eq!(story.ask("b"), "5 provider_quota");
    // The probe fails: for twice as long.
    assert_eq!(story.end(2, over), "3 provider_quota, 5 provider_quota");
    let again = story.governor.wake_at(wake).unwrap();
    assert!((120_000..=132_000).contains(&(again - wake)), "{again}");
    assert_eq!(story.at(again), "3+");
    assert_eq!(story.answer(3), "5+");
    assert_eq!(story.ask("a"), "6+");
}

// REQ: MDL-13, RUN-2
#[test]
fn probe_that_is_given_up_leaves_its_place_to_the_next() {
    let mut story = Scenario::new(GovernorLimits::default());
    story.ask("a");
    story.end(0, CallOutcome::QuotaOver { for_ms: Some(1_000) });
    assert_eq!(story.ask("a"), "1 provider_quota");
    assert_eq!(story.ask("a"), "2 provider_quota");
    assert_eq!(story.at(1_100), "1+");
    assert_eq!(story.give(GovernorInput::Abandoned(Ticket(1))), "2+");
}

// REQ: MDL-6
#[test]
fn retries_wait_for_their_budget_and_new_calls_do_not() {
    let mut story = Scenario::new(GovernorLimits::default());
    for ticket in 0..100 {
        assert_eq!(story.retry(), format!("{ticket}+"));
    }
    assert_eq!(story.retry(), "100 retry_budget");
    assert_eq!(story.ask("a"), "101+");
    assert_eq!(story.at(100), "100+");
    assert_eq!(story.retry(), "102 retry_budget");
    // Five answers earn a retry.
    let ends: Vec<String> = (0..5).map(|it| story.answer(it)).collect();
    assert_eq!(ends, ["", "", "", "", "102+"]);
}

// REQ: MDL-6, MDL-13
#[test]
fn retry_without_budget_can_be_the_probe_and_is_not_looked_at_before() {
    let mut story = Scenario::new(GovernorLimits::default());
    (0..100).for_each(|_| _ = story.retry());
    assert_eq!(story.end(0, CallOutcome::QuotaOver { for_ms: Some(1_000) }), "");
    assert_eq!(story.retry(), "100 provider_quota");
    let wake = story.governor.wake_at(0).unwrap();
    assert!((1_000..=1_100).contains(&wake), "{wake}");
    assert_eq!(story.at(wake), "100+");
}

// REQ: MDL-13
#[test]
fn who_waited_as_long_as_it_may_is_refused() {
    let mut story = Scenario::with_slots(1);
    story.ask("a");
    assert_eq!(story.ask_as("a", false, 5_000), "1 concurrency");
    assert_eq!(story.governor.wake_at(0), Some(5_000));
    assert_eq!(story.at(4_999), "");
    assert_eq!(story.at(5_000), "1- concurrency");
    assert_eq!(story.governor.n_parked(), 0);
}

// REQ: RUN-4
#[test]
fn quiet_tenant_finds_a_slot_free_while_a_noisy_one_waits() {
    let mut story = Scenario::with_slots(8);
    assert_eq!(story.ask("quiet"), "0+");
    let asked: Vec<String> = (0..10).map(|_| story.ask("noisy")).collect();
    let n_admitted = asked.iter().filter(|it| it.ends_with('+')).count();
    assert_eq!(n_admitted, 6, "{asked:?}");
    // The quiet one ends and asks again, as often as it likes.
    let mut last = 0;
    for taken in ["7+", "", "", "", ""] {
        assert_eq!(story.answer(last), taken);
        last = story.n_asked;
        assert_eq!(story.ask("quiet"), format!("{last}+"));
    }
    // A minute without it, and all is the noisy one's.
    story.answer(last);
    story.now = 60_000;
    assert_eq!(story.ask("noisy"), "8+, 16 concurrency");
}
