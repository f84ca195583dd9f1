//! One per provider and key: wakes the calls that wait for their turn.
//!
//! Asking takes no message. The state machine is in a [`ProviderLimiter`] behind a short mutex, and
//! a call without an obstacle passes it on its own thread in under a microsecond; waking
//! this actor on another thread would cost 48 µs. The actor owns what has to wait: the timer, which is
//! set only while a call is parked. It receives messages of limiters, and its parent is a shard. When it is gone, the
//! next living shard starts another on the same limiter, which takes over everything that waits.

mod provider_limiter;

use std::{collections::BTreeMap, sync::Mutex, time::Duration};

use ennead_runtime::{digest::Digest, entropy::EntropyStream, governor::limits::GovernorLimits};
use ennead_tools::locked::Locked as _;
use ractor::{Actor, ActorProcessingErr, ActorRef, MessagingErr, concurrency::JoinHandle};

use crate::{
    groundwork::directory::{ActorKind, Directory, Registration},
    options::Endpoint,
};

pub(crate) use provider_limiter::{CallPermit, CallRequest, Parked, ProviderLimiter, Spawner};

/// What a governor receives.
#[derive(Debug)]
pub(crate) enum GovernorMsg {
    /// Look again at this time of the limiter's clock, in milliseconds, and not before.
    WakeAt(u64),
    /// The time that the governor waited for has come.
    Tick,
}

/// The actor of one limiter.
pub(crate) struct Governor;

pub(crate) struct GovernorState {
    limiter: ProviderLimiter,
    timer: Option<JoinHandle<Result<(), MessagingErr<GovernorMsg>>>>,
    _registration: Registration,
    /// Dropped with the actor, however it ends.
    _succession: provider_limiter::Succession,
}

impl Actor for Governor {
    type Msg = GovernorMsg;
    type State = GovernorState;
    type Arguments = (ProviderLimiter, Directory);

    async fn pre_start(
        &self,
        myself: ActorRef<GovernorMsg>,
        (limiter, directory): (ProviderLimiter, Directory),
    ) -> Result<GovernorState, ActorProcessingErr> {
        let registration = directory.enter(ActorKind::Governor, None, myself.get_cell());
        let succession = limiter.taken_over_by(&myself);
        Ok(GovernorState {
            limiter,
            timer: None,
            _registration: registration,
            _succession: succession,
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<GovernorMsg>,
        message: GovernorMsg,
        state: &mut GovernorState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            GovernorMsg::WakeAt(at) => {
                if let Some(timer) = state.timer.take() {
                    timer.abort();
                }
                let wait = Duration::from_millis(at.saturating_sub(state.limiter.now()));
                state.timer = Some(myself.send_after(wait, || GovernorMsg::Tick));
            }
            GovernorMsg::Tick => state.limiter.tick(),
        }
        Ok(())
    }
}

impl Drop for GovernorState {
    fn drop(&mut self) {
        if let Some(timer) = self.timer.take() {
            timer.abort();
        }
    }
}

/// The limiters of one `Ennead`, by provider and key. Kept as long as it lives, so that a session which
/// is closed and opened again does not forget that a quota is used up.
#[derive(Debug)]
pub(crate) struct Governors {
    limits: GovernorLimits,
    stream: EntropyStream,
    spawners: Vec<Spawner>,
    limiters: Mutex<BTreeMap<(String, Digest), ProviderLimiter>>,
}

impl Governors {
    /// Makes the set of limiters, which is empty. Their actors will be started by the first of these spawners that can.
    pub(crate) fn new(
        limits: GovernorLimits,
        stream: EntropyStream,
        spawners: Vec<Spawner>,
    ) -> Self {
        Self { limits, stream: stream.child("governor"), spawners, limiters: Mutex::default() }
    }

    /// Returns the limiter in front of this endpoint. Its name holds no key, only a digest of it.
    pub(crate) fn of(&self, endpoint: &Endpoint) -> ProviderLimiter {
        let base = endpoint.base.trim_end_matches('/').to_owned();
        // Names hold no zero and values no zero either, so no two lists of headers read the same.
        let headers = endpoint.headers.iter().flat_map(|(name, value)| [&**name, value]);
        let secret = Digest::of(headers.collect::<Vec<_>>().join("\0").as_bytes());
        let mut limiters = self.limiters.locked();
        limiters
            .entry((base, secret))
            .or_insert_with_key(|(base, secret)| {
                let stream = self.stream.child(&format!("{base} {secret}"));
                let provider = endpoint.provider.clone();
                let limiter =
                    ProviderLimiter::new(provider, self.limits, stream, self.spawners.clone());
                limiter.start();
                limiter
            })
            .clone()
    }
}
