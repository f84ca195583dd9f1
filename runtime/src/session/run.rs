//! The run under way: what its turns left so far, and where it is.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::names::{CallName, MessageNumber, RunNumber, RunOrigin, TurnKey};
use crate::{
    approval::QuestionCounts,
    cost::CostLedger,
    ids::{EntryId, RunId, ToolUseId},
    lease::{MaxCost, Spent},
    message::{Message, Messages},
    recovery::chain::FallbackUsed,
    run::{Run, RunEnd, Sender},
    step::Step,
    step5_model_call::cache_watch::PromptCacheEvent,
    time::Timestamp,
    transcript::entry::{Line, Record, RecordKind, UnconfirmedUsage},
};

/// A run under way.
#[derive(Debug)]
pub(super) struct ActiveRun {
    pub(super) run: Run,
    /// What the run answers; its outcome goes there.
    pub(super) origin: RunOrigin,
    pub(super) sender: Option<Sender>,
    /// When it began, by the clock that never goes back.
    pub(super) started: Duration,
    /// Which run of the session, counted from its opening.
    pub(super) number: RunNumber,
    /// How long it may take, as far as the request limits it.
    pub(super) time_limit: Option<Duration>,
    /// When it is to end at the latest.
    pub(super) limit: Option<TimeLimit>,
    pub(super) phase: Phase,
    /// Whether it is to end after its present turn, or after the next if none is under way.
    pub(super) stops: bool,
    pub(super) error: Option<String>,
    /// Its messages, the prompt first.
    pub(super) messages: Messages,
    /// Calls that were denied.
    pub(super) denied: Vec<ToolUseId>,
    /// Questions about calls, those of sub-agents included.
    pub(super) questions: QuestionCounts,
    /// Summaries that were made.
    pub(super) compactions: Vec<EntryId>,
    /// Whether one of them was made in the present turn.
    pub(super) turn_compacted: bool,
    /// Cached tokens that its model calls should have read and did not.
    pub(super) cache_drops: Vec<PromptCacheEvent>,
    /// What its model calls cost, sub-agents included.
    pub(super) cost: CostLedger,
    /// What the tree of agents knows of what its own model calls used.
    pub(super) settled: Spent,
    /// The worst case of model calls without a reported usage.
    pub(super) in_doubt: Spent,
    /// What its own model calls cost, turn by turn.
    pub(super) turn_costs: BTreeMap<u32, CostLedger>,
    /// The last model that replaced the one that was asked for.
    pub(super) fallback: Option<FallbackUsed>,
}

/// A message that was not taken yet.
#[derive(Debug)]
pub(super) struct ReceivedMessage {
    pub(super) number: MessageNumber,
    pub(super) id: EntryId,
    pub(super) text: String,
}

/// When a run is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimeLimit {
    /// When its time is up, by the monotonic clock.
    pub(super) deadline: Duration,
    /// What the run ends with then.
    pub(super) end: RunEnd,
}

/// Where a run is.
#[derive(Debug)]
pub(super) enum Phase {
    /// A turn begins when the input under way has been handled.
    Next,
    /// A turn is under way.
    Turning(TurnInFlight),
    /// A turn was ended, and what it started is waited for.
    Stopping {
        turn: TurnInFlight,
        end: RunEnd,
        /// Whether nothing of the turn but its sub-agents is at work.
        is_quiet: bool,
    },
    /// What an ended turn left is asked for.
    Leaving(TurnInFlight, Leave),
    /// The last record of the run is on its way.
    Ending(RunEnd),
}

/// Why a turn is left.
#[derive(Debug)]
pub(super) enum Leave {
    /// It is over, and so is the run.
    Over(RunEnd),
    /// Lines of the run are lost, for a reason in words.
    Lost(String),
}

/// A turn under way.
#[derive(Debug)]
pub(super) struct TurnInFlight {
    pub(super) key: TurnKey,
    /// Its model call, while that waits for the tree of agents.
    pub(super) waiting_call: Option<(CallName, MaxCost)>,
    /// What the tree has set aside for its model call, while that is under way.
    pub(super) under_way: Option<UnconfirmedUsage>,
    /// The last step that it recorded.
    pub(super) recorded: Option<Step>,
    /// The call that somebody is asked about.
    pub(super) asked: Option<ToolUseId>,
}

impl TurnInFlight {
    pub(super) fn new(key: TurnKey) -> Self {
        Self { key, waiting_call: None, under_way: None, recorded: None, asked: None }
    }

    /// Notes what a record holds about questions.
    pub(super) fn note_question(&mut self, what: &RecordKind) {
        match what {
            RecordKind::Question { call, .. } => self.asked = Some(call.clone()),
            RecordKind::Approval { .. } | RecordKind::Permission { .. } => self.asked = None,
            _ => {}
        }
    }

    /// Returns the step that it is at, as far as the transcript shows.
    pub(super) fn at_step(&self) -> Option<Step> {
        self.recorded.map_or(Some(Step::SettingsResolution), Step::next)
    }
}

impl Phase {
    /// Returns the turn that may still have lines to write.
    pub(super) fn in_flight(&self) -> Option<&TurnInFlight> {
        match self {
            Phase::Turning(turn) | Phase::Stopping { turn, .. } => Some(turn),
            Phase::Next | Phase::Leaving(..) | Phase::Ending(_) => None,
        }
    }

    pub(super) fn in_flight_mut(&mut self) -> Option<&mut TurnInFlight> {
        match self {
            Phase::Turning(turn) | Phase::Stopping { turn, .. } => Some(turn),
            Phase::Next | Phase::Leaving(..) | Phase::Ending(_) => None,
        }
    }
}

impl ActiveRun {
    /// Makes a run that begins, the `number`th since the session was opened.
    pub(super) fn new(run: Run, origin: RunOrigin, started: Duration, number: RunNumber) -> Self {
        Self {
            run,
            origin,
            sender: None,
            started,
            number,
            time_limit: None,
            limit: None,
            phase: Phase::Next,
            stops: false,
            error: None,
            messages: Vec::new(),
            denied: Vec::new(),
            questions: QuestionCounts::default(),
            compactions: Vec::new(),
            turn_compacted: false,
            cache_drops: Vec::new(),
            cost: CostLedger::default(),
            settled: Spent::default(),
            in_doubt: Spent::default(),
            turn_costs: BTreeMap::new(),
            fallback: None,
        }
    }

    pub(super) fn remember(&mut self, message: &Arc<Message>) {
        self.messages.push(Arc::clone(message));
    }

    /// Makes the last record of the run.
    pub(super) fn end_record(&self, at: Timestamp, end: RunEnd) -> Line {
        let what = RecordKind::RunEnd {
            reason: end.code().into(),
            turns: self.run.turns,
            usage: self.run.usage,
            head: None,
        };
        record(at, &self.run.id, what)
    }
}

/// Makes a record of a run that belongs to none of its turns.
pub(super) fn record(at: Timestamp, run: &RunId, what: RecordKind) -> Line {
    Line::Harness(Box::new(Record::new(at, Some(run.clone()), 0, what)))
}
