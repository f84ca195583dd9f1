//! Whatever is asked, and however calls end: what always holds. Built under `#[cfg(test)]` only.

use std::{collections::BTreeMap, num::NonZeroU32};

use proptest::prelude::*;

use super::super::{
    Ask, CallOutcome, Governor, GovernorInput, GovernorOutput, ParkReason, Ticket, bucket::Level,
    headers::RateLimitReport, limits::GovernorLimits,
};
use crate::entropy::EntropyStream;

/// What happens next. Numbers choose among the calls there are.
#[derive(Clone, Debug)]
enum Act {
    Ask {
        tenant: u8,
        tokens: u64,
        is_retry: bool,
        patience_ms: u64,
    },
    Settle(usize, CallOutcome),
    Abandon(usize),
    Hear(u64, u64),
    /// Milliseconds pass; `None`: until the governor wants to look.
    Wait(Option<u64>),
}

fn outcome() -> impl Strategy<Value = CallOutcome> {
    prop_oneof![
        6 => Just(CallOutcome::Answered),
        2 => prop::option::of(1_u64..5_000)
            .prop_map(|retry_after_ms| CallOutcome::Overloaded { retry_after_ms }),
        2 => Just(CallOutcome::Broken),
        1 => prop::option::of(1_u64..2_000_000).prop_map(|for_ms| CallOutcome::QuotaOver { for_ms }),
        1 => Just(CallOutcome::Unpaid { message: "pay".into() }),
        1 => Just(CallOutcome::Unclear),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (0_u8..3, 1_u64..50_000, any::<bool>(), prop_oneof![Just(0), Just(5_000), Just(600_000)])
            .prop_map(|(tenant, tokens, is_retry, patience_ms)| {
                Act::Ask { tenant, tokens, is_retry, patience_ms }
            }),
        5 => (any::<usize>(), outcome()).prop_map(|(which, outcome)| Act::Settle(which, outcome)),
        1 => any::<usize>().prop_map(Act::Abandon),
        1 => (0_u64..100, 0_u64..60_000).prop_map(|(left, reset)| Act::Hear(left, reset)),
        3 => prop::option::of(0_u64..20_000).prop_map(Act::Wait),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Waiting,
    Admitted,
    Refused,
    Over,
}

/// A governor, and what became of every call.
struct Bench {
    governor: Governor,
    limit: Option<u32>,
    now: u64,
    fates: BTreeMap<Ticket, Fate>,
}

impl Bench {
    fn give(&mut self, input: GovernorInput) -> Result<(), TestCaseError> {
        let mut out = Vec::new();
        self.governor.handle(self.now, input, &mut out);
        for output in out {
            let (ticket, fate) = match output {
                GovernorOutput::Admit(ticket) => (ticket, Fate::Admitted),
                GovernorOutput::Refuse(ticket, refusal) => {
                    let is_bill = refusal.reason == ParkReason::Billing;
                    prop_assert_eq!(refusal.bill.is_some(), is_bill);
                    (ticket, Fate::Refused)
                }
                GovernorOutput::Park(ticket, parking) => {
                    prop_assert_eq!(self.fates[&ticket], Fate::Waiting);
                    prop_assert!(parking.until.is_none_or(|it| self.now <= it), "{parking:?}");
                    continue;
                }
            };
            let before = self.fates.insert(ticket, fate);
            prop_assert_eq!(before, Some(Fate::Waiting), "{:?} twice", ticket);
        }
        let n_of = |fate| self.fates.values().filter(|it| **it == fate).count();
        prop_assert_eq!(self.governor.shares.in_flight() as usize, n_of(Fate::Admitted));
        prop_assert_eq!(self.governor.n_parked(), n_of(Fate::Waiting));
        if let Some(limit) = self.limit {
            prop_assert!(self.governor.shares.in_flight() <= limit);
        }
        let wake = self.governor.wake_at(self.now);
        prop_assert_eq!(wake.is_some(), 0 < n_of(Fate::Waiting));
        prop_assert!(wake.is_none_or(|it| self.now < it));
        Ok(())
    }

    fn pick(&self, fates: &[Fate], which: usize) -> Option<Ticket> {
        let those: Vec<Ticket> = self
            .fates
            .iter()
            .filter(|(_, fate)| fates.contains(fate))
            .map(|(ticket, _)| *ticket)
            .collect();
        those.get(which.checked_rem(those.len())?).copied()
    }

    fn act(&mut self, act: Act) -> Result<(), TestCaseError> {
        match act {
            Act::Ask { tenant, tokens, is_retry, patience_ms } => {
                let ticket = Ticket(self.fates.len() as u64);
                self.fates.insert(ticket, Fate::Waiting);
                let tenant = format!("t{tenant}").as_str().into();
                self.give(GovernorInput::Ask(Ask { ticket, tenant, tokens, is_retry, patience_ms }))
            }
            Act::Settle(which, outcome) => {
                let Some(ticket) = self.pick(&[Fate::Admitted], which) else { return Ok(()) };
                self.fates.insert(ticket, Fate::Over);
                self.give(GovernorInput::Ended { ticket, outcome, used: Some((10, 10)) })
            }
            Act::Abandon(which) => {
                let Some(ticket) = self.pick(&[Fate::Admitted, Fate::Waiting], which) else {
                    return Ok(());
                };
                self.fates.insert(ticket, Fate::Over);
                self.give(GovernorInput::Abandoned(ticket))
            }
            Act::Hear(remaining, reset) => {
                let Some(ticket) = self.pick(&[Fate::Admitted], 0) else { return Ok(()) };
                let level = Level { limit: Some(100), remaining, reset_in_ms: Some(reset) };
                let report =
                    RateLimitReport { requests: Some(level), ..RateLimitReport::default() };
                self.give(GovernorInput::LimitsReported { ticket, report })
            }
            Act::Wait(ms) => {
                let wake = self.governor.wake_at(self.now).unwrap_or(self.now);
                self.now = ms.map_or(wake, |it| self.now + it);
                self.give(GovernorInput::Tick)
            }
        }
    }
}

proptest! {
    // REQ: MDL-13
    #[test]
    fn every_call_gets_one_fate_and_no_more_are_under_way_than_may_be(
        acts in prop::collection::vec(act(), 1..300),
        limit in prop::option::of(1_u32..6),
    ) {
        let concurrency = limit.and_then(NonZeroU32::new);
        let limits = GovernorLimits { concurrency, ..GovernorLimits::default() };
        let governor = Governor::new(limits, EntropyStream::from_seed(7));
        let mut bench = Bench { governor, limit, now: 0, fates: BTreeMap::new() };
        for act in acts {
            bench.act(act)?;
        }
        // What is under way is answered, and nobody waits for ever.
        for _ in 0..100_000 {
            if let Some(ticket) = bench.pick(&[Fate::Admitted], 0) {
                bench.fates.insert(ticket, Fate::Over);
                bench.give(GovernorInput::Ended { ticket, outcome: CallOutcome::Answered, used: None })?;
            } else if bench.governor.wake_at(bench.now).is_some() {
                bench.act(Act::Wait(None))?;
            } else {
                break;
            }
        }
        prop_assert_eq!(bench.pick(&[Fate::Waiting, Fate::Admitted], 0), None);
    }
}
