//! Checks one run: which records may end it, and what must come before.

use std::sync::Arc;

use super::{Evidence, ViolationKind, calls::text, turn::TurnCheck};
use crate::{
    digest::Digest,
    ids::RunId,
    message::Message,
    step9_stop_check::{EndReason, StopDecision},
    transcript::entry::{StepDetail, Stored},
};

/// A run that has no end yet.
pub(super) struct RunCheck {
    pub(super) id: Option<RunId>,
    pub(super) max_tokens: Option<u64>,
    pub(super) used: u64,
    /// Whether a tool was asked for, which may have started sub-agents.
    pub(super) has_called: bool,
    pub(super) turns: u32,
    pub(super) turn: Option<TurnCheck>,
    /// How the last turn ended.
    pub(super) last: Last,
    pub(super) seen: SeenSources,
    /// The answer whose calls the next turn goes on with.
    pub(super) carried: Option<Arc<Message>>,
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
    /// The run goes on in another process: the turn under way is given up at its gate, and the next one
    /// decides about the calls of its answer, of which none has run.
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

    /// Whether a run may end like this.
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
pub(super) fn stop(detail: &StepDetail, computed: StopDecision) -> Result<Last, ViolationKind> {
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
