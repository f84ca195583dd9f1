//! Where a call asks whether it may be sent.
//!
//! The state machine of `runtime::governor` behind a mutex that is held for a step of it and never
//! across an await. Who may go on goes on at once, on its own thread. Who may not is parked here
//! and woken by the call that makes room, or by the governor's timer. It is not part of the actor,
//! because all threads use it and only one owns the actor.

mod permit;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex},
};

use ennead_runtime::{
    entropy::EntropyStream,
    governor::{
        Ask, Governor, GovernorInput, GovernorOutput, ParkReason, Refusal, Tenant, Ticket,
        limits::GovernorLimits,
    },
    saturating::Saturating as _,
};
use ractor::ActorRef;
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    time::Instant,
};

pub(crate) use self::permit::CallPermit;
use super::GovernorMsg;
use ennead_tools::locked::Locked as _;

/// Starts the actor of a limiter in one place.
#[derive(Clone)]
pub(crate) struct Spawner(Arc<dyn Fn(ProviderLimiter) -> bool + Send + Sync>);

impl Spawner {
    /// Makes a spawner. `start` returns `false` when the place has ended.
    pub(crate) fn new(start: impl Fn(ProviderLimiter) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(start))
    }
}

impl fmt::Debug for Spawner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spawner").finish_non_exhaustive()
    }
}

/// Everything that calls to one provider with one key have in common. Clones are the same limiter.
#[derive(Clone)]
pub(crate) struct ProviderLimiter(Arc<LimiterParts>);

struct LimiterParts {
    provider: Arc<str>,
    limits: GovernorLimits,
    /// Where its clock starts. The clock is the one that timers go by, so that the two agree.
    start: Instant,
    spawners: Vec<Spawner>,
    state: Mutex<LimiterState>,
}

struct LimiterState {
    rules: Governor,
    n_tickets: u64,
    /// Of parked calls: what receives what becomes of them.
    waiting: BTreeMap<Ticket, UnboundedSender<GovernorOutput>>,
    /// Kept for its allocation.
    outputs: Vec<GovernorOutput>,
    actor: Option<ActorRef<GovernorMsg>>,
    /// When the actor will look again.
    armed: Option<u64>,
}

/// A call that wants to be sent.
#[derive(Clone, Debug)]
pub(crate) struct CallRequest {
    /// The tenant whose share the call counts against.
    pub(crate) tenant: Tenant,
    /// Input, estimated, in tokens.
    pub(crate) tokens: u64,
    /// Whether it repeats a call that failed.
    pub(crate) is_retry: bool,
    /// Whether there is another provider to turn to.
    pub(crate) has_other_provider: bool,
}

/// Why a call waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parked {
    pub(crate) reason: ParkReason,
    /// How long at least, in milliseconds; `None`: until another call ends.
    pub(crate) for_ms: Option<u64>,
}

impl ProviderLimiter {
    pub(super) fn new(
        provider: Arc<str>,
        limits: GovernorLimits,
        stream: EntropyStream,
        spawners: Vec<Spawner>,
    ) -> Self {
        let state = Mutex::new(LimiterState {
            rules: Governor::new(limits, stream),
            n_tickets: 0,
            waiting: BTreeMap::new(),
            outputs: Vec::new(),
            actor: None,
            armed: None,
        });
        Self(Arc::new(LimiterParts { provider, limits, start: Instant::now(), spawners, state }))
    }

    /// Starts the actor in the first place that still exists. Without one all has ended, and no
    /// call waits any more.
    pub(super) fn start(&self) {
        let _started = self.0.spawners.iter().any(|spawner| (spawner.0)(self.clone()));
    }

    /// Returns the milliseconds on its clock.
    pub(super) fn now(&self) -> u64 {
        u64::saturating(self.0.start.elapsed().as_millis())
    }

    /// Returns the name of the provider.
    pub(crate) fn provider(&self) -> &Arc<str> {
        &self.0.provider
    }

    /// Waits until the call may be sent. `on_parked` is called with the reason for the wait each time that it changes. Dropping
    /// the future gives the call up and frees at once what it held.
    ///
    /// # Errors
    ///
    /// [`Refusal`] when it may not be sent, or not as soon as it must.
    pub(crate) async fn admit(
        &self,
        request: CallRequest,
        mut on_parked: impl FnMut(Parked),
    ) -> Result<CallPermit, Refusal> {
        let (permit, first, mut next) = self.ask(request);
        let mut output = first;
        loop {
            match output {
                Some(GovernorOutput::Admit(_)) => return Ok(permit),
                Some(GovernorOutput::Refuse(_, refusal)) => return Err(refusal),
                Some(GovernorOutput::Park(_, parking)) => {
                    let for_ms = parking.until.map(|it| it.saturating_sub(self.now()));
                    on_parked(Parked { reason: parking.reason, for_ms });
                }
                // The rules always answer; without an answer no call is to wait.
                None => return Ok(permit),
            }
            output = match &mut next {
                Some(next) => next.recv().await,
                None => None,
            };
        }
    }

    fn ask(
        &self,
        request: CallRequest,
    ) -> (CallPermit, Option<GovernorOutput>, Option<UnboundedReceiver<GovernorOutput>>) {
        let limits = &self.0.limits;
        let patience_ms = if request.has_other_provider {
            limits.max_park_with_fallback_ms
        } else {
            limits.max_park_ms
        };
        let now = self.now();
        let mut state = self.0.state.locked();
        let ticket = Ticket(state.n_tickets);
        state.n_tickets += 1;
        let CallRequest { tenant, tokens, is_retry, .. } = request;
        let ask = Ask { ticket, tenant, tokens, is_retry, patience_ms };
        let answer = state.handle(now, GovernorInput::Ask(ask), Some(ticket));
        let next = matches!(answer, Some(GovernorOutput::Park(..))).then(|| {
            let (sender, next) = unbounded_channel();
            state.waiting.insert(ticket, sender);
            next
        });
        drop(state);
        (CallPermit { limiter: self.clone(), ticket, is_over: false }, answer, next)
    }

    fn send(&self, input: GovernorInput) {
        let now = self.now();
        self.0.state.locked().handle(now, input, None);
    }

    /// Passes on that the governor's time has come.
    pub(super) fn tick(&self) {
        let now = self.now();
        let mut state = self.0.state.locked();
        state.armed = None;
        state.handle(now, GovernorInput::Tick, None);
    }

    /// Sets the actor that receives when to look from now on. What waits already is handed to it.
    pub(super) fn taken_over_by(&self, actor: &ActorRef<GovernorMsg>) -> Succession {
        let now = self.now();
        let mut state = self.0.state.locked();
        state.actor = Some(actor.clone());
        state.armed = None;
        state.arm(now);
        Succession { limiter: self.clone(), actor: actor.clone() }
    }
}

impl LimiterState {
    /// Takes one input and sends what becomes of each parked call to what waits for it. What becomes of `own`, which
    /// does not listen yet, comes back.
    fn handle(
        &mut self,
        now: u64,
        input: GovernorInput,
        own: Option<Ticket>,
    ) -> Option<GovernorOutput> {
        let mut answer = None;
        let mut outputs = std::mem::take(&mut self.outputs);
        self.rules.handle(now, input, &mut outputs);
        for output in outputs.drain(..) {
            let (GovernorOutput::Admit(ticket)
            | GovernorOutput::Park(ticket, _)
            | GovernorOutput::Refuse(ticket, _)) = output;
            if own == Some(ticket) {
                answer = Some(output);
                continue;
            }
            let is_last = !matches!(output, GovernorOutput::Park(..));
            if let Some(waiting) = self.waiting.get(&ticket) {
                // A receiver that is gone belongs to a call that is about to be given up.
                let _gone = waiting.send(output);
            }
            if is_last {
                self.waiting.remove(&ticket);
            }
        }
        self.outputs = outputs;
        self.arm(now);
        answer
    }

    /// Sends the actor the time of its next look, if that is sooner than it planned.
    fn arm(&mut self, now: u64) {
        let Some(at) = self.rules.wake_at(now) else { return };
        if self.armed.is_none_or(|armed| at < armed)
            && let Some(actor) = &self.actor
            && actor.cast(GovernorMsg::WakeAt(at)).is_ok()
        {
            self.armed = Some(at);
        }
    }
}

/// Held by a governor's actor: when it ends, another takes its place.
pub(super) struct Succession {
    limiter: ProviderLimiter,
    actor: ActorRef<GovernorMsg>,
}

impl Drop for Succession {
    fn drop(&mut self) {
        let mut state = self.limiter.0.state.locked();
        if state.actor.as_ref().map(|it| it.get_id()) == Some(self.actor.get_id()) {
            (state.actor, state.armed) = (None, None);
        }
        drop(state);
        self.limiter.start();
    }
}

impl fmt::Debug for ProviderLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderLimiter")
            .field("provider", &self.0.provider)
            .finish_non_exhaustive()
    }
}
