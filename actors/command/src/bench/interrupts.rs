//! How long a status query and an interrupt take while a turn waits for something.
//!
//! A turn must serve both within 10 ms at any moment (TRN-2). That is the time until the session
//! has answered; that the run is over comes later, when what it started has ended and the end is
//! written down and, as by default, forced to disk.

use std::{fs, path::Path, sync::Arc, time::Duration};

use ennead::{Events, Options, SessionHandle};
use ennead_runtime::{event::Event, run::RunEnd, step1_settings_resolution::Durability};
use futures::future;
use serde::Serialize;

use super::{
    BenchError,
    samples::{as_us, median},
    stage::{CALLS, RUNS_PER_SESSION, STALLS, Stage, WAITS, waiting_hook},
};

use crate::demo::is_last;

/// An interrupt or a status query is to be served within this time (TRN-2).
pub const SERVED_WITHIN: Duration = Duration::from_millis(10);

/// What a turn waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Waiting {
    /// A call that never ends.
    Tool,
    /// A model that stops in the middle of its answer.
    Stream,
    /// A hook that sleeps for a minute.
    Hook,
}

impl Waiting {
    /// All places at which a turn is interrupted.
    pub const ALL: [Waiting; 3] = [Waiting::Tool, Waiting::Stream, Waiting::Hook];

    fn prompt(self) -> &'static str {
        match self {
            Waiting::Tool => WAITS,
            Waiting::Stream => STALLS,
            Waiting::Hook => CALLS,
        }
    }
}

/// The median and the worst.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Latency {
    /// The median of all samples.
    #[serde(rename = "median_us", serialize_with = "as_us")]
    pub median: Duration,
    /// The longest of all samples.
    #[serde(rename = "max_us", serialize_with = "as_us")]
    pub max: Duration,
}

impl Latency {
    /// Returns whether all were at most [`SERVED_WITHIN`].
    pub fn is_in_time(&self) -> bool {
        self.max <= SERVED_WITHIN
    }

    fn of(mut samples: Vec<Duration>) -> Self {
        let median = median(&mut samples);
        Self { median, max: samples.last().copied().unwrap_or_default() }
    }
}

/// What interrupts took while turns waited.
#[derive(Clone, Debug, Serialize)]
pub struct Interrupt {
    /// What the turn waited for when it was interrupted.
    pub waiting: Waiting,
    /// Number of samples that were taken.
    pub n: u32,
    /// From asking the state of the session to the answer, while the turn waits.
    pub status: Latency,
    /// From the interrupt to the answer to a status query that was queued after it.
    pub interrupt: Latency,
    /// From the interrupt to the event that the run has ended.
    pub ended: Latency,
}

#[derive(Default)]
struct InterruptSamples {
    status: Vec<Duration>,
    interrupt: Vec<Duration>,
    ended: Vec<Duration>,
}

pub(super) async fn measure(waiting: Waiting, n: u32) -> Result<Interrupt, BenchError> {
    let mut stage = Stage::new(Options::default().placement).await?;
    let hook_runs = stage.path().join("hook-runs");
    let mut samples = InterruptSamples::default();
    let mut session = open(&stage, waiting, &hook_runs).await?;
    // The first one touches all code and is not counted.
    for run in 0..=n {
        if run % RUNS_PER_SESSION == 1 {
            session.close().await;
            session = open(&stage, waiting, &hook_runs).await?;
        }
        one(&mut stage, &session, waiting, &hook_runs, &mut samples).await?;
        if run == 0 {
            samples = InterruptSamples::default();
        }
    }
    session.close().await;
    stage.end().await;
    Ok(Interrupt {
        waiting,
        n,
        status: Latency::of(samples.status),
        interrupt: Latency::of(samples.interrupt),
        ended: Latency::of(samples.ended),
    })
}

async fn open(
    stage: &Stage,
    waiting: Waiting,
    hook_runs: &Path,
) -> Result<SessionHandle, BenchError> {
    let options = stage.session()?.durability(Durability::default());
    let options = match waiting {
        Waiting::Hook => {
            options.settings_json(serde_json::json!({ "hooks": waiting_hook(hook_runs) }))?
        }
        Waiting::Tool | Waiting::Stream => options,
    };
    Ok(stage.ennead.open(options).await?)
}

/// Runs until the turn waits, asks, interrupts.
async fn one(
    stage: &mut Stage,
    session: &SessionHandle,
    waiting: Waiting,
    hook_runs: &Path,
    samples: &mut InterruptSamples,
) -> Result<(), BenchError> {
    let mut events = session.events();
    let clock = Arc::clone(&stage.clock);
    // A run that ends by itself ends the measurement, too.
    let run = async {
        match session.prompt(waiting.prompt()).await?.end {
            RunEnd::Interrupted => Ok(()),
            end => Err(BenchError::Ended(end.code())),
        }
    };
    let interrupting = async {
        match waiting {
            Waiting::Tool => stage.waiting.recv().await.ok_or(BenchError::Gone)?,
            Waiting::Stream => delta(&mut events).await?,
            Waiting::Hook => appears(hook_runs).await?,
        }
        let asked = clock.elapsed();
        session.status().await?;
        samples.status.push(clock.elapsed().saturating_sub(asked));
        let interrupted = clock.elapsed();
        session.interrupt();
        let served = async {
            let status = session.status().await;
            status.map(|_| clock.elapsed().saturating_sub(interrupted))
        };
        let ended = async {
            end(&mut events).await;
            clock.elapsed().saturating_sub(interrupted)
        };
        let (served, ended) = future::join(served, ended).await;
        samples.interrupt.push(served?);
        samples.ended.push(ended);
        Ok::<(), BenchError>(())
    };
    future::try_join(run, interrupting).await.map(drop)
}

/// Waits until the model says something.
async fn delta(events: &mut Events) -> Result<(), BenchError> {
    while let Some(event) = events.next().await {
        if matches!(event.event, Event::TextDelta { .. }) {
            return Ok(());
        }
        if is_last(&event) {
            break;
        }
    }
    Err(BenchError::Gone)
}

async fn end(events: &mut Events) {
    while let Some(event) = events.next().await {
        if is_last(&event) {
            break;
        }
    }
}

/// Waits until the hook has made its file, and takes it away for the next one.
async fn appears(file: &Path) -> Result<(), BenchError> {
    while !file.exists() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(fs::remove_file(file)?)
}
