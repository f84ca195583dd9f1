//! How a turn is ended from outside, a run that cannot be recorded, and the session.
//!
//! An interrupt ends the turn and everything that it started. Blocking work may still be under way:
//! only when the last of it is over is the turn closed in the transcript and the next run begun.

use std::mem;

use super::{
    ClosePhase, Machine, Now, SessionEffect, SpawnEffect,
    input::TurnRemains,
    names::TurnKey,
    queue::Queued,
    recorder::{PendingLines, WriteOrigin},
    run::{ActiveRun, Leave, Phase, TurnInFlight},
};
use crate::{
    event::Event,
    run::{RunEnd, outcome::RunError},
    transcript::entry::Line,
    turn::{DenialReason, OpenTurn, close},
};

impl Machine {
    /// Ends the turn under way for this reason, and with it the run.
    pub(super) fn end_turn(&mut self, end: RunEnd) {
        let Some(active) = &mut self.active else { return };
        match mem::replace(&mut active.phase, Phase::Next) {
            Phase::Turning(turn) => {
                let key = turn.key;
                active.phase = Phase::Stopping { turn, end, is_quiet: false };
                self.effects.push(SpawnEffect::StopTurn { key }.into());
                self.stop_agents_of(key);
            }
            phase => active.phase = phase,
        }
    }

    /// Ends the run under way after its present turn.
    pub(super) fn stop_after_turn(&mut self) {
        let Some(active) = &mut self.active else { return };
        active.stops = true;
        // A turn that is past its stop check is followed by one that is asked, too.
        if let Some(TurnInFlight { key, .. }) = active.phase.in_flight() {
            self.effects.push(SessionEffect::StopAfterTurn { key: *key });
        }
    }

    /// Ends a turn that cannot run at all.
    pub(super) fn turn_failed(&mut self, key: TurnKey, why: String) {
        // The first reason is the best one: later ones are its consequences.
        if !self.is_turning(key) {
            return;
        }
        if let Some(active) = &mut self.active {
            active.error = Some(why);
        }
        self.end_turn(RunEnd::Error);
    }

    /// Ends a turn whose supervisor ended without a report.
    pub(super) fn turn_crashed(&mut self, key: TurnKey) {
        if self.is_turning(key) {
            self.end_turn(RunEnd::Crashed);
        }
    }

    /// Notes that only the sub-agents of a stopped turn are still at work, or that the wait for the rest was given up.
    pub(super) fn turn_quiet(&mut self, key: TurnKey, late: bool) {
        let Some(active) = &mut self.active else { return };
        let Phase::Stopping { turn, is_quiet, .. } = &mut active.phase else { return };
        if turn.key != key || mem::replace(is_quiet, true) {
            return;
        }
        if late {
            let what = "work of an ended turn is still under way after 2 s".into();
            self.effects.push(SessionEffect::Publish(Event::Alert { what }));
        }
        self.leave_turn_if_over();
    }

    /// Leaves a stopped turn once its work and its sub-agents are over.
    pub(super) fn leave_turn_if_over(&mut self) {
        let Some(active) = &mut self.active else { return };
        match mem::replace(&mut active.phase, Phase::Next) {
            Phase::Stopping { turn, end, is_quiet: true } if !self.agents.works_for(turn.key) => {
                self.effects.push(SessionEffect::LeaveTurn { key: turn.key });
                active.phase = Phase::Leaving(turn, Leave::Over(end));
            }
            phase => active.phase = phase,
        }
    }

    /// Closes an ended turn in the transcript, since what it left is known.
    pub(super) fn turn_left(&mut self, now: Now, key: TurnKey, left: TurnRemains) {
        let Some(active) = &mut self.active else { return };
        match mem::replace(&mut active.phase, Phase::Next) {
            Phase::Leaving(turn, Leave::Over(end)) if turn.key == key => {
                let open = self.open_turn(&turn, &left);
                if let Some(open) = open {
                    self.write_closing(now, open, end);
                }
                self.calls_over(now, Some((&turn, left.was_sent, end)));
                self.end_run(now, end);
            }
            Phase::Leaving(turn, Leave::Lost(why)) if turn.key == key => {
                let end = RunEnd::NotRecorded;
                self.calls_over(now, Some((&turn, left.was_sent, end)));
                self.recorder.forget_waiting();
                let open = self.open_turn(&turn, &left);
                if let Some(open) = open {
                    self.write_closing(now, open, end);
                }
                self.finish_lost(now, why);
            }
            phase => active.phase = phase,
        }
    }

    /// Ends the run at once, since what cannot be recorded is not done.
    pub(super) fn lose_run(&mut self, now: Now, why: String) {
        let Some(active) = &mut self.active else {
            return self.next_run(now);
        };
        let (run, reason) = (active.run.id.clone(), why.as_str().into());
        self.effects.push(SessionEffect::Publish(Event::RunLost { run, reason }));
        match mem::replace(&mut active.phase, Phase::Next) {
            Phase::Turning(turn) | Phase::Stopping { turn, .. } | Phase::Leaving(turn, _) => {
                self.effects.push(SessionEffect::LeaveTurn { key: turn.key });
                active.phase = Phase::Leaving(turn, Leave::Lost(why));
            }
            Phase::Next | Phase::Ending(_) => {
                self.calls_over(now, None);
                self.recorder.forget_waiting();
                // What is lost may hold the answer. It is tried once more without a new run.
                self.recorder.retry_lost(&mut self.effects);
                self.run_lost(now, why);
            }
        }
    }

    /// Writes the end of a run of which lines are lost, as soon as anything can be written.
    fn finish_lost(&mut self, now: Now, why: String) {
        if let Some(active) = &self.active {
            let line = active.end_record(now.at, RunEnd::NotRecorded);
            self.recorder.append(
                WriteOrigin::Unawaited,
                PendingLines::synced(line),
                &mut self.effects,
            );
        }
        self.run_lost(now, why);
    }

    fn run_lost(&mut self, now: Now, why: String) {
        let Some(active) = self.active.take() else { return };
        self.count_time(now, &active);
        self.stop_all_agents();
        self.reply(active.origin, Err(RunError::Failed(why)));
        self.after_run(now);
    }

    /// Continues what waited for the end of the run.
    pub(super) fn after_run(&mut self, now: Now) {
        self.mode_is_due(now);
        match self.closing {
            ClosePhase::Asked => self.close_if_over(now),
            ClosePhase::No | ClosePhase::Done => self.next_run(now),
        }
    }

    /// What the lines that close a turn are made of.
    fn open_turn(&self, turn: &TurnInFlight, left: &TurnRemains) -> Option<OpenTurn> {
        let ActiveRun { run, .. } = &**self.active.as_ref()?;
        Some(OpenTurn {
            run: run.id.clone(),
            number: run.turns,
            stream: self.conversation.stream.child(run.id.as_str()),
            at_step: turn.at_step(),
            history: self.conversation.history.clone(),
            last_entry: self.conversation.last_entry.clone(),
            committed: left.committed.clone(),
            // An end and its result are written at once.
            ended: Default::default(),
            asked: turn.asked.clone(),
            denial: DenialReason::Interrupted,
            in_doubt: turn.under_way.filter(|_| left.was_sent),
        })
    }

    pub(super) fn write_closing(&mut self, now: Now, open: OpenTurn, end: RunEnd) {
        let mut closing = close(open, now.at, end);
        closing.append.lines.iter().for_each(|it| self.conversation.note(it));
        self.ends_shown(&closing.append.lines);
        if let Some(active) = &mut self.active {
            let records = closing.append.lines.iter().filter_map(Line::record);
            records.for_each(|it| active.questions.note(&it.what));
        }
        for update in closing.append.updates.drain(..) {
            if let (Some(active), Some(message)) = (&mut self.active, update.message()) {
                active.remember(message);
            }
            self.conversation.apply(update);
        }
        self.recorder.append(WriteOrigin::Unawaited, closing.append.into(), &mut self.effects);
    }

    /// Ends the session: interrupts what runs, then closes the transcript.
    pub(super) fn close(&mut self, now: Now) {
        for Queued { origin, .. } in mem::take(&mut self.queue) {
            self.reply(origin, Err(RunError::Ended));
        }
        if self.closing == ClosePhase::Done {
            return self.close_transcript(now);
        }
        self.closing = ClosePhase::Asked;
        self.end_turn(RunEnd::Interrupted);
        self.stop_background_agents();
        self.close_if_over(now);
    }

    pub(super) fn close_transcript(&mut self, now: Now) {
        self.closing = ClosePhase::Done;
        self.record_ended_tasks(now);
        self.effects.push(SpawnEffect::CloseTranscript.into());
    }
}
