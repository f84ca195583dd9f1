//! The end of a run: its last record, its time limit, and its outcome.

use std::{collections::BTreeSet, mem, sync::Arc, time::Duration};

use super::{
    Machine, Now, SessionEffect, SpawnEffect,
    names::RunNumber,
    recorder::{PendingLines, WriteOrigin},
    run::{ActiveRun, Phase, TimeLimit},
};
use crate::{
    digest::Digest,
    event::Event,
    ids::ToolUseId,
    lease::LeaseRefused,
    message::{Message, MessageKind},
    run::{
        RunEnd,
        outcome::{Denial, RunOutcome},
    },
    saturating::Saturating as _,
};

/// Outcomes that are kept for repeated run ids.
const KEPT_OUTCOMES: usize = 16;

impl Machine {
    /// Writes the last record of the run.
    pub(super) fn end_run(&mut self, now: Now, end: RunEnd) {
        self.calls_over(now, None);
        if end == RunEnd::CostLimit {
            self.stop_background_agents();
        }
        let Some(active) = &mut self.active else { return };
        active.phase = Phase::Ending(end);
        let line = active.end_record(now.at, end);
        self.recorder.append(WriteOrigin::RunEnd, PendingLines::synced(line), &mut self.effects);
    }

    /// Ends the run, which is over and all of which is safe.
    pub(super) fn run_ended(&mut self, now: Now, head: Digest) {
        let is_ending = |it: &mut Box<ActiveRun>| matches!(it.phase, Phase::Ending(_));
        let Some(active) = self.active.take_if(is_ending) else { return };
        let Phase::Ending(end) = active.phase else { return };
        let took = self.count_time(now, &active);
        let ActiveRun { run, origin, sender, messages, denied, .. } = *active;
        self.spent = self.spent + run.usage;
        let resolved = &self.conversation.memory.resolved;
        let settings = resolved.as_ref().map(|it| &it.settings);
        let first = settings.map_or("", |it| &it.model);
        let cost = active.cost.named(first);
        let turn_costs = active.turn_costs.into_iter();
        let turn_costs = turn_costs.map(|(turn, it)| (turn, it.named(first))).collect();
        self.cost.add(&cost);
        self.cost_here.add(&cost);
        self.cost_here = mem::take(&mut self.cost_here).named(first);
        self.cost = mem::take(&mut self.cost).named(first);
        let answer = messages.iter().rev().find(|it| it.kind == MessageKind::Answer);
        let models = settings.map(|it| Arc::clone(&it.models)).unwrap_or_default();
        let outcome = RunOutcome {
            session_turns: self.compaction_share.turns,
            compacted_turns: self.compaction_share.compacted,
            cache_saved: cost.saved_by_caches(&models),
            run: run.id.clone(),
            sender,
            end,
            text: answer.map(|it| it.text()).unwrap_or_default(),
            denials: denials(&messages, &denied),
            questions: active.questions,
            messages,
            turns: run.turns,
            usage: run.usage,
            session_usage: self.spent,
            cost,
            turn_costs,
            session_cost: self.cost.clone(),
            models,
            process_cost: self.cost_here.clone(),
            compactions: active.compactions,
            cache_drops: active.cache_drops,
            duration_ms: u64::saturating(took.as_millis()),
            error: active.error,
            model: settings.map(|it| it.model.clone()).unwrap_or_default(),
            fallback: active.fallback,
            head: Some(head),
        };
        if KEPT_OUTCOMES <= self.outcomes.len() {
            // Run ids of ours sort by time, so the first is the oldest.
            self.outcomes.pop_first();
        }
        self.outcomes.insert(run.id.clone(), outcome.clone());
        self.effects.push(SessionEffect::Publish(match end {
            RunEnd::Crashed => Event::RunLost { run: run.id, reason: end.code().into() },
            _ => Event::RunFinished { run: run.id, reason: end.code() },
        }));
        self.reply(origin, Ok(outcome));
        self.after_run(now);
    }

    /// Counts how long a run took that is over. The time of a tree is that of the runs of its top.
    pub(super) fn count_time(&mut self, now: Now, run: &ActiveRun) -> Duration {
        if run.limit.is_some() {
            self.effects.push(SessionEffect::UnwatchTime);
        }
        let took = now.elapsed.saturating_sub(run.started);
        if let Some(tree) = self.agents.tree() {
            tree.add_time(took);
        }
        took
    }

    /// Ends the run when its own time is over or its lease ends, whichever is first, as that is now.
    pub(super) fn limit_time(&mut self) {
        let Some(active) = &mut self.active else { return };
        let own = active.time_limit.map(|it| TimeLimit {
            deadline: active.started.saturating_add(it),
            end: RunEnd::TimedOut,
        });
        let ends = self.agents.ends();
        let lease = ends.map(|deadline| TimeLimit { deadline, end: RunEnd::TreeLimit });
        let first = own.into_iter().chain(lease).min_by_key(|it| it.deadline);
        if active.limit == first {
            return;
        }
        active.limit = first;
        self.effects.push(match first {
            Some(TimeLimit { deadline, .. }) => {
                SpawnEffect::WatchTime { run: active.number, deadline }.into()
            }
            None => SessionEffect::UnwatchTime,
        });
    }

    /// Ends a run that has reached its limit.
    pub(super) fn time_is_up(&mut self, run: RunNumber, deadline: Duration) {
        let Some(active) = self.active.as_mut().filter(|it| it.number == run) else { return };
        // Another limit may hold by now.
        let Some(limit) = active.limit.take_if(|it| it.deadline == deadline) else { return };
        if limit.end == RunEnd::TreeLimit {
            active.error = Some(LeaseRefused::TimeUsedUp.to_string());
        }
        self.end_turn(limit.end);
    }
}

/// Calls that were denied, as the model made them.
fn denials(messages: &[Arc<Message>], denied: &[ToolUseId]) -> Vec<Denial> {
    let denied: BTreeSet<&ToolUseId> = denied.iter().collect();
    let uses = messages.iter().flat_map(|it| it.tool_uses());
    uses.filter(|(id, ..)| denied.contains(id))
        .map(|(id, tool, input)| Denial {
            tool: tool.clone(),
            call: id.clone(),
            input: input.into(),
        })
        .collect()
}
