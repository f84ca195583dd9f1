//! Checks one run: which records may end it, and what must come before.

use std::{collections::BTreeSet, mem, sync::Arc};

use super::{Evidence, ViolationKind, calls::text, turn::TurnCheck};
use crate::{
    digest::Digest,
    hook::LABEL_OF_AGENTS,
    ids::{EntryId, RunId},
    message::Message,
    step::Step,
    step9_stop_check::{EndReason, RunBudget, StopDecision, StopState},
    transcript::entry::{Record, RecordKind, StepDetail, Stored},
};

/// A run that has no end yet.
pub(super) struct RunCheck {
    pub(super) id: Option<RunId>,
    pub(super) max_tokens: Option<u64>,
    pub(super) used: u64,
    /// Used by the turn before its second step was on record.
    pub(super) used_early: u64,
    /// Whether a tool was asked for, or an agent verified for a hook: either may have started sub-agents.
    pub(super) has_called: bool,
    pub(super) turns: u32,
    pub(super) turn: Option<TurnCheck>,
    /// How the last turn ended.
    pub(super) last: Last,
    pub(super) seen: SeenSources,
    /// The answer whose calls the next turn goes on with.
    pub(super) carried: Option<Arc<Message>>,
    /// Messages for the agent that were received and not shown yet.
    pub(super) messages: BTreeSet<EntryId>,
}

/// How the last turn of a run ended.
pub(super) enum Last {
    NoTurn,
    GoOn,
    Done(String),
    /// The turn ended by a `turn_end` before its ninth step.
    Early(String),
}

/// The texts that the turns of a run repeat.
#[derive(Default)]
pub(super) struct SeenSources {
    layers: Option<Digest>,
    texts: Option<Digest>,
}

impl SeenSources {
    /// Takes what a step records; a text that is named by its digest must have been recorded before.
    pub(super) fn check(
        &mut self,
        detail: &StepDetail,
        evidence: &Evidence<'_>,
    ) -> Result<(), ViolationKind> {
        let (seen, stored) = match detail {
            StepDetail::Settings { layers, .. } => (&mut self.layers, layers),
            StepDetail::Context { texts, .. } => (&mut self.texts, texts),
            _ => return Ok(()),
        };
        match stored {
            Stored::Again(digest) if *seen == Some(*digest) => {}
            stored => {
                text(stored, evidence)?;
                *seen = Some(stored.digest());
            }
        }
        Ok(())
    }
}

impl RunCheck {
    /// Continues the run in another process: the active turn is given up at its gate, and the next one decides about
    /// the calls of its answer, of which none has run.
    pub(super) fn resumed(&mut self, answer: Option<Arc<Message>>) -> Result<(), ViolationKind> {
        let turn = self.turn.take();
        let is_carrying = self.carried.is_some() && turn.as_ref().is_none_or(|it| it.step < 7);
        let is_at_gate = turn.as_ref().is_some_and(|it| it.step == 6 && it.answered);
        let has_run = turn.is_some_and(|it| it.calls.has_run());
        if has_run || !(is_at_gate || is_carrying) || answer.is_none() {
            return Err(ViolationKind::OutOfPlace);
        }
        (self.carried, self.last) = (answer, Last::GoOn);
        Ok(())
    }

    /// Notes that a line of the conversation follows. A message for the agent has its run go on after an answer.
    pub(super) fn shown(&mut self, line: &EntryId) {
        let is_answered = matches!(&self.last, Last::Done(code) if code == "no_pending_tools");
        if self.messages.remove(line) && self.turn.is_none() && is_answered {
            self.last = Last::GoOn;
        }
    }

    /// Takes a record of the run between its start and its end.
    pub(super) fn record(
        &mut self,
        record: &Record,
        stop: &StopState,
        evidence: &Evidence<'_>,
    ) -> Result<(), ViolationKind> {
        if let RecordKind::TurnStep { number: 1, .. } = record.what
            && self.turn.is_none()
        {
            self.begin_turn()?;
        }
        let Some(turn) = &mut self.turn else { return self.record_between_turns(record) };
        if record.turn != self.turns {
            return Err(ViolationKind::WrongTurn);
        }
        match &record.what {
            RecordKind::TurnStep { number, step, detail } => {
                turn.step(*number, *step, detail)?;
                self.after_step(*number, detail, stop, evidence)
            }
            RecordKind::TurnEnd { reason, at_step, .. } => {
                turn.end(*at_step)?;
                self.last = Last::Early(reason.clone());
                self.turn = None;
                Ok(())
            }
            RecordKind::ModelAttempt { usage, .. } => {
                // The second step records what was used before the turn.
                let used = if turn.step < 2 { &mut self.used_early } else { &mut self.used };
                *used = used.saturating_add(usage.total().0);
                turn.record(&record.what, evidence)
            }
            RecordKind::Hook { handler, .. } if handler.starts_with(LABEL_OF_AGENTS) => {
                self.has_called = true;
                turn.record(&record.what, evidence)
            }
            other => turn.record(other, evidence),
        }
    }

    fn begin_turn(&mut self) -> Result<(), ViolationKind> {
        if !matches!(self.last, Last::NoTurn | Last::GoOn) {
            return Err(ViolationKind::OutOfPlace);
        }
        self.turns += 1;
        self.turn = Some(TurnCheck::carrying(self.carried.as_deref()));
        Ok(())
    }

    fn record_between_turns(&mut self, record: &Record) -> Result<(), ViolationKind> {
        match &record.what {
            RecordKind::TurnEnd { reason, at_step, .. } => {
                // It ended before its first step was on record.
                if at_step.is_some_and(|it| it != Step::SettingsResolution) {
                    let found = at_step.map_or(0, Step::number);
                    return Err(ViolationKind::WrongStep { expected: 1, found });
                }
                if record.turn == self.turns + 1 {
                    self.turns += 1;
                }
                self.last = Last::Early(reason.clone());
                Ok(())
            }
            RecordKind::TurnStep { number, .. } => {
                Err(ViolationKind::WrongStep { expected: 1, found: *number })
            }
            // Steps 1 to 3 may leave records before that of step 1.
            RecordKind::Hook { .. } | RecordKind::Path { .. } | RecordKind::Links(_) => Ok(()),
            _ => Err(ViolationKind::OutOfPlace),
        }
    }

    /// Holds a step of the turn under way against the run; the ninth ends the turn.
    fn after_step(
        &mut self,
        number: u8,
        detail: &StepDetail,
        stop: &StopState,
        evidence: &Evidence<'_>,
    ) -> Result<(), ViolationKind> {
        // What sub-agents used comes on top.
        if let StepDetail::State { used: recorded, .. } = detail
            && (*recorded < self.used || self.used < *recorded && !self.has_called)
        {
            let (recorded, counted) = (*recorded, self.used);
            return Err(ViolationKind::WrongCount { of: "tokens used", recorded, counted });
        }
        if number == 2 {
            self.used = self.used.saturating_add(mem::take(&mut self.used_early));
        }
        if number == 7 {
            self.carried = None;
        }
        self.seen.check(detail, evidence)?;
        if number == 9 {
            let decision = stop.decision(RunBudget { used: self.used, max: self.max_tokens });
            self.last = stopped(detail, decision)?;
            self.turn = None;
        }
        Ok(())
    }

    /// Checks whether a run may end like this.
    pub(super) fn end(&self, reason: &str, turns: u32) -> Result<(), ViolationKind> {
        if self.turn.is_some() {
            return Err(ViolationKind::OutOfPlace);
        }
        if turns != self.turns {
            let (recorded, counted) = (turns.into(), self.turns.into());
            return Err(ViolationKind::WrongCount { of: "turns", recorded, counted });
        }
        // Limits, hooks and people end a run, too, whatever its last turn came to; but what only
        // the stop check or the turn itself can decide must be what it decided.
        let is_said = match &self.last {
            Last::Early(code) => {
                return if reason == code { Ok(()) } else { Err(ViolationKind::WrongEnd) };
            }
            Last::Done(code) => reason == code,
            Last::NoTurn | Last::GoOn => false,
        };
        let decided = ["explicit_stop", "error", "budget_exceeded", "no_pending_tools"];
        let follows = is_said || !decided.contains(&reason);
        if follows { Ok(()) } else { Err(ViolationKind::WrongEnd) }
    }
}

/// How a turn ended by its ninth step, if that says what the stop check says.
fn stopped(detail: &StepDetail, computed: StopDecision) -> Result<Last, ViolationKind> {
    let StepDetail::Stop { done, reason } = detail else { return Err(ViolationKind::WrongDetail) };
    let code = computed.reason.map(EndReason::code);
    if *done != computed.done || reason.as_deref() != code {
        let recorded = reason.clone().unwrap_or_else(|| "go on".into());
        return Err(ViolationKind::WrongStop {
            recorded,
            computed: code.unwrap_or("go on").into(),
        });
    }
    Ok(code.map_or(Last::GoOn, |code| Last::Done(code.into())))
}
