//! What tenants of one server feel of others that misbehave.
//!
//! One server in this process hosts all sessions, and is asked over loopback as any client asks it. A tenth of the
//! tenants misbehave. Prompts of the others come at a steady pace, whether those before have ended or not, and what is
//! measured begins when a prompt is due: so a server that falls back is not asked less. Quiet and loud times take
//! turns, because a machine that others use has better and worse minutes.

pub(super) mod hall;
mod times;

use std::time::Duration;

use futures::future;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

pub use self::times::RunTimes;
use self::{
    hall::{Asked, Guest, Hall},
    times::RunSamples,
};
use super::{BenchError, meters::process_cpu};
use crate::demo_load::resident_kib;
use ennead_runtime::saturating::Saturating as _;

/// How often quiet and loud take turns.
const ROUNDS: u32 = 3;

/// From one prompt of a tenant that behaves to the next of any such: 50 in a second.
const PACE: Duration = Duration::from_millis(20);

/// Turns of a run that is measured: one with a call, and one that answers.
const TURNS_PER_RUN: u32 = 2;

/// From the first prompts of those that misbehave to the first that is measured.
const WARM_UP: Duration = Duration::from_secs(2);

/// Sessions that run their first prompt at once.
const AT_ONCE: usize = 64;

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isolation {
    /// Tenants in all; a tenth of them, and at least one, misbehave.
    pub n_tenants: u32,
    /// Sessions in all. Each tenant has as many as the others, and at least one.
    pub n_sessions: u32,
    /// Turns that each figure is taken from, at least.
    pub n_turns: u32,
}

/// How a tenant misbehaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Misbehaviour {
    /// Half of its calls and half of its model's answers never end.
    Hang,
    /// Each turn has a result of a mebibyte, and the next follows at once.
    Flood,
    /// Each call of a tool panics.
    Panic,
    /// Each run starts four sub-agents, which try to start more.
    Spawn,
}

impl Misbehaviour {
    /// All of them, in the order in which tenants have them.
    pub const ALL: [Self; 4] = [Self::Hang, Self::Flood, Self::Panic, Self::Spawn];

    /// Returns the name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hang => "hang",
            Self::Flood => "flood",
            Self::Panic => "panic",
            Self::Spawn => "spawn",
        }
    }
}

/// What those that misbehave did.
#[derive(Clone, Debug, Serialize)]
pub struct Misbehaved {
    /// What these tenants do to others.
    pub how: Misbehaviour,
    /// Tenants that did so.
    pub n_tenants: u32,
    /// Their runs that ended, interrupted ones included.
    pub n_runs: u64,
}

/// What was measured. Times are of runs of two turns.
#[derive(Clone, Debug, Serialize)]
pub struct Isolated {
    /// Whether the build checks what a release does not; then the figures say little.
    pub debug_build: bool,
    /// Number of tenants, those that misbehave included.
    pub n_tenants: u32,
    /// Sessions in all, each of them an actor.
    pub n_sessions: u32,
    /// Time that the simulated model takes before each answer, in milliseconds. It is part of the times.
    pub model_ms: u64,
    /// The tenants that behave, while the others rest.
    pub quiet: RunTimes,
    /// The tenants that behave, while the others misbehave.
    pub loud: RunTimes,
    /// What was done to them.
    pub misbehaved: Vec<Misbehaved>,
    /// Resident memory of the process with all sessions open, in kibibytes; 0 where the system does not say.
    pub open_kib: u64,
    /// Resident memory at the end, in KiB.
    pub end_kib: u64,
}

impl Isolated {
    /// Returns the 99th percentile of loud times, in hundredths of that of quiet ones.
    pub fn percent_p99(&self) -> u64 {
        let quiet = self.quiet.p99.as_micros().max(1);
        u64::saturating(self.loud.p99.as_micros() * 100 / quiet)
    }
}

impl Isolation {
    /// Opens all sessions and measures.
    ///
    /// # Errors
    ///
    /// [`BenchError`]; there are no figures then. A run that fails or is refused is counted.
    pub async fn run(self) -> Result<Isolated, BenchError> {
        let n_tenants = self.n_tenants.max(2);
        let per_tenant = (self.n_sessions / n_tenants).max(1);
        let n_loud = (n_tenants / 10).max(1);
        let (hall, listener) = Hall::open(n_tenants).await?;
        let measured = tokio::select! {
            measured = measure(&hall, self, [n_tenants, n_loud, per_tenant]) => measured,
            // It ends before the measurement only where it cannot listen.
            ended = hall.listen(listener) => ended.and(Err(BenchError::Gone)),
        };
        hall.end().await;
        measured
    }
}

async fn measure(
    hall: &Hall,
    isolation: Isolation,
    [n_tenants, n_loud, per_tenant]: [u32; 3],
) -> Result<Isolated, BenchError> {
    let mut guests = hall.guests(per_tenant).await?;
    // Each becomes an actor, and each has a history.
    for some in guests.chunks(AT_ONCE) {
        let asked = some.iter().map(|it| hall.ask(it, hall::BEHAVES));
        let failed = future::join_all(asked).await.into_iter().find(|it| *it != Asked::Answered);
        if failed.is_some() {
            return Err(BenchError::Gone);
        }
    }
    let n_good = usize::saturating((n_tenants - n_loud) * per_tenant);
    let good: Vec<Guest> = interleaved(guests.drain(..n_good).collect(), per_tenant);
    let loud = guests;
    let open_kib = resident_kib();
    let n_runs = isolation.n_turns.div_ceil(TURNS_PER_RUN * ROUNDS).max(1);
    let (mut quiet_times, mut loud_times) = (RunSamples::default(), RunSamples::default());
    let mut n_misbehaved = [0_u64; 4];
    let mut next = good.iter().cycle();
    for _ in 0..ROUNDS {
        let some: Vec<Guest> = next.by_ref().take(n_runs as usize).cloned().collect();
        quiet_times.add(window(hall, some).await);
        let some: Vec<Guest> = next.by_ref().take(n_runs as usize).cloned().collect();
        let stop = CancellationToken::new();
        let noise = make_noise(hall, &loud, n_loud, &stop);
        let measured = async {
            tokio::time::sleep(WARM_UP).await;
            let measured = window(hall, some).await;
            stop.cancel();
            measured
        };
        let (made, measured) = future::join(noise, measured).await;
        loud_times.add(measured);
        for (all, more) in n_misbehaved.iter_mut().zip(made) {
            *all += more;
        }
    }
    let misbehaved = Misbehaviour::ALL.into_iter().zip(n_misbehaved).enumerate();
    let misbehaved = misbehaved.map(|(at, (how, n_runs))| {
        let n_tenants = (0..n_loud as usize).filter(|it| it % 4 == at).count();
        Misbehaved { how, n_tenants: u32::saturating(n_tenants), n_runs }
    });
    Ok(Isolated {
        debug_build: cfg!(debug_assertions),
        n_tenants,
        n_sessions: n_tenants * per_tenant,
        model_ms: hall::MODEL_MS,
        quiet: quiet_times.times(),
        loud: loud_times.times(),
        misbehaved: misbehaved.collect(),
        open_kib,
        end_kib: resident_kib(),
    })
}

/// One session of each tenant, then the second of each, and so on.
fn interleaved(guests: Vec<Guest>, per_tenant: u32) -> Vec<Guest> {
    let mut keyed: Vec<_> = guests.into_iter().enumerate().collect();
    keyed.sort_by_key(|(at, _)| at % per_tenant.max(1) as usize);
    keyed.into_iter().map(|it| it.1).collect()
}

/// Has each of these run one prompt, when it is due.
async fn window(hall: &Hall, guests: Vec<Guest>) -> RunSamples {
    let start = tokio::time::Instant::now();
    let cpu = process_cpu();
    let runs = (0_u32..).zip(&guests).map(|(at, guest)| async move {
        let due = start + PACE * at;
        tokio::time::sleep_until(due).await;
        (hall.ask(guest, hall::BEHAVES).await, due.elapsed())
    });
    let mut samples = RunSamples::default();
    for (asked, took) in future::join_all(runs).await {
        samples.push(asked, took);
    }
    samples.spent(process_cpu().saturating_sub(cpu), start.elapsed());
    samples
}

/// Has all sessions of the tenants that misbehave do so until `stop`; returns how many runs of each kind ended.
async fn make_noise(
    hall: &Hall,
    guests: &[Guest],
    n_loud: u32,
    stop: &CancellationToken,
) -> [u64; 4] {
    let per_tenant = guests.len() / n_loud.max(1) as usize;
    let makers = guests.iter().enumerate().map(|(at, guest)| async move {
        let kind = at / per_tenant.max(1) % 4;
        let prompts = hall::MISBEHAVES.get(kind).copied().unwrap_or_default();
        let prompt = prompts.get(at % prompts.len().max(1)).copied().unwrap_or_default();
        (kind, hall.misbehave(guest, prompt, stop).await)
    });
    let mut n_runs = [0; 4];
    for (kind, n) in future::join_all(makers).await {
        if let Some(all) = n_runs.get_mut(kind) {
            *all += n;
        }
    }
    n_runs
}
