//! What the harness itself costs: time of a turn and of its steps, memory of a session, and how
//! long an interrupt takes.
//!
//! Everything runs in this process on the simulated model, whose own time is taken off. Sessions
//! read no settings and no instruction files, so that no hooks of the user are run hundreds of times and
//! figures of two machines mean the same. Figures of debug builds say little.

mod error;
mod history;
mod interrupts;
mod isolation;
mod memory;
mod meters;
mod passive;
mod samples;
mod stage;
mod steps;
mod turns;

use serde::Serialize;

pub use error::BenchError;
pub use history::HistoryCost;
pub use interrupts::{Interrupt, Latency, SERVED_WITHIN, Waiting};
pub use isolation::{Isolated, Isolation, Misbehaved, Misbehaviour, RunTimes};
pub use memory::Memory;
pub use passive::{Known, Prepared, Resumed};
pub use steps::StepCost;
pub use turns::TurnCost;

use self::{
    stage::{ANSWERS, CALLS},
    turns::BenchLoad,
};

/// Sessions that run prompts at once, where many do.
const AT_ONCE: u32 = 64;

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BenchPlan {
    /// Turns that each figure about turns and steps is taken from, at least.
    pub n_turns: u32,
    /// Sessions that are opened to lie idle; of these, at most 64 run prompts at once.
    pub n_sessions: u32,
    /// Interrupts of each kind.
    pub n_interrupts: u32,
}

impl Default for BenchPlan {
    fn default() -> Self {
        Self { n_turns: 500, n_sessions: 500, n_interrupts: 50 }
    }
}

/// What was measured. Durations are microseconds in JSON.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// Whether the build checks what a release does not; then the figures say little.
    pub debug_build: bool,
    /// Memory that idle sessions take.
    pub memory: Memory,
    /// Of turns: alone and many at once, with and without a call.
    pub turns: Vec<TurnCost>,
    /// The cost of each of the nine steps, in order.
    pub steps: Vec<StepCost>,
    /// Of interrupts, by what the turn was waiting for.
    pub interrupts: Vec<Interrupt>,
}

impl BenchPlan {
    /// Measures everything, one after the other.
    ///
    /// # Errors
    ///
    /// [`BenchError`]; there are no figures then.
    pub async fn run(self) -> Result<Figures, BenchError> {
        // First, while no memory of other sessions lies free and could be used again.
        let memory = memory::measure(self.n_sessions.max(1)).await?;
        let mut turns = Vec::new();
        for n_sessions in [1, AT_ONCE.min(self.n_sessions.max(1))] {
            for (what, prompt, turns_per_run) in
                [("an answer", ANSWERS, 1), ("a call and an answer", CALLS, 2)]
            {
                let n_turns = self.n_turns.max(1);
                let load = BenchLoad { what, prompt, turns_per_run, n_sessions, n_turns };
                turns.push(turns::measure(load).await?);
            }
        }
        let steps = steps::measure(self.n_turns.max(1)).await?;
        let mut interrupts = Vec::new();
        for waiting in Waiting::ALL {
            interrupts.push(interrupts::measure(waiting, self.n_interrupts.max(1)).await?);
        }
        Ok(Figures { debug_build: cfg!(debug_assertions), memory, turns, steps, interrupts })
    }
}
