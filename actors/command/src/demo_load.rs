//! Many demonstrations at once, and what hosting them costs.
//!
//! Added latency is what a run takes in addition to the model and the tools: the time from the
//! start of each run, of coordinators and sub-agents alike, to its end, less the time in which at
//! least one of its tools ran, less the time from sending each request to the last byte of its
//! answer; divided by the turns. It holds the waiting for a free core, so it grows with the load.

mod timed_http;
mod times;

use std::{
    fs,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use ennead::{Ennead, Options, SessionHandle, SystemClock};
use ennead_runtime::{
    ports::Clock, run::RunRequest, saturating::Saturating as _,
    step1_settings_resolution::Durability,
};
use futures::future;
use tokio_util::sync::CancellationToken;

use self::{timed_http::TimedHttp, times::ConversationTimes};
use super::{
    demo::{Demo, DemoError, Survey, is_last, listen, simulator},
    simulate,
};

/// What hosting many conversations cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostingCost {
    /// Number of conversations that run at once.
    pub n_conversations: u32,
    /// Those that did not end with an answer.
    pub n_failed: u32,
    /// Sub-agents of all of them.
    pub n_agents: u64,
    /// Turns of all of them, sub-agents included.
    pub n_turns: u64,
    /// From the first prompt to the last end.
    pub elapsed: Duration,
    /// What the runs of all agents took together, by what they waited for.
    pub spent: Spent,
    /// Added per turn, on average.
    pub added_per_turn: Duration,
    /// The same of one conversation that ran before, alone.
    pub added_alone: Duration,
    /// Resident memory before the first session was opened, in kibibytes.
    pub before_kib: u64,
    /// The most resident memory seen when a conversation ended, in kibibytes.
    pub peak_kib: u64,
}

/// Where the time of agents went. Agents that run side by side count each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// At least one of the agent's tools ran, those that wait for its sub-agents left out.
    pub in_tools: Duration,
    /// An answer of the model was waited for, from sending the request to its last byte.
    pub in_model: Duration,
    /// The rest: what hosting took, waiting for a free core included.
    pub hosting: Duration,
}

impl Spent {
    /// Returns the parts of a thousand that hosting took.
    pub fn hosting_per_mille(&self) -> u64 {
        let all = (self.in_tools + self.in_model + self.hosting).as_nanos().max(1);
        u64::try_from(self.hosting.as_nanos() * 1000 / all).unwrap_or(1000)
    }
}

impl HostingCost {
    /// Counts the turns in a second.
    pub fn turns_per_second(&self) -> u64 {
        let ms = self.elapsed.as_millis().max(1);
        u64::saturating(u128::from(self.n_turns) * 1000 / ms)
    }

    /// Returns the growth of resident memory for each conversation, its sub-agents and its share of the simulated
    /// server included, in kibibytes.
    pub fn kib_per_conversation(&self) -> u64 {
        self.peak_kib.saturating_sub(self.before_kib) / u64::from(self.n_conversations.max(1))
    }
}

impl Demo {
    /// Runs `n` surveys at once. Settings files are not read, so that no hooks of the user are run
    /// thousands of times; lines are written and not forced to disk.
    ///
    /// # Errors
    ///
    /// [`DemoError`]; a conversation that fails is counted.
    pub async fn run_many(self, n: u32) -> Result<HostingCost, DemoError> {
        let survey = self.prepare()?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let (listener, server) = listen().await?;
        let stop = CancellationToken::new();
        let conversations = async {
            let result = async {
                // It also touches all code and all pools, so that memory then grows by what
                // conversations need.
                let alone = converse(&survey, &server, 1, &clock).await?;
                let load = converse(&survey, &server, n, &clock).await?;
                Ok(HostingCost { added_alone: alone.added_per_turn, ..load })
            };
            let result = result.await;
            stop.cancel();
            result
        };
        let serving = simulate::serve(simulator()?, listener, stop.clone());
        let (served, result) = future::join(serving, conversations).await;
        served.map_err(DemoError::Serve)?;
        result
    }
}

async fn converse(
    survey: &Survey,
    server: &str,
    n: u32,
    clock: &Arc<dyn Clock>,
) -> Result<HostingCost, DemoError> {
    let before_kib = resident_kib();
    let transport = Arc::new(TimedHttp::new(Arc::clone(clock)));
    let model_ns = Arc::clone(&transport.model_ns);
    let options = Options::default().transport(transport).clock(Arc::clone(clock));
    let ennead = Ennead::start(options).await?;
    // Cloned for each: they share their tools.
    let mut session = survey.session(server)?.durability(Durability::Process);
    session.reads_settings = false;
    session.reads_sources = false;
    let mut sessions = Vec::new();
    for _ in 0..n {
        sessions.push(ennead.open(session.clone()).await?);
    }
    let start = clock.elapsed();
    let runs = sessions.iter().map(|it| one(it, survey.request(), clock.as_ref()));
    let ended = future::join_all(runs).await;
    let elapsed = clock.elapsed().saturating_sub(start);
    future::join_all(sessions.iter().map(SessionHandle::close)).await;
    ennead.shutdown().await;
    let n_turns: u64 = ended.iter().map(|it| it.times.n_turns).sum();
    let own: Duration = ended.iter().map(|it| it.times.own).sum();
    let model = Duration::from_nanos(model_ns.load(Ordering::Relaxed));
    let turns = u32::saturating(n_turns.max(1));
    Ok(HostingCost {
        n_conversations: n,
        n_failed: ended.iter().map(|it| u32::from(!it.answered)).sum(),
        n_agents: ended.iter().map(|it| it.times.n_agents).sum(),
        n_turns,
        elapsed,
        spent: Spent {
            in_tools: ended.iter().map(|it| it.times.tools).sum(),
            in_model: model,
            hosting: own.saturating_sub(model),
        },
        added_per_turn: own.saturating_sub(model) / turns,
        added_alone: Duration::ZERO,
        before_kib,
        peak_kib: ended.iter().map(|it| it.resident_kib).max().unwrap_or(before_kib),
    })
}

struct ConversationEnd {
    answered: bool,
    times: ConversationTimes,
    resident_kib: u64,
}

async fn one(session: &SessionHandle, request: RunRequest, clock: &dyn Clock) -> ConversationEnd {
    let mut events = session.events();
    let watching = async {
        let mut times = ConversationTimes::default();
        while let Some(event) = events.next().await {
            times.observe(&event.event, clock.elapsed());
            if is_last(&event) {
                break;
            }
        }
        times
    };
    let run = async {
        let outcome = session.run(request).await;
        let resident_kib = resident_kib();
        if outcome.is_err() {
            // Without an outcome there may be no last event either.
            session.close().await;
        }
        (outcome.is_ok_and(|it| it.end.is_success()), resident_kib)
    };
    let ((answered, resident_kib), times) = future::join(run, watching).await;
    ConversationEnd { answered, times, resident_kib }
}

/// Returns the resident memory of this process in kibibytes; 0 where the system does not report it.
pub(super) fn resident_kib() -> u64 {
    memory_kib("VmRSS:")
}

/// Returns the most resident memory in kibibytes since the system was told to forget it; 0 where it does not report it.
pub(super) fn peak_kib() -> u64 {
    memory_kib("VmHWM:")
}

fn memory_kib(field: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|it| it.strip_prefix(field));
    line.and_then(|it| it.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosting_is_told_apart_from_tools_and_model() {
        let ms = Duration::from_millis;
        let spent = Spent { in_tools: ms(900), in_model: ms(80), hosting: ms(20) };
        assert_eq!(spent.hosting_per_mille(), 20);
        assert_eq!(Spent::default().hosting_per_mille(), 0);
    }

    #[test]
    fn figures_are_per_second_and_per_conversation() {
        let load = HostingCost {
            n_conversations: 4,
            n_failed: 0,
            n_agents: 0,
            n_turns: 30,
            elapsed: Duration::from_millis(500),
            spent: Spent::default(),
            added_per_turn: Duration::ZERO,
            added_alone: Duration::ZERO,
            before_kib: 1000,
            peak_kib: 1400,
        };
        assert_eq!((load.turns_per_second(), load.kib_per_conversation()), (60, 100));
    }
}
