//! The runs of a session: which wait, which is under way, and what became of those that ended.
//!
//! A change is planned, written to the session's journal, and then made: so a process that takes over knows what
//! was promised, and a request that is sent twice under one key is one run.

use std::collections::{BTreeMap, VecDeque};

use ennead_runtime::{
    ids::RunId,
    serve::run_queue::{RunQueue, RunRank},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;

/// Ended runs that are remembered, and with them their keys.
const MAX_ENDED: usize = 256;

/// How a prompt that arrives during a run is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Delivery {
    /// After the runs that wait.
    #[default]
    Queue,
    /// The run under way ends after its present turn, whose tool calls are finished; then this one runs.
    Steer,
    /// The run under way ends now; then this one runs.
    Interrupt,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunState {
    /// It waits for those before it, or for a place among those that run.
    Queued,
    /// It is under way.
    Running,
    /// It has left an outcome.
    Finished,
    /// It has ended without one.
    Failed,
    /// The process ended during it; another run goes on with it.
    Continued,
}

impl RunState {
    fn is_over(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }
}

/// A run of a session, from its receipt to its outcome.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) id: RunId,
    pub(crate) delivery: Delivery,
    pub(crate) state: RunState,
    /// Kept until it has ended.
    pub(crate) prompt: Option<String>,
    /// The key of the request and the digest of its body.
    pub(crate) key: Option<(String, String)>,
    pub(crate) accepted_at: Timestamp,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) ended_at: Option<Timestamp>,
    /// What it left, or why it left nothing.
    pub(crate) outcome: Option<Value>,
    /// The run of an earlier process that this one goes on with.
    pub(crate) continues: Option<RunId>,
    pub(crate) continued_by: Option<RunId>,
    /// Cancelled when it has ended.
    #[serde(skip)]
    pub(crate) ended: CancellationToken,
}

impl Run {
    pub(crate) fn new(id: RunId, prompt: String, delivery: Delivery, at: Timestamp) -> Self {
        Self {
            id,
            delivery,
            state: RunState::Queued,
            prompt: Some(prompt),
            key: None,
            accepted_at: at,
            started_at: None,
            ended_at: None,
            outcome: None,
            continues: None,
            continued_by: None,
            ended: CancellationToken::new(),
        }
    }
}

impl Run {
    fn rank(&self) -> RunRank {
        match (&self.continues, self.delivery) {
            (Some(_), _) => RunRank::Continuation,
            (None, Delivery::Steer | Delivery::Interrupt) => RunRank::Urgent,
            (None, Delivery::Queue) => RunRank::Patient,
        }
    }
}

/// The runs of a session.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    by_id: BTreeMap<RunId, Run>,
    /// In the order in which they were accepted.
    order: VecDeque<RunId>,
    queue: RunQueue,
    keys: BTreeMap<String, RunId>,
}

impl Runs {
    /// Reads the next line of a journal. The last line of a run counts.
    pub(crate) fn replay(&mut self, run: Run) {
        self.insert(run);
        self.forget();
    }

    /// Sorts those that wait, once all lines of a journal are read.
    pub(crate) fn replayed(mut self) -> Self {
        let of = |state| self.oldest_first().filter(move |it| it.state == state);
        let waiting = of(RunState::Queued).map(|it| (it.id.clone(), it.rank())).collect();
        let running = of(RunState::Running).map(|it| it.id.clone()).next();
        self.queue = RunQueue::restore(waiting, running);
        self
    }

    /// Returns the next run as it is once it has begun; `None` when there is none, or one is active.
    pub(crate) fn begun(&self, at: Timestamp) -> Option<Run> {
        let mut run = self.by_id.get(self.queue.next()?)?.clone();
        (run.state, run.started_at) = (RunState::Running, Some(at));
        Some(run)
    }

    /// Returns a run that has begun as it is once it waits again: it cannot run yet.
    pub(crate) fn returned(&self, id: &RunId) -> Option<Run> {
        let mut run = self.by_id.get(id)?.clone();
        (run.state, run.started_at) = (RunState::Queued, None);
        Some(run)
    }

    /// Returns a run as it is once it has ended.
    pub(crate) fn with_outcome(
        &self,
        id: &RunId,
        state: RunState,
        outcome: Value,
        at: Timestamp,
    ) -> Option<Run> {
        let mut run = self.by_id.get(id)?.clone();
        (run.state, run.outcome, run.ended_at) = (state, Some(outcome), Some(at));
        run.prompt = None;
        Some(run)
    }

    /// Returns a run as it is once `next` continues it, after `next` itself, which is then the first that waits.
    pub(crate) fn gone_on(&self, id: &RunId, mut next: Run) -> Vec<Run> {
        next.continues = Some(id.clone());
        let ended = self.with_outcome(id, RunState::Continued, Value::Null, next.accepted_at);
        let ended = ended.map(|it| Run { continued_by: Some(next.id.clone()), ..it });
        std::iter::once(next).chain(ended).collect()
    }

    /// Returns the runs that are not over, as they are once they have failed.
    pub(crate) fn failed(&self, outcome: &Value, at: Timestamp) -> Vec<Run> {
        let failed = |id| self.with_outcome(id, RunState::Failed, outcome.clone(), at);
        self.queue.open().filter_map(failed).collect()
    }

    /// Makes a change that was planned and written. Returns how many runs are before one that is new.
    pub(crate) fn apply(&mut self, run: Run) -> usize {
        let (id, rank, mut n_before) = (run.id.clone(), run.rank(), 0);
        match run.state {
            RunState::Queued if self.by_id.contains_key(&id) => self.queue.put_back(id, rank),
            RunState::Queued => n_before = self.queue.accept(id, rank),
            RunState::Running => self.queue.begin(&id),
            RunState::Finished | RunState::Failed | RunState::Continued => self.queue.end(&id),
        }
        self.insert(run);
        self.forget();
        n_before
    }

    pub(crate) fn get(&self, id: &RunId) -> Option<&Run> {
        self.by_id.get(id)
    }

    /// Returns the run that was asked for under this key.
    pub(crate) fn of_key(&self, key: &str) -> Option<&Run> {
        self.by_id.get(self.keys.get(key)?)
    }

    pub(crate) fn running(&self) -> Option<&RunId> {
        self.queue.running()
    }

    pub(crate) fn n_queued(&self) -> usize {
        self.queue.n_waiting()
    }

    /// Returns the active run and then those that wait, in the order in which they will be taken.
    #[cfg(test)]
    pub(crate) fn open(&self) -> impl Iterator<Item = &RunId> {
        self.queue.open()
    }

    /// Returns whether there is nothing to do.
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_idle()
    }

    /// Returns all runs that are remembered, in the order in which they were accepted.
    pub(crate) fn oldest_first(&self) -> impl DoubleEndedIterator<Item = &Run> {
        self.order.iter().filter_map(|it| self.by_id.get(it))
    }

    fn insert(&mut self, run: Run) {
        if run.state.is_over() {
            run.ended.cancel();
        }
        if let Some((key, _)) = &run.key {
            self.keys.insert(key.clone(), run.id.clone());
        }
        let id = run.id.clone();
        if self.by_id.insert(id.clone(), run).is_none() {
            self.order.push_back(id);
        }
    }

    /// Forgets the oldest of those that have ended.
    fn forget(&mut self) {
        let n_open = self.queue.open().count();
        while MAX_ENDED + n_open < self.order.len() {
            let is_over = |id: &RunId| self.by_id.get(id).is_none_or(|it| it.state.is_over());
            let Some(index) = self.order.iter().position(is_over) else { return };
            let Some(run) = self.order.remove(index).and_then(|id| self.by_id.remove(&id)) else {
                return;
            };
            if let Some((key, _)) = run.key {
                self.keys.remove(&key);
            }
        }
    }
}
