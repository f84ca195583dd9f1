//! Time of a turn in addition to the model's own.
//!
//! Sessions run on one scheduler thread. There the model and the harness take turns, so the
//! model's time can be taken off what passed, also when many sessions run at once.

use std::time::Duration;

use ennead::{Placement, SessionHandle};
use futures::future;
use serde::Serialize;

use super::{
    BenchError,
    meters::process_cpu,
    samples::as_us,
    stage::{RUNS_PER_SESSION, Stage, answered, close},
};

/// The sessions and turns that are run.
pub(super) struct BenchLoad {
    /// What each run holds, in words.
    pub(super) what: &'static str,
    pub(super) prompt: &'static str,
    pub(super) turns_per_run: u32,
    pub(super) n_sessions: u32,
    pub(super) n_turns: u32,
}

/// What a turn costs in time and processor time.
#[derive(Clone, Debug, Serialize)]
pub struct TurnCost {
    /// What each run holds.
    pub what: &'static str,
    /// Number of sessions that run at once.
    pub n_sessions: u32,
    /// Turns that were run.
    pub n_turns: u32,
    /// Time that passed, without the model's own, for each turn of all sessions.
    #[serde(rename = "wall_us", serialize_with = "as_us")]
    pub wall: Duration,
    /// Processor time of the process, without the model's own, for each turn.
    #[serde(rename = "cpu_us", serialize_with = "as_us")]
    pub cpu: Duration,
    /// Processor time of the simulated model for each turn; it was taken off.
    #[serde(rename = "model_cpu_us", serialize_with = "as_us")]
    pub model_cpu: Duration,
}

/// What the meters say at one moment, or what they gained between two.
#[derive(Clone, Copy, Default)]
pub(super) struct Reading {
    wall: Duration,
    cpu: Duration,
    model_wall: Duration,
    model_cpu: Duration,
}

impl Reading {
    pub(super) fn of(stage: &Stage) -> Self {
        Self {
            wall: stage.clock.elapsed(),
            cpu: process_cpu(),
            model_wall: stage.model_time.wall(),
            model_cpu: stage.model_time.cpu(),
        }
    }

    /// What was gained since.
    pub(super) fn since(self, before: Reading) -> Reading {
        Reading {
            wall: self.wall.saturating_sub(before.wall),
            cpu: self.cpu.saturating_sub(before.cpu),
            model_wall: self.model_wall.saturating_sub(before.model_wall),
            model_cpu: self.model_cpu.saturating_sub(before.model_cpu),
        }
    }

    /// Returns the time without the model's own.
    pub(super) fn own_wall(self) -> Duration {
        self.wall.saturating_sub(self.model_wall)
    }

    /// Returns the processor time without the model's own.
    pub(super) fn own_cpu(self) -> Duration {
        self.cpu.saturating_sub(self.model_cpu)
    }

    fn add(&mut self, more: Reading) {
        self.wall += more.wall;
        self.cpu += more.cpu;
        self.model_wall += more.model_wall;
        self.model_cpu += more.model_cpu;
    }
}

pub(super) async fn measure(load: BenchLoad) -> Result<TurnCost, BenchError> {
    let stage = Stage::new(Placement::Threads(1)).await?;
    // Touches all code and all pools.
    round(&stage, &load, 1).await?;
    let mut spent = Reading::default();
    let mut n_turns = 0;
    while n_turns < load.n_turns {
        let left = (load.n_turns - n_turns).div_ceil(load.n_sessions * load.turns_per_run);
        let (gained, turns) = round(&stage, &load, left.min(RUNS_PER_SESSION)).await?;
        n_turns += turns;
        spent.add(gained);
    }
    stage.end().await;
    Ok(TurnCost {
        what: load.what,
        n_sessions: load.n_sessions,
        n_turns,
        wall: spent.own_wall() / n_turns,
        cpu: spent.own_cpu() / n_turns,
        model_cpu: spent.model_cpu / n_turns,
    })
}

/// New sessions run this many prompts each; opening and closing them is not counted.
async fn round(stage: &Stage, load: &BenchLoad, n_runs: u32) -> Result<(Reading, u32), BenchError> {
    let sessions = stage.open(load.n_sessions).await?;
    let before = Reading::of(stage);
    let runs = sessions.iter().map(|it| one_by_one(it, load.prompt, n_runs));
    let turns = future::try_join_all(runs).await?;
    let gained = Reading::of(stage).since(before);
    close(&sessions).await;
    Ok((gained, turns.iter().sum()))
}

async fn one_by_one(session: &SessionHandle, prompt: &str, n_runs: u32) -> Result<u32, BenchError> {
    let mut n_turns = 0;
    for _ in 0..n_runs {
        n_turns += answered(session, prompt).await?;
    }
    Ok(n_turns)
}
