//! The nine steps of a turn as data: what a page or a program shows of it.
//!
//! The same records that [`trace`](super::trace) writes as text, gathered by turn. Nothing is checked: that is
//! the audit's.

use serde::Serialize;

use super::{
    entry::{Record, RecordKind, StepDetail},
    read::{Entry, read_line},
};
use crate::{ids::RunId, time::Timestamp, tokens::Usage};

/// Records of one kind that are kept of a turn at most. A turn has 25 calls; a loop of model attempts ends
/// far below this.
const MAX_RECORDS: usize = 500;

/// A turn, as far as it was recorded.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TurnRecord {
    /// From 1 within the session, in the order of the transcript.
    pub number: u64,
    /// The run it belongs to.
    pub run: Option<RunId>,
    /// From 1 within the run.
    pub turn: u32,
    /// When it began: its run, or the turn before, had just got there.
    pub started_at: Timestamp,
    /// When its last record was made.
    pub ended_at: Timestamp,
    /// Why it ended, where that was before its ninth step; the code of a run's end.
    pub end: Option<String>,
    /// The steps that it took, in order.
    pub steps: Vec<StepRecord>,
    /// Stages of step 4 that ran or were passed over.
    pub shapers: Vec<Timed>,
    /// Calls of the model, in step 4 and 5.
    pub attempts: Vec<Timed>,
    /// Decisions of step 7, with rule and scope, and the questions and answers that led to them.
    pub decisions: Vec<Timed>,
    /// Calls of tools: when they began, and how they ended.
    pub calls: Vec<Timed>,
    /// Handlers of hooks that ran.
    pub hooks: Vec<Timed>,
    /// What an operator should look at.
    pub alerts: Vec<Timed>,
    /// Tokens of its model calls, as the provider reported them.
    pub usage: Usage,
    /// Tokens that the shapers took out of the context.
    pub tokens_saved: u64,
    /// Records that are left out here since there are too many of their kind.
    pub left_out: u64,
}

/// A step of a turn.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StepRecord {
    /// The number of the step, from 1 to 9.
    pub number: u8,
    /// The name of the step.
    pub name: &'static str,
    /// When it was over.
    pub at: Timestamp,
    /// From the end of the step before, in milliseconds.
    pub duration_ms: u64,
    /// What it found or decided.
    pub detail: StepDetail,
}

/// A record, and when it was made.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Timed {
    /// When it was made.
    pub at: Timestamp,
    /// The record as the transcript has it.
    #[serde(flatten)]
    pub record: RecordKind,
}

/// Gathers the records of a transcript by turn. Takes one line after another and holds one turn.
#[derive(Debug, Default)]
pub struct TurnReader {
    n_turns: u64,
    open: Option<TurnRecord>,
    /// When the last record was made, and of which run.
    last: Option<(Timestamp, Option<RunId>)>,
}

impl TurnReader {
    /// Takes a line, and returns the turn that it ends: a line of another turn was read. A line that
    /// cannot be read, or is not a record, belongs to no turn.
    pub fn line(&mut self, line: &str) -> Option<TurnRecord> {
        let Entry::Harness(records) = read_line(line).ok()?.entry else { return None };
        // Those of a line are of one turn.
        let ended = records.into_iter().fold(None, |ended, it| ended.or(self.record(it)));
        ended.filter(|it| !it.steps.is_empty() || it.end.is_some())
    }

    /// Returns the record of the last turn; `None` if the last line belonged to none.
    pub fn finish(self) -> Option<TurnRecord> {
        self.open
    }

    fn record(&mut self, record: Record) -> Option<TurnRecord> {
        let Record { at, run, turn, what, .. } = record;
        let before = self.last.replace((at, run.clone()));
        if turn == 0 {
            return None;
        }
        let is_same = self.open.as_ref().is_some_and(|it| it.turn == turn && it.run == run);
        let ended = if is_same { None } else { self.open.take() };
        let open = self.open.get_or_insert_with(|| {
            self.n_turns += 1;
            // The record before, of the same run, is where the turn began.
            let begun = before.filter(|it| it.1 == run).map_or(at, |it| it.0);
            TurnRecord::new(self.n_turns, run, turn, begun)
        });
        open.take(at, what);
        ended
    }
}

impl TurnRecord {
    fn new(number: u64, run: Option<RunId>, turn: u32, at: Timestamp) -> Self {
        Self {
            number,
            run,
            turn,
            started_at: at,
            ended_at: at,
            end: None,
            steps: Vec::new(),
            shapers: Vec::new(),
            attempts: Vec::new(),
            decisions: Vec::new(),
            calls: Vec::new(),
            hooks: Vec::new(),
            alerts: Vec::new(),
            usage: Usage::default(),
            tokens_saved: 0,
            left_out: 0,
        }
    }

    fn take(&mut self, at: Timestamp, what: RecordKind) {
        self.ended_at = self.ended_at.max(at);
        let list = match what {
            RecordKind::TurnStep { number, step, detail } => {
                let before = self.steps.last().map_or(self.started_at, |it| it.at);
                let duration_ms = at.millis_since(before);
                let step = StepRecord { number, name: step.name(), at, duration_ms, detail };
                // A transcript of somebody else may repeat them.
                if self.steps.len() < 9 {
                    self.steps.push(step)
                } else {
                    self.left_out += 1
                }
                return;
            }
            RecordKind::TurnEnd { reason, .. } => {
                self.end = Some(reason);
                return;
            }
            RecordKind::Shaper { tokens_before, tokens_after, .. } => {
                self.tokens_saved += tokens_before.saturating_sub(tokens_after).0;
                &mut self.shapers
            }
            RecordKind::ShapersPassed { .. } => &mut self.shapers,
            RecordKind::ModelAttempt { usage, .. } => {
                self.usage = self.usage + usage;
                &mut self.attempts
            }
            RecordKind::Permission { .. }
            | RecordKind::Question { .. }
            | RecordKind::Passed { .. }
            | RecordKind::Approval { .. }
            | RecordKind::Mode(_) => &mut self.decisions,
            RecordKind::ToolIntent { .. }
            | RecordKind::ToolEnd { .. }
            | RecordKind::Shell(_)
            | RecordKind::BackgroundAgent(_)
            | RecordKind::AgentMessage(_) => &mut self.calls,
            RecordKind::Hook { .. } => &mut self.hooks,
            RecordKind::Alert { .. } => &mut self.alerts,
            RecordKind::RunStart { .. }
            | RecordKind::RunResumed { .. }
            | RecordKind::SourcesSeen { .. }
            | RecordKind::ContextAppended { .. }
            | RecordKind::View(_)
            | RecordKind::Path { .. }
            | RecordKind::Links(_)
            | RecordKind::RunEnd { .. }
            | RecordKind::PromptWithdrawn { .. }
            | RecordKind::Repair { .. } => return,
        };
        if list.len() < MAX_RECORDS {
            list.push(Timed { at, record: what })
        } else {
            self.left_out += 1
        }
    }
}
