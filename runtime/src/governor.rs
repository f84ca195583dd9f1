//! Who may call a provider now: one state machine per provider and key, for all sessions.
//!
//! Every call asks before it is sent and says how it ended. In between are a window of calls, the
//! provider's own limits, one circuit breaker, one budget for retries, and turns between tenants.
//! Time comes with every input, so the same inputs always have the same outputs. It is the only rule
//! that looks at all sessions together; no turn decides by it. What a turn learns of
//! it is a failure like any other, which is recorded.

pub mod breaker;
pub mod bucket;
mod buckets;
pub(crate) mod fair_queue;
pub mod headers;
pub mod limits;
mod protocol;
pub(crate) mod retry_budget;
pub(crate) mod shares;
pub mod window;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use crate::{entropy::EntropyStream, recovery::backoff::MAX_RETRY_AFTER_MS};
use breaker::{Breaker, BreakerVerdict};
use buckets::Buckets;
use fair_queue::FairQueue;
use limits::GovernorLimits;
use retry_budget::RetryBudget;
use shares::Shares;
use window::ConcurrencyWindow;

pub use crate::ids::TenantId as Tenant;
pub use protocol::{
    Ask, CallOutcome, GovernorInput, GovernorOutput, ParkReason, Parking, Refusal, Ticket,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AdmissionStage {
    /// Waits for the retry budget.
    Budget,
    /// Waits for its turn.
    Queued,
    /// Sent, and not ended yet.
    InFlight { admission: u64, is_probe: bool },
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct WaitingCall {
    ask: Ask,
    asked_at: u64,
    stage: AdmissionStage,
    /// The provider's word about its limits has come, and its input is in it.
    is_counted: bool,
}

impl WaitingCall {
    fn deadline(&self) -> u64 {
        self.asked_at.saturating_add(self.ask.patience_ms)
    }
}

/// What is in the way of a call.
struct Obstacle {
    parking: Parking,
    /// Whether it is in everybody's way, and not only in that of this tenant and cost.
    for_all: bool,
}

/// Decides when each call to one provider and key is sent.
#[derive(Clone, Debug)]
pub struct Governor {
    limits: GovernorLimits,
    breaker: Breaker,
    retries: RetryBudget,
    window: ConcurrencyWindow,
    buckets: Buckets,
    /// The provider asked all to wait until then.
    held_until: u64,
    /// The provider's message of the last time that the account had nothing to pay with.
    bill: Arc<str>,
    shares: Shares,
    queue: FairQueue,
    /// Retries that wait for the budget, in the order they came.
    waiting_retries: VecDeque<Ticket>,
    calls: BTreeMap<Ticket, WaitingCall>,
    /// Deadlines of the calls that wait.
    deadlines: BTreeSet<(u64, Ticket)>,
    n_admitted: u64,
}

impl Governor {
    /// Makes a governor of which no call is in flight. `stream` gives the jitter.
    pub fn new(limits: GovernorLimits, stream: EntropyStream) -> Self {
        Self {
            breaker: Breaker::new(limits.breaker, stream),
            retries: RetryBudget::new(limits.retries, 0),
            window: ConcurrencyWindow::new(limits.concurrency),
            buckets: Buckets::default(),
            held_until: 0,
            bill: Arc::default(),
            shares: Shares::default(),
            queue: FairQueue::new(limits.quantum),
            waiting_retries: VecDeque::new(),
            calls: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            n_admitted: 0,
            limits,
        }
    }

    /// Takes one input at `now`, in milliseconds of a clock that never goes back, and says what
    /// becomes of calls.
    pub fn handle(&mut self, now: u64, input: GovernorInput, out: &mut Vec<GovernorOutput>) {
        match input {
            GovernorInput::Ask(ask) => return self.ask(now, ask, out),
            GovernorInput::LimitsReported { ticket, report } => {
                self.buckets.take_report(now, &report);
                if let Some(call) = self.calls.get_mut(&ticket) {
                    call.is_counted = true;
                }
            }
            GovernorInput::Ended { ticket, outcome, used } => {
                self.settle(now, ticket, outcome, used, out);
            }
            GovernorInput::Abandoned(ticket) => self.abandon(now, ticket),
            GovernorInput::Tick => {}
        }
        self.go_on(now, out);
    }

    /// Returns when [`GovernorInput::Tick`] is due; `None` when no call waits.
    pub fn wake_at(&self, now: u64) -> Option<u64> {
        let (deadline, _) = self.deadlines.first()?;
        let heads = self.queue.heads().map(|(tenant, it)| self.obstacle(now, tenant, it.cost));
        let ends = heads.filter_map(|it| it.and_then(|it| it.parking.until));
        let soonest = ends.chain(self.next_retry_at(now)).min();
        // Never now: what could be done now is done.
        Some(soonest.map_or(*deadline, |it| it.min(*deadline)).max(now + 1))
    }

    /// Returns the number of calls that wait.
    pub fn n_parked(&self) -> usize {
        self.deadlines.len()
    }

    /// Returns the limits that it keeps.
    pub fn limits(&self) -> &GovernorLimits {
        &self.limits
    }

    /// When the first retry that waits may have its budget.
    fn next_retry_at(&self, now: u64) -> Option<u64> {
        self.waiting_retries.front()?;
        let budget = now.saturating_add(self.retries.wait_ms(now)?);
        match self.breaker.verdict(now) {
            BreakerVerdict::Call | BreakerVerdict::Probe => Some(budget),
            BreakerVerdict::Wait(_, until) => Some(budget.max(until?)),
        }
    }

    fn ask(&mut self, now: u64, ask: Ask, out: &mut Vec<GovernorOutput>) {
        let ticket = ask.ticket;
        self.shares.note_request(now, &ask.tenant);
        let has_budget =
            !ask.is_retry || (self.waiting_retries.is_empty() && self.retries.take(now));
        let is_free =
            self.queue.is_empty() && self.obstacle(now, &ask.tenant, ask.tokens).is_none();
        let stage = if has_budget { AdmissionStage::Queued } else { AdmissionStage::Budget };
        let call = WaitingCall { ask, asked_at: now, stage, is_counted: false };
        if has_budget && is_free {
            self.calls.insert(ticket, call);
            return self.admit(now, ticket, out);
        }
        self.deadlines.insert((call.deadline(), ticket));
        match stage {
            AdmissionStage::Budget => self.waiting_retries.push_back(ticket),
            _ => self.queue.push(&call.ask.tenant, ticket, call.ask.tokens),
        }
        self.calls.insert(ticket, call);
        self.go_on(now, out);
        self.park_or_refuse(now, ticket, out);
    }

    /// Whatever can be done now, is done.
    fn go_on(&mut self, now: u64, out: &mut Vec<GovernorOutput>) {
        if self.deadlines.is_empty() {
            return;
        }
        self.expire(now, out);
        while let Some(ticket) = self.waiting_retries.front().copied()
            && !matches!(self.breaker.verdict(now), BreakerVerdict::Wait(..))
            && self.retries.take(now)
        {
            self.waiting_retries.pop_front();
            if let Some(call) = self.calls.get_mut(&ticket) {
                call.stage = AdmissionStage::Queued;
                self.queue.push(&call.ask.tenant, ticket, call.ask.tokens);
            }
        }
        while let Some(ticket) = self.next_free(now) {
            self.leave(ticket, true);
            self.admit(now, ticket, out);
        }
    }

    /// Returns the call whose turn it is, or the first of another tenant if something is in the way of that
    /// one only.
    fn next_free(&mut self, now: u64) -> Option<Ticket> {
        let (tenant, first) = self.queue.first()?;
        match self.obstacle(now, &tenant, first.cost) {
            None => Some(first.ticket),
            Some(obstacle) if obstacle.for_all => None,
            Some(_) => self
                .queue
                .heads()
                .find(|(tenant, it)| self.obstacle(now, tenant, it.cost).is_none())
                .map(|(_, it)| it.ticket),
        }
    }

    fn obstacle(&self, now: u64, tenant: &Tenant, tokens: u64) -> Option<Obstacle> {
        let all =
            |reason, until| Some(Obstacle { parking: Parking { reason, until }, for_all: true });
        if let BreakerVerdict::Wait(cause, until) = self.breaker.verdict(now) {
            return all(cause.into(), until);
        }
        if now < self.held_until {
            return all(ParkReason::RateLimit, Some(self.held_until));
        }
        if let Some(slots) = self.window.slots() {
            let free = slots.saturating_sub(self.shares.in_flight());
            if free <= self.shares.slots_kept_from(tenant, slots) {
                let parking = Parking { reason: ParkReason::Concurrency, until: None };
                return Some(Obstacle { parking, for_all: free == 0 });
            }
        }
        let wait_ms = self.buckets.wait_ms(now, tokens, self.shares.is_kept_from_reserves(tenant));
        let until = Some(now.saturating_add(wait_ms));
        let parking = Parking { reason: ParkReason::RateLimit, until };
        (0 < wait_ms).then_some(Obstacle { parking, for_all: false })
    }

    fn admit(&mut self, now: u64, ticket: Ticket, out: &mut Vec<GovernorOutput>) {
        let Some(call) = self.calls.get_mut(&ticket) else { return };
        let is_probe = self.breaker.verdict(now) == BreakerVerdict::Probe;
        if is_probe {
            self.breaker.probe_sent();
        }
        call.stage = AdmissionStage::InFlight { admission: self.n_admitted, is_probe };
        self.n_admitted += 1;
        self.buckets.take(now, call.ask.tokens);
        self.shares.count_start(&call.ask.tenant);
        out.push(GovernorOutput::Admit(ticket));
    }

    /// Takes a call out of whatever it waits in.
    fn leave(&mut self, ticket: Ticket, is_sent: bool) {
        let Some(call) = self.calls.get(&ticket) else { return };
        self.deadlines.remove(&(call.deadline(), ticket));
        match call.stage {
            AdmissionStage::Budget => self.waiting_retries.retain(|it| *it != ticket),
            AdmissionStage::Queued if is_sent => self.queue.take(&call.ask.tenant, ticket),
            AdmissionStage::Queued => self.queue.remove(&call.ask.tenant, ticket),
            AdmissionStage::InFlight { .. } => {}
        }
    }

    fn settle(
        &mut self,
        now: u64,
        ticket: Ticket,
        outcome: CallOutcome,
        used: Option<(u64, u64)>,
        out: &mut Vec<GovernorOutput>,
    ) {
        let Some(call) = self.calls.get(&ticket) else { return };
        let AdmissionStage::InFlight { admission, is_probe } = call.stage else { return };
        self.shares.count_end(&call.ask.tenant);
        if let Some((input, output)) = used {
            let estimated = call.ask.tokens;
            let input = if call.is_counted { estimated } else { input };
            self.buckets.correct(now, estimated, input, output);
        }
        self.calls.remove(&ticket);
        let under_way = self.shares.in_flight() + 1;
        let has_opened = match outcome {
            CallOutcome::Answered => {
                self.retries.earn(now);
                self.window.grow();
                if self.breaker.note_success(is_probe) {
                    self.window.start_small();
                }
                false
            }
            CallOutcome::Overloaded { retry_after_ms } => {
                self.window.shrink(admission, under_way, self.n_admitted);
                // However long a pause it names: then somebody looks.
                let pause_ms = retry_after_ms.unwrap_or(0).min(MAX_RETRY_AFTER_MS);
                self.held_until = self.held_until.max(now.saturating_add(pause_ms));
                self.breaker.note_failure(now, is_probe)
            }
            CallOutcome::Broken => self.breaker.note_failure(now, is_probe),
            CallOutcome::QuotaOver { for_ms } => self.breaker.quota_is_over(now, for_ms, is_probe),
            CallOutcome::Unpaid { message } => {
                self.bill = message;
                self.breaker.bill_is_open(now, is_probe)
            }
            CallOutcome::Unclear => {
                is_probe.then(|| self.breaker.probe_lost());
                false
            }
        };
        if has_opened {
            let waiting: Vec<Ticket> = self.deadlines.iter().map(|(_, it)| *it).collect();
            waiting.into_iter().for_each(|it| self.park_or_refuse(now, it, out));
        }
    }

    fn abandon(&mut self, now: u64, ticket: Ticket) {
        self.leave(ticket, false);
        let Some(call) = self.calls.remove(&ticket) else { return };
        match call.stage {
            AdmissionStage::Queued if call.ask.is_retry => self.retries.put_back(now),
            AdmissionStage::Budget | AdmissionStage::Queued => {}
            // What was sent has cost what it costs; the provider's next word corrects it.
            AdmissionStage::InFlight { is_probe, .. } => {
                self.shares.count_end(&call.ask.tenant);
                if is_probe {
                    self.breaker.probe_lost();
                }
            }
        }
    }

    /// Refuses those who have waited as long as they may.
    fn expire(&mut self, now: u64, out: &mut Vec<GovernorOutput>) {
        while let Some((deadline, ticket)) = self.deadlines.first().copied()
            && deadline <= now
        {
            let parking = self.parking(now, ticket);
            self.refuse(now, ticket, parking, out);
        }
    }

    /// Gives a call that waits the reason, or refuses it when that is longer than it may wait.
    fn park_or_refuse(&mut self, now: u64, ticket: Ticket, out: &mut Vec<GovernorOutput>) {
        let Some(call) = self.calls.get(&ticket) else { return };
        if matches!(call.stage, AdmissionStage::InFlight { .. }) {
            return;
        }
        let deadline = call.deadline();
        let parking = self.parking(now, ticket);
        // Waiting pays no bill; only for the end of a probe it is worth it.
        let is_unpaid = parking.reason == ParkReason::Billing && parking.until.is_some();
        if is_unpaid || parking.until.is_some_and(|it| deadline < it) || deadline <= now {
            self.refuse(now, ticket, parking, out);
        } else {
            out.push(GovernorOutput::Park(ticket, parking));
        }
    }

    fn refuse(
        &mut self,
        now: u64,
        ticket: Ticket,
        parking: Parking,
        out: &mut Vec<GovernorOutput>,
    ) {
        let waited_ms = self.calls.get(&ticket).map_or(0, |it| now.saturating_sub(it.asked_at));
        self.abandon(now, ticket);
        let reason = parking.reason;
        let bill = (reason == ParkReason::Billing).then(|| Arc::clone(&self.bill));
        out.push(GovernorOutput::Refuse(ticket, Refusal { reason, waited_ms, bill }));
    }

    fn parking(&self, now: u64, ticket: Ticket) -> Parking {
        let call = self.calls.get(&ticket);
        let obstacle = call.and_then(|it| self.obstacle(now, &it.ask.tenant, it.ask.tokens));
        match (obstacle, call.map(|it| it.stage)) {
            // What holds for all comes first; then a retry waits for the budget.
            (Some(obstacle), Some(AdmissionStage::Budget)) if obstacle.for_all => obstacle.parking,
            (_, Some(AdmissionStage::Budget)) => {
                let until = self.retries.wait_ms(now).map(|it| now.saturating_add(it));
                Parking { reason: ParkReason::RetryBudget, until }
            }
            (Some(obstacle), _) => obstacle.parking,
            // Others are in front.
            (None, _) => Parking { reason: ParkReason::Concurrency, until: None },
        }
    }
}

#[cfg(test)]
mod tests;
