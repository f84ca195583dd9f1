//! The runs of a session: which wait, which is under way, and what became of those that ended.
//!
//! A run is written to the session's journal before its receipt is given, and again when it begins and
//! ends. So a process that takes over knows what was promised, and a request that is sent twice under
//! one key is one run.

use std::{
    collections::{BTreeMap, VecDeque},
    fs,
    io::{self, BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
};

use ennead_runtime::{ids::RunId, time::Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;

use crate::storage::archive::files;

/// Ended runs that are remembered, and with them their keys.
const MAX_ENDED: usize = 256;

/// Bytes of one line of a journal at most: a prompt of a mebibyte, every byte of it escaped.
const MAX_LINE: u64 = 8 * 1024 * 1024;

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

/// A run.
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
    /// Its place among those that wait: the run that is gone on with, those that are urgent, the rest.
    fn rank(&self) -> u8 {
        match (&self.continues, self.delivery) {
            (Some(_), _) => 0,
            (None, Delivery::Steer | Delivery::Interrupt) => 1,
            (None, Delivery::Queue) => 2,
        }
    }
}

/// The runs of a session.
#[derive(Debug)]
pub(crate) struct Runs {
    /// `None`: it was deleted.
    journal: Option<PathBuf>,
    by_id: BTreeMap<RunId, Run>,
    /// In the order in which they were accepted.
    order: VecDeque<RunId>,
    queue: VecDeque<RunId>,
    running: Option<RunId>,
    keys: BTreeMap<String, RunId>,
}

impl Runs {
    /// Reads a journal; without one there were no runs. What is left over of a line that was not written
    /// to its end is passed over.
    pub(crate) fn load(journal: PathBuf) -> io::Result<Self> {
        let (by_id, order) = (BTreeMap::new(), VecDeque::new());
        let (queue, keys) = (VecDeque::new(), BTreeMap::new());
        let opened = fs::File::open(&journal);
        let mut runs = Self { journal: Some(journal), by_id, order, queue, running: None, keys };
        let (mut n_lines, mut is_damaged) = (0, false);
        match opened {
            Ok(file) => {
                let mut file = BufReader::new(file);
                while let Some(line) = read_line(&mut file)? {
                    n_lines += 1;
                    match serde_json::from_slice::<Run>(&line) {
                        Ok(run) => runs.put(run),
                        Err(_) => is_damaged = true,
                    }
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let is = |it: &RunId, state| runs_state(&runs.by_id, it) == Some(state);
        let queued = runs.order.iter().filter(|it| is(it, RunState::Queued));
        let mut queued: Vec<RunId> = queued.cloned().collect();
        // The order is that of the receipts, but for those that were put before others.
        queued.sort_by_key(|it| runs.by_id.get(it).map_or(0, Run::rank));
        let running = runs.order.iter().find(|it| is(it, RunState::Running)).cloned();
        (runs.queue, runs.running) = (queued.into(), running);
        // Written anew when most of it is of no use any more; and a line that was not written to its end
        // would take the next one along.
        if is_damaged || 4 * (runs.order.len() + 16) < n_lines {
            runs.rewrite()?;
        }
        Ok(runs)
    }

    /// Accepts a run, and says how many are before it.
    ///
    /// # Errors
    ///
    /// When it cannot be written; then it is not accepted.
    pub(crate) fn accept(&mut self, run: Run) -> io::Result<usize> {
        self.append(&run)?;
        let place = match run.delivery {
            Delivery::Queue => self.queue.len(),
            // Before those that wait, and after those that were as urgent and earlier.
            _ => {
                let is_urgent = |id: &&RunId| self.by_id.get(*id).is_some_and(|it| it.rank() < 2);
                self.queue.iter().take_while(is_urgent).count()
            }
        };
        self.queue.insert(place, run.id.clone());
        self.put(run);
        Ok(place + usize::from(self.running.is_some()))
    }

    /// Takes the next run and marks it as begun. `None` when there is none, or one is under way.
    pub(crate) fn begin(&mut self, at: Timestamp) -> Option<Run> {
        if self.running.is_some() {
            return None;
        }
        let id = self.queue.pop_front()?;
        let run = self.by_id.get_mut(&id)?;
        (run.state, run.started_at) = (RunState::Running, Some(at));
        let run = run.clone();
        log_failure(self.append(&run));
        self.running = Some(id);
        Some(run)
    }

    /// Puts a run that was begun back to where it was: it cannot run yet.
    pub(crate) fn put_back(&mut self, id: &RunId) {
        if self.running.as_ref() == Some(id) {
            self.running = None;
        }
        if let Some(run) = self.by_id.get_mut(id) {
            (run.state, run.started_at) = (RunState::Queued, None);
            let run = run.clone();
            log_failure(self.append(&run));
            self.queue.push_front(id.clone());
        }
    }

    /// Notes how a run ended.
    pub(crate) fn end(&mut self, id: &RunId, state: RunState, outcome: Value, at: Timestamp) {
        if self.running.as_ref() == Some(id) {
            self.running = None;
        }
        self.queue.retain(|it| it != id);
        let Some(run) = self.by_id.get_mut(id) else { return };
        (run.state, run.outcome, run.ended_at) = (state, Some(outcome), Some(at));
        run.prompt = None;
        let run = run.clone();
        log_failure(self.append(&run));
        run.ended.cancel();
        self.forget();
    }

    /// Goes on with the run of an earlier process under another name, as the first that waits.
    pub(crate) fn go_on(&mut self, id: &RunId, mut next: Run) -> io::Result<()> {
        next.continues = Some(id.clone());
        self.append(&next)?;
        let at = next.accepted_at;
        if let Some(run) = self.by_id.get_mut(id) {
            run.continued_by = Some(next.id.clone());
        }
        self.end(id, RunState::Continued, Value::Null, at);
        self.queue.push_front(next.id.clone());
        self.put(next);
        Ok(())
    }

    pub(crate) fn get(&self, id: &RunId) -> Option<&Run> {
        self.by_id.get(id)
    }

    /// The run that was asked for under this key.
    pub(crate) fn of_key(&self, key: &str) -> Option<&Run> {
        self.by_id.get(self.keys.get(key)?)
    }

    pub(crate) fn running(&self) -> Option<&RunId> {
        self.running.as_ref()
    }

    pub(crate) fn n_queued(&self) -> usize {
        self.queue.len()
    }

    /// Whether there is nothing to do.
    pub(crate) fn is_idle(&self) -> bool {
        self.running.is_none() && self.queue.is_empty()
    }

    /// All that are remembered, the newest first.
    pub(crate) fn newest_first(&self) -> impl Iterator<Item = &Run> {
        self.order.iter().rev().filter_map(|it| self.by_id.get(it))
    }

    /// The session is deleted, and its journal with it: nothing is written any more.
    pub(crate) fn detach(&mut self) {
        self.journal = None;
    }

    /// Those that are not over fail now.
    pub(crate) fn fail_all(&mut self, outcome: &Value, at: Timestamp) {
        let open: Vec<RunId> = self.running.iter().chain(&self.queue).cloned().collect();
        for id in open {
            self.end(&id, RunState::Failed, outcome.clone(), at);
        }
    }

    fn put(&mut self, run: Run) {
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
        self.forget();
    }

    /// Forgets the oldest of those that have ended.
    fn forget(&mut self) {
        let n_open = self.queue.len() + usize::from(self.running.is_some());
        while MAX_ENDED + n_open < self.order.len() {
            let is_over = |id: &RunId| runs_state(&self.by_id, id).is_none_or(RunState::is_over);
            let Some(index) = self.order.iter().position(is_over) else { return };
            let Some(run) = self.order.remove(index).and_then(|id| self.by_id.remove(&id)) else {
                return;
            };
            if let Some((key, _)) = run.key {
                self.keys.remove(&key);
            }
        }
    }

    fn rewrite(&self) -> io::Result<()> {
        let mut text = Vec::new();
        for run in self.order.iter().filter_map(|it| self.by_id.get(it)) {
            serde_json::to_writer(&mut text, run)?;
            text.push(b'\n');
        }
        match &self.journal {
            Some(journal) => files::write_whole(journal, &text).map(drop),
            None => Ok(()),
        }
    }

    fn append(&self, run: &Run) -> io::Result<()> {
        let Some(journal) = &self.journal else { return Ok(()) };
        let mut line = serde_json::to_vec(run)?;
        line.push(b'\n');
        let open = |path: &Path| files::private().append(true).create(true).open(path);
        files::in_directory(journal, open)?.write_all(&line)
    }
}

fn runs_state(by_id: &BTreeMap<RunId, Run>, id: &RunId) -> Option<RunState> {
    by_id.get(id).map(|it| it.state)
}

/// The next line without its end; a longer one than there are is empty.
fn read_line(file: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let n = file.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)?;
    if n == 0 {
        return Ok(None);
    }
    if line.pop() != Some(b'\n') {
        line.clear();
        file.skip_until(b'\n')?;
    }
    Ok(Some(line))
}

/// What has happened has happened, whether it could be noted or not.
fn log_failure(written: io::Result<()>) {
    if let Err(error) = written {
        tracing::error!(%error, "the journal of runs cannot be written");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: INP-2, RUN-9
    #[test]
    fn order_of_those_that_wait_is_the_same_after_a_restart_and_a_torn_line_costs_itself_alone() {
        let directory = tempfile::tempdir().unwrap();
        let journal = directory.path().join("s.runs.jsonl");
        let mut runs = Runs::load(journal.clone()).unwrap();
        let run = |id: &str, delivery| Run::new(id.into(), "p".into(), delivery, Timestamp(1));
        runs.accept(run("first", Delivery::Queue)).unwrap();
        assert_eq!(runs.begin(Timestamp(2)).unwrap().id.as_str(), "first");
        assert_eq!(runs.accept(run("last", Delivery::Queue)).unwrap(), 1);
        assert_eq!(runs.accept(run("steers", Delivery::Steer)).unwrap(), 1);
        assert_eq!(runs.accept(run("interrupts", Delivery::Interrupt)).unwrap(), 2);
        runs.go_on(&"first".into(), run("goes on", Delivery::Queue)).unwrap();
        let expected = ["goes on", "steers", "interrupts", "last"];
        let queue = |runs: &Runs| runs.queue.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(queue(&runs), expected);
        let mut file = fs::OpenOptions::new().append(true).open(&journal).unwrap();
        file.write_all(b"{\"id\":\"torn").unwrap();
        let mut again = Runs::load(journal.clone()).unwrap();
        assert_eq!(queue(&again), expected);
        assert_eq!(again.get(&"first".into()).unwrap().state, RunState::Continued);
        again.accept(run("newest", Delivery::Queue)).unwrap();
        assert_eq!(Runs::load(journal).unwrap().n_queued(), 5);
    }
}
