//! The turns of a run, one after another.

use std::mem;

use super::{
    Machine, Now, SessionEffect, SessionInput, SpawnEffect,
    names::{TurnKey, WriteTicket},
    recorder::{Acknowledged, WriteOrigin},
    run::{Phase, TurnInFlight},
};
use crate::{
    catalogue::Money,
    cost::CostLedger,
    digest::Digest,
    event::Event,
    ids::ToolUseId,
    lease::Spent,
    ports::messages::MessageFate,
    run::{AfterTurn, RunEnd},
    step::Step,
    step1_settings_resolution::Settings,
    transcript::entry::{Line, RecordKind},
    turn::effect::{Append, HistoryUpdate, TurnReport},
};

impl Machine {
    /// Returns whether this turn is active and was not ended.
    pub fn is_turning(&self, key: TurnKey) -> bool {
        let phase = self.active.as_ref().map(|it| &it.phase);
        matches!(phase, Some(Phase::Turning(turn)) if turn.key == key)
    }

    /// Returns whether this turn is active, or was ended and is not over yet.
    pub(crate) fn is_in_flight(&self, key: TurnKey) -> bool {
        let in_flight = self.active.as_ref().and_then(|it| it.phase.in_flight());
        in_flight.is_some_and(|it| it.key == key)
    }

    /// Returns whether a turn may begin with this input. Within a turn, results of its own may still show the model
    /// what has ended.
    pub fn may_begin_turn(&self, input: &SessionInput) -> bool {
        let in_flight = self.active.as_ref().and_then(|it| it.phase.in_flight());
        in_flight.is_none() || matches!(input, SessionInput::TurnDone { .. })
    }

    /// Starts the next turn, if one is due.
    pub(super) fn start_next_turn(&mut self, now: Now) {
        let Some(active) = &self.active else { return };
        if !matches!(active.phase, Phase::Next) {
            return;
        }
        if let Some(why) = self.cost_limit() {
            if let Some(active) = &mut self.active {
                active.error = Some(why);
            }
            return self.end_run(now, RunEnd::CostLimit);
        }
        self.report_ended_tasks(now);
        self.show_messages(now);
        let Some(active) = &mut self.active else { return };
        let budget = self.conversation.budget(active.run.usage);
        self.conversation.join_tools(mem::take(&mut self.joining));
        active.run.turns += 1;
        let key = self.last_turn.advance();
        active.phase = Phase::Turning(TurnInFlight::new(key));
        let started = Event::TurnStarted { turn: active.run.turns };
        self.effects.push(SessionEffect::Publish(started));
        self.publish_heard_hooks();
        let Some(active) = &self.active else { return };
        let setup = Box::new(self.conversation.turn(&active.run, budget));
        self.effects.push(SpawnEffect::StartTurn { key, setup, is_last: active.stops }.into());
    }

    /// Why nothing more may be spent, in words; `None` while more may be. What is not known to cost
    /// something is not counted.
    pub(super) fn cost_limit(&self) -> Option<String> {
        let resolved = self.conversation.memory.resolved.as_ref()?;
        let max = Money::of_micro_usd(resolved.settings.max_cost_micro_usd?);
        let of = |ledger: &CostLedger| ledger.tree().total().known_cost();
        let mut spent = of(&self.cost_here)?;
        if let Some(active) = &self.active {
            spent = spent + of(&active.cost)?;
        }
        (max < spent).then(|| {
            format!("Reached maximum budget (${}): ${:.6} are spent", max.usd(), spent.usd())
        })
    }

    /// Writes what a turn wants written.
    pub(super) fn append(&mut self, now: Now, key: TurnKey, mut append: Box<Append>) {
        if !self.take_lines(now, key, &mut append) {
            return;
        }
        let origin = if append.is_awaited {
            WriteOrigin::Turn { key, ticket: append.ticket }
        } else {
            WriteOrigin::Unawaited
        };
        self.recorder.append(origin, (*append).into(), &mut self.effects);
    }

    /// Takes over what lines of a turn say. `false` when that turn is over: nothing was taken.
    fn take_lines(&mut self, now: Now, key: TurnKey, append: &mut Append) -> bool {
        let Some(active) = &mut self.active else { return false };
        let in_flight = active.phase.in_flight_mut();
        let Some(turn) = in_flight.filter(|it| it.key == key) else { return false };
        turn.recorded = append.lines.iter().rev().find_map(step_of).or(turn.recorded);
        let (mut has_called, mut modes) = (false, Vec::new());
        for line in &append.lines {
            self.conversation.note(line);
            let Line::Harness(record) = line else { continue };
            active.cost.note(&record.what);
            active.questions.note(&record.what);
            turn.note_question(&record.what);
            active.turn_costs.entry(record.turn).or_default().note(&record.what);
            if let RecordKind::Mode(change) = &record.what {
                modes.push(change.clone());
            }
            if let RecordKind::ModelAttempt { cache_drop, in_doubt, .. } = &record.what {
                has_called = true;
                active.in_doubt = active.in_doubt + in_doubt.map(Spent::from).unwrap_or_default();
                active.cache_drops.extend(cache_drop.as_deref().cloned());
            }
        }
        if has_called {
            turn.under_way = None;
        }
        active.denied.extend(append.lines.iter().filter_map(denied_call));
        self.ends_shown(&append.lines);
        let Some(active) = &mut self.active else { return false };
        for update in append.updates.drain(..) {
            match &update {
                HistoryUpdate::Message(message) => active.remember(message),
                HistoryUpdate::Compacted { summary, .. } => {
                    active.compactions.push(summary.id.clone());
                    active.turn_compacted = true;
                }
                HistoryUpdate::ContextShown(_)
                | HistoryUpdate::RunBegun(_)
                | HistoryUpdate::Withdrawn(_) => {}
            }
            self.conversation.apply(update);
        }
        modes.iter().for_each(|it| self.mode_recorded(it));
        if has_called {
            self.settle(now);
        }
        true
    }

    /// Handles that lines are safe, or lost.
    pub(super) fn written(
        &mut self,
        now: Now,
        ticket: WriteTicket,
        result: Result<Digest, String>,
    ) {
        match self.recorder.answered(ticket, result) {
            Acknowledged::Stale | Acknowledged::Recorded(WriteOrigin::Unawaited, _) => {}
            Acknowledged::Lost(why) => self.lose_run(now, why),
            Acknowledged::Recorded(WriteOrigin::RunEnd, head) => self.run_ended(now, head),
            Acknowledged::Recorded(WriteOrigin::Begun(prompt), _) => {
                self.effects.push(SessionEffect::Begun(prompt));
            }
            Acknowledged::Recorded(WriteOrigin::Message(number), _) => {
                let fate = MessageFate::Taken;
                self.effects.push(SessionEffect::MessageTaken { number, fate });
            }
            Acknowledged::Recorded(WriteOrigin::Turn { key, ticket }, _) => {
                // A turn that was ended meanwhile waits for nothing.
                if self.is_in_flight(key) {
                    self.effects.push(SessionEffect::TurnRecorded { key, ticket });
                }
            }
        }
    }

    /// Names the model that the turn asked first, since the next turn may ask another.
    fn name_model_of_turn(&mut self) {
        let Some(resolved) = &self.conversation.memory.resolved else { return };
        let Some(active) = &mut self.active else { return };
        let of_turn = active.turn_costs.values_mut().next_back();
        for ledger in of_turn.into_iter().chain([&mut active.cost]) {
            *ledger = std::mem::take(ledger).named(&resolved.settings.model);
        }
    }

    /// Ends a turn that has reached its end.
    pub(super) fn turn_done(&mut self, now: Now, key: TurnKey, mut report: TurnReport) {
        if let Some(mut append) = report.append.take()
            && self.take_lines(now, key, &mut append)
        {
            // The next turn, or the end of the run, has more to write at once.
            self.recorder.hold((*append).into());
        }
        if !self.is_turning(key) {
            return;
        }
        self.conversation.hand_on(report.memory);
        self.name_model_of_turn();
        self.mode_is_due(now);
        let limits = self.limits_used(now);
        let Some(active) = &mut self.active else { return };
        active.error = report.error.or(active.error.take());
        active.fallback = report.fallback.or(active.fallback.take());
        active.phase = Phase::Next;
        let was_compacted = std::mem::take(&mut active.turn_compacted);
        // What it was sent meanwhile comes after its answer.
        let is_last = !matches!(report.end, Some(RunEnd::NoPendingTools)) || self.unread.is_empty();
        let (end, usage) = (report.end.filter(|_| is_last), report.usage);
        let after = match &self.conversation.memory.resolved {
            Some(resolved) => active.run.after_turn(end, usage, &resolved.settings, &limits),
            None => active.run.after_turn(end, usage, &Settings::default(), &limits),
        };
        let frequent = self.compaction_share.count(was_compacted);
        self.publish_alerts(frequent);
        let cost_limit = self.cost_limit();
        match after {
            AfterTurn::Next(_)
            | AfterTurn::End(RunEnd::NoPendingTools | RunEnd::ExplicitStop | RunEnd::Compacted)
                if cost_limit.is_some() =>
            {
                if let Some(active) = &mut self.active {
                    active.error = cost_limit;
                }
                self.end_run(now, RunEnd::CostLimit);
            }
            AfterTurn::Next(alerts) => self.publish_alerts(alerts),
            AfterTurn::End(end) => self.end_run(now, end),
        }
    }
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
