//! The end of a run: its last record, its outcome, and what becomes of a run that cannot be recorded.

use std::{sync::Arc, time::Duration};

use ennead_runtime::{
    digest::Digest,
    event::Event,
    ids::ToolUseId,
    message::{Message, MessageKind},
    run::RunEnd,
    transcript::entry::RecordKind,
};
use ractor::ActorRef;

use super::{Active, Phase, last, record};
use crate::{
    session::{Denial, RunError, RunOutcome, SessionMsg, SessionState, recorder::Origin},
    supervision::HandlerResult,
};

/// Outcomes that are kept for repeated run ids.
const KEPT_OUTCOMES: usize = 16;

impl SessionState {
    /// What cannot be recorded is not done: the run ends here and now.
    pub(super) fn lose(&mut self, myself: &ActorRef<SessionMsg>, why: String) -> HandlerResult {
        self.calls_over();
        let Some(active) = self.active.take() else {
            return self.next_run(myself);
        };
        self.took(&active);
        if let Some(turn) = active.phase.in_flight() {
            turn.scope.cancel.cancel();
            turn.supervisor.stop(None);
        }
        self.stop_all_agents();
        let (run, reason) = (active.run.id.clone(), why.as_str().into());
        self.shared.hub.publish(Event::RunFailed { run, reason });
        // The end of the run follows as soon as anything can be written.
        self.recorder.give_up_waiting();
        if matches!(active.phase, Phase::Ending(_)) {
            // What is lost may hold the answer; once more is all that is tried without a new run.
            self.recorder.try_again();
        } else {
            self.close_lost(&active);
        }
        (active.reply)(Err(RunError::Failed(why)));
        if let Some(reply) = self.closing.take() {
            return self.close_now(myself, reply);
        }
        self.next_run(myself)
    }

    /// Writes the last record of the run.
    pub(in crate::session) fn end_run(&mut self, end: RunEnd) {
        self.calls_over();
        let Some(active) = &mut self.active else { return };
        active.phase = Phase::Ending(end);
        let what = RecordKind::RunEnd {
            reason: end.code().into(),
            turns: active.run.turns,
            usage: active.run.usage,
            head: None,
        };
        let at = self.shared.world.clock.now();
        let line = record(at, &active.run.id, 0, what);
        self.recorder.append(Origin::RunEnd, last(line));
    }

    /// The run is over and all of it is safe.
    pub(super) fn ended(&mut self, myself: &ActorRef<SessionMsg>, head: Digest) -> HandlerResult {
        let Some(active) = self.active.take() else { return Ok(()) };
        let Phase::Ending(end) = active.phase else { return Ok(()) };
        let took = self.took(&active);
        let resolved = &self.conversation.memory.resolved;
        self.spent = self.spent + active.run.usage;
        let settings = resolved.as_ref().map(|it| &it.settings);
        let first = settings.map_or("", |it| &it.model);
        let cost = active.cost.named(first);
        let turn_costs = active.turn_costs.into_iter();
        let turn_costs = turn_costs.map(|(turn, it)| (turn, it.named(first))).collect();
        self.cost.add(&cost);
        self.cost = std::mem::take(&mut self.cost).named(first);
        let last = active.said.iter().rev().find(|it| it.kind == MessageKind::Answer);
        let outcome = RunOutcome {
            run: active.run.id.clone(),
            sender: active.sender,
            end,
            text: last.map(|it| it.text()).unwrap_or_default(),
            denials: denials(&active.said, &active.denied),
            messages: active.said,
            turns: active.run.turns,
            usage: active.run.usage,
            session_usage: self.spent,
            cost,
            turn_costs,
            session_cost: self.cost.clone(),
            models: settings.map(|it| Arc::clone(&it.models)).unwrap_or_default(),
            compactions: active.compactions,
            cache_drops: active.cache_drops,
            duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            error: active.error,
            model: resolved.as_ref().map(|it| it.settings.model.clone()).unwrap_or_default(),
            fallback: active.fallback,
            head: Some(head),
        };
        let run = active.run.id;
        if KEPT_OUTCOMES <= self.outcomes.len() {
            // Run ids of ours sort by time, so the first is the oldest.
            self.outcomes.pop_first();
        }
        self.outcomes.insert(run.clone(), outcome.clone());
        self.shared.hub.publish(match end {
            RunEnd::Crashed => Event::RunFailed { run, reason: end.code().into() },
            _ => Event::RunFinished { run, reason: end.code() },
        });
        (active.reply)(Ok(outcome));
        if let Some(reply) = self.closing.take() {
            return self.close_now(myself, reply);
        }
        self.next_run(myself)
    }

    /// How long a run took that is over. The time of its tree is that of the runs of its top.
    fn took(&mut self, run: &Active) -> Duration {
        let took = self.shared.world.clock.elapsed().saturating_sub(run.started);
        if let Some(tree) = self.agents.tree() {
            tree.add_time(took);
        }
        took
    }
}

/// Calls that were denied, as the model made them.
fn denials(said: &[Arc<Message>], denied: &[ToolUseId]) -> Vec<Denial> {
    let uses = said.iter().flat_map(|it| it.tool_uses());
    uses.filter(|(id, ..)| denied.contains(id))
        .map(|(id, tool, input)| Denial {
            tool: tool.clone(),
            call: id.clone(),
            input: input.into(),
        })
        .collect()
}
