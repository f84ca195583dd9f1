//! Runs of a session: from the queue, turn after turn, to their end.

mod beginning;
mod measuring;
mod opening;
mod outcome;
mod time_limit;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use ennead_runtime::{
    cost::CostLedger,
    event::Event,
    ids::{EntryId, ToolUseId},
    lease::Spent,
    message::{Message, Messages},
    ports::CommittedOutcome,
    run::{AfterTurn, Run, RunEnd, Sender},
    step::Step,
    step1_settings_resolution::{Durability, Settings},
    step5_model_call::cache_watch::PromptCacheEvent,
    transcript::entry::{Line, LineFrame, Record, RecordKind, UnconfirmedUsage},
    turn::{
        TurnInput,
        effect::{Append, FallbackUsed, HistoryUpdate, TurnReport},
    },
};
use ractor::{ActorId, ActorRef};

use self::time_limit::TimeLimit;
use super::{
    SessionMsg, SessionState,
    agents::WaitingCall,
    recorder::{Lines, Origin, WriterReply},
};
use crate::{
    archive::layout::TranscriptPaths,
    mailbox::Slot,
    model_call::Sent,
    supervision::{HandlerResult, spawn},
    turn_supervisor::{self, TurnMsg, TurnSupervisor},
    world::local_files::Fingerprints,
};

/// Where and how a session's transcript is opened.
#[derive(Clone, Debug)]
pub(crate) struct OpenPlan {
    pub(crate) place: TranscriptPaths,
    pub(crate) frame: LineFrame,
    pub(crate) durability: Durability,
    pub(crate) meta: Option<Arc<str>>,
}

pub(super) use measuring::Measuring;
pub(crate) use opening::Earlier;

/// A run under way.
pub(super) struct Active {
    pub(super) run: Run,
    /// Who asked for it.
    sender: Option<Sender>,
    reply: super::RunReply,
    _slot: Slot,
    pub(super) started: Duration,
    /// Which run of the session, counted from its opening.
    number: u64,
    /// How long it may take, as far as the one that asked for it said.
    time_limit: Option<Duration>,
    /// When it is to end at the latest.
    limit: Option<TimeLimit>,
    pub(super) phase: Phase,
    /// Whether it is to end after its present turn, or after the next if none is under way.
    pub(super) stops: bool,
    pub(super) error: Option<String>,
    said: Messages,
    /// Calls that were denied.
    denied: Vec<ToolUseId>,
    /// Summaries that were made.
    compactions: Vec<EntryId>,
    /// Cached tokens that its model calls should have read and did not.
    pub(super) cache_drops: Vec<PromptCacheEvent>,
    /// What its model calls cost, sub-agents included.
    pub(super) cost: CostLedger,
    /// What the tree of agents knows of what its own model calls used.
    pub(super) settled: Spent,
    /// Model calls of which nobody said what they used.
    pub(super) in_doubt: Spent,
    /// What its own model calls cost, turn by turn.
    pub(super) turn_costs: BTreeMap<u32, CostLedger>,
    /// Whom its turns had to turn to.
    fallback: Option<FallbackUsed>,
}

/// How far a run is.
pub(super) enum Phase {
    /// A turn begins after the message that is being handled.
    Next,
    /// A turn is under way.
    Turning(InFlight),
    /// A turn was ended, and what it started is waited for.
    Stopping(InFlight, RunEnd),
    /// Its last record is on its way.
    Ending(RunEnd),
}

/// A turn that walks.
pub(super) struct InFlight {
    pub(super) key: u64,
    pub(super) supervisor: ActorRef<TurnMsg>,
    pub(super) scope: turn_supervisor::Scope,
    /// Its model call, while that waits for the tree of agents.
    pub(super) waiting_call: Option<Box<WaitingCall>>,
    /// What the tree has set aside for its model call, while that is under way, and whether it was
    /// sent.
    pub(super) under_way: Option<(UnconfirmedUsage, Sent)>,
    /// Where calls leave outcomes that can no longer be undone.
    pub(super) settled: Vec<(ToolUseId, CommittedOutcome)>,
    /// Whether everything it started is over.
    pub(super) quiet: bool,
    /// The turn supervisor whose end is awaited.
    pub(super) ending: Option<ActorId>,
    /// The last step that it recorded.
    recorded: Option<Step>,
}

impl InFlight {
    /// Where it is, as far as the transcript knows.
    pub(super) fn at_step(&self) -> Option<Step> {
        self.recorded.map_or(Some(Step::SettingsResolution), Step::next)
    }

    /// What its model call that was sent and has no record counts as.
    pub(super) fn in_doubt(&self) -> Option<UnconfirmedUsage> {
        self.under_way.as_ref().filter(|(_, sent)| sent.is_set()).map(|(worst, _)| *worst)
    }
}

impl Active {
    pub(super) fn remember(&mut self, message: &Arc<Message>) {
        self.said.push(Arc::clone(message));
    }
}

impl SessionState {
    /// Whether this child walks the turn that is under way.
    pub(super) fn is_turn(&self, child: ActorId) -> bool {
        let in_flight = self.active.as_ref().and_then(|it| it.phase.in_flight());
        in_flight.is_some_and(|it| it.supervisor.get_id() == child)
    }

    /// Whether a turn is to begin now.
    pub(super) fn has_next_turn(&self) -> bool {
        self.active.as_ref().is_some_and(|it| matches!(it.phase, Phase::Next))
    }

    /// Spawns the next turn.
    pub(super) async fn start_turn(&mut self, myself: &ActorRef<SessionMsg>) -> HandlerResult {
        self.tell_ended_shells();
        let budget = match &self.active {
            Some(active) => self.conversation.budget(active.run.usage),
            None => return Ok(()),
        };
        let Some(active) = &mut self.active else { return Ok(()) };
        active.run.turns += 1;
        self.shared.hub.publish(Event::TurnStarted { turn: active.run.turns });
        let key = self.next_key;
        self.next_key += 1;
        let scope = turn_supervisor::Scope::default();
        let setup = turn_supervisor::TurnSupervisorSetup {
            shared: Arc::clone(&self.shared),
            session: myself.clone(),
            key,
            turn: Box::new(self.conversation.turn(&active.run, budget)),
            scope: scope.clone(),
            fingerprints: self.fingerprints.clone(),
        };
        let supervisor = spawn(TurnSupervisor, Box::new(setup), myself.get_cell()).await?;
        if active.stops {
            supervisor.cast(TurnMsg::Input(TurnInput::StopRequested))?;
        }
        let settled = Vec::new();
        active.phase = Phase::Turning(InFlight {
            key,
            supervisor,
            scope,
            waiting_call: None,
            under_way: None,
            settled,
            quiet: false,
            ending: None,
            recorded: None,
        });
        Ok(())
    }

    /// Writes what a turn wants written.
    pub(super) fn append(&mut self, key: u64, mut append: Box<Append>) {
        if self.take_in(key, &mut append) {
            let awaited = append.is_awaited.then_some(Origin::Turn(key, append.ticket));
            self.recorder.append(awaited.unwrap_or(Origin::Nobody), (*append).into());
        }
    }

    /// Remembers what was said and done by lines of a turn. `false` when that turn is over.
    fn take_in(&mut self, key: u64, append: &mut Append) -> bool {
        let Some(active) = &mut self.active else { return false };
        let in_flight = active.phase.in_flight_mut();
        let Some(turn) = in_flight.filter(|it| it.key == key) else { return false };
        turn.recorded = append.lines.iter().rev().find_map(step_of).or(turn.recorded);
        let mut called = false;
        for line in &append.lines {
            if let Line::Harness(record) = line {
                active.cost.note(&record.what);
                active.turn_costs.entry(record.turn).or_default().note(&record.what);
                if let RecordKind::ModelAttempt { cache_drop, in_doubt, .. } = &record.what {
                    called = true;
                    active.in_doubt =
                        active.in_doubt + in_doubt.map(Spent::from).unwrap_or_default();
                    active.cache_drops.extend(cache_drop.as_deref().cloned());
                }
            }
        }
        active.denied.extend(append.lines.iter().filter_map(denied_call));
        for said in append.said.drain(..) {
            match &said {
                HistoryUpdate::Message(message) => active.said.push(Arc::clone(message)),
                HistoryUpdate::Compacted { summary, .. } => {
                    active.compactions.push(summary.id.clone())
                }
            }
            self.conversation.said(said);
        }
        if called {
            turn.under_way = None;
            self.settle();
        }
        true
    }

    pub(super) fn call_started(&mut self, key: u64, call: ToolUseId, settled: CommittedOutcome) {
        let in_flight = self.active.as_mut().and_then(|it| it.phase.in_flight_mut());
        if let Some(turn) = in_flight.filter(|it| it.key == key) {
            turn.settled.push((call, settled));
        }
    }

    /// Lines are safe, or lost.
    pub(super) fn recorded(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        recorded: crate::transcript_writer::Recorded,
    ) -> HandlerResult {
        match self.recorder.answered(recorded) {
            WriterReply::Stale => Ok(()),
            WriterReply::Lost(error) => self.lose(myself, error.to_string()),
            WriterReply::Recorded(Origin::Turn(key, ticket), _) => {
                let in_flight = self.active.as_ref().and_then(|it| it.phase.in_flight());
                if let Some(turn) = in_flight.filter(|it| it.key == key) {
                    // A turn that was ended meanwhile waits for nothing.
                    let _gone =
                        turn.supervisor.cast(TurnMsg::Input(TurnInput::Recorded { ticket }));
                }
                Ok(())
            }
            WriterReply::Recorded(Origin::Nobody, _) => Ok(()),
            WriterReply::Recorded(Origin::RunEnd, head) => self.ended(myself, head),
        }
    }

    /// A turn has reached its end.
    pub(super) fn turn_done(
        &mut self,
        key: u64,
        mut report: TurnReport,
        fingerprints: Option<Fingerprints>,
    ) {
        if let Some(mut append) = report.append.take()
            && self.take_in(key, &mut append)
        {
            // The next turn, or the end of the run, has more to write at once.
            self.recorder.hold((*append).into());
        }
        let Some(active) = &mut self.active else { return };
        if !matches!(&active.phase, Phase::Turning(turn) if turn.key == key) {
            return;
        }
        self.fingerprints = fingerprints;
        self.conversation.memory = report.memory;
        if report.error.is_some() {
            active.error = report.error;
        }
        if report.fallback.is_some() {
            active.fallback = report.fallback;
        }
        let after = match &self.conversation.memory.resolved {
            Some(resolved) => active.run.after_turn(report.end, report.usage, &resolved.settings),
            None => active.run.after_turn(report.end, report.usage, &Settings::default()),
        };
        active.phase = Phase::Next;
        match after {
            AfterTurn::Next(alert) => {
                if let Some(what) = alert {
                    self.shared.hub.publish(Event::Alert { what: what.into() });
                }
            }
            AfterTurn::End(end) => self.end_run(end),
        }
    }
}

impl Phase {
    pub(super) fn in_flight(&self) -> Option<&InFlight> {
        match self {
            Phase::Turning(turn) | Phase::Stopping(turn, _) => Some(turn),
            Phase::Next | Phase::Ending(_) => None,
        }
    }

    fn in_flight_mut(&mut self) -> Option<&mut InFlight> {
        match self {
            Phase::Turning(turn) | Phase::Stopping(turn, _) => Some(turn),
            Phase::Next | Phase::Ending(_) => None,
        }
    }
}

/// A harness record of a run.
pub(super) fn record(
    at: ennead_runtime::time::Timestamp,
    run: &ennead_runtime::ids::RunId,
    turn: u32,
    what: RecordKind,
) -> Line {
    Line::Harness(Box::new(Record { at, run: Some(run.clone()), turn, what }))
}

/// The last line of a run.
pub(super) fn last(line: Line) -> Lines {
    Lines { lines: vec![line], stored: Vec::new(), sync: true }
}

fn denied_call(line: &Line) -> Option<ToolUseId> {
    match line {
        Line::Harness(record) => match &record.what {
            RecordKind::Permission { call, decision, .. } if !decision.allowed => {
                Some(call.clone())
            }
            _ => None,
        },
        Line::Conversation(_) => None,
    }
}

fn step_of(line: &Line) -> Option<Step> {
    match line {
        Line::Harness(record) => match record.what {
            RecordKind::TurnStep { step, .. } => Some(step),
            _ => None,
        },
        Line::Conversation(_) => None,
    }
}
