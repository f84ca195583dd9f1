//! Step 9 of a turn: is the run over?

use super::{Effect, Turn};
use crate::{
    block::Block,
    event::Event,
    hook::{Firing, HookEvent, HookVerdict, MAX_STOP_HOLDS, may_hold},
    message::{Message, MessageKind},
    run::RunEnd,
    step2_state_initialization::FiringReason,
    step3_context_assembly::{of_hook, source8_tool_results::escape_harness_tags},
    step5_model_call::FailureClass,
    step9_stop_check::{EndReason, RunBudget, StopDecision},
    transcript::entry::StepDetail,
    turn::effect::TurnReport,
};

/// The revision of the rules from which on the end of a sub-agent fires an event of its own.
const AGENTS_APART: u32 = 6;

impl Turn {
    pub(super) fn check_stop(&mut self) {
        self.mark_stop();
        let decision = self.stop_decision();
        let would_end = decision.reason == Some(EndReason::NoPendingTools) && self.end.is_none();
        let fired = would_end && {
            let active = 0 < self.memory.stop_blocks;
            let last_assistant_message = self.last_answer().into();
            let firing = match self.end_event() {
                HookEvent::SubagentStop => Firing::SubagentStop { active, last_assistant_message },
                _ => Firing::Stop { active, last_assistant_message },
            };
            self.fire(firing, None, FiringReason::Stop)
        };
        if !fired && !self.fire_failure() {
            self.stopped(decision);
        }
    }

    /// Fires for a run that the failure of a model server ends; false when nothing waits for hooks.
    fn fire_failure(&mut self) -> bool {
        let Some(class) = self.state.model.failed.take().filter(|_| !self.stop_marked) else {
            return false;
        };
        let error = failure_name(class).into();
        let details = self.error.clone().unwrap_or_default().into();
        let last_assistant_message = self.last_answer().into();
        let firing = Firing::StopFailure { error, details, last_assistant_message };
        self.fire(firing, None, FiringReason::StopFailure)
    }

    /// Handles the end of the StopFailure hooks; the run has failed whatever they answer.
    pub(super) fn failure_answered(&mut self) {
        // Asked for while they ran.
        self.mark_stop();
        let decision = self.stop_decision();
        self.stopped(decision);
    }

    fn last_answer(&self) -> String {
        let last = self.history.iter().rev().find(|it| it.kind == MessageKind::Answer);
        last.map(|it| it.text()).unwrap_or_default()
    }

    /// Writes down that somebody asked for the end, for the stop check to read.
    fn mark_stop(&mut self) {
        if self.stop_requested && !self.stop_marked {
            self.stop_marked = true;
            let id = self.journal.next_id(self.now);
            self.remember(Message::mark(id, Block::stop_request()));
        }
    }

    /// Handles the end of the Stop hooks.
    pub(super) fn stop_answered(&mut self, verdict: HookVerdict) {
        // Asked for while they ran.
        self.mark_stop();
        if let Some(reason) = verdict.stop {
            self.end_with(RunEnd::HookStopped, Some(reason));
        } else if let Some(text) = self.holding(&verdict).filter(|_| !self.stop_marked) {
            if may_hold(self.memory.stop_blocks) {
                self.memory.stop_blocks += 1;
                let id = self.journal.next_id(self.now);
                self.remember(Message::user(id, MessageKind::Meta, vec![Block::text(&text)]));
            } else {
                let what = format!(
                    "a Stop hook held the run open {MAX_STOP_HOLDS} times and was overridden"
                );
                self.alert(&what);
            }
        } else {
            self.memory.stop_blocks = 0;
        }
        let decision = self.stop_decision();
        self.stopped(decision);
    }

    fn stop_decision(&self) -> StopDecision {
        let used = self.used.saturating_add(self.state.model.usage.total().0);
        let budget = RunBudget { used, max: self.settings().run_token_budget };
        self.history.stop_decision(budget)
    }

    fn stopped(&mut self, decision: StopDecision) {
        let reason = decision.reason.map(|it| it.code().to_owned());
        self.record_step(StepDetail::Stop { done: decision.done, reason });
        // What somebody asked for comes first, as in the stop check.
        if self.end.is_none() || decision.reason == Some(EndReason::ExplicitStop) {
            self.end = decision.reason.map(|it| match it {
                EndReason::ExplicitStop => RunEnd::ExplicitStop,
                EndReason::Error => RunEnd::Error,
                EndReason::BudgetExceeded => RunEnd::BudgetExceeded,
                EndReason::NoPendingTools => RunEnd::NoPendingTools,
            });
        }
        self.journal.sync();
        self.finish();
    }

    /// The last effect of the turn. Its last lines go with it, for the one that takes them to let
    /// go out with those that follow at once.
    fn finish(&mut self) {
        self.publish(Event::TurnFinished { turn: self.number });
        let report = TurnReport {
            append: self.journal.take(),
            fallback: self.fallback_used(),
            end: self.end,
            usage: self.state.model.usage,
            memory: std::mem::take(&mut self.memory),
            error: self.error.take(),
        };
        self.effects.push(Effect::Finish(Box::new(report)));
    }

    /// What the model reads when a Stop hook holds its run: why, or what it is to take into account.
    fn holding(&self, verdict: &HookVerdict) -> Option<String> {
        let context = &verdict.additional_context;
        match &verdict.block_reason {
            Some(reason) => Some(format!("Stop hook feedback:\n{}", escape_harness_tags(reason))),
            None if context.is_empty() => None,
            None => Some(of_hook(self.end_event(), self.facts.revision, &context.join("\n\n"))),
        }
    }

    /// The event that the end of a run fires.
    fn end_event(&self) -> HookEvent {
        if self.facts.agent.is_some() && AGENTS_APART <= self.facts.revision {
            HookEvent::SubagentStop
        } else {
            HookEvent::Stop
        }
    }
}

/// The kind of a failure, as matchers of StopFailure name it.
fn failure_name(class: FailureClass) -> &'static str {
    match class {
        FailureClass::RateLimit | FailureClass::Quota => "rate_limit",
        FailureClass::Overloaded => "overloaded",
        FailureClass::Auth => "authentication_failed",
        FailureClass::Billing => "billing_error",
        FailureClass::InvalidRequest
        | FailureClass::ContextOverflow
        | FailureClass::OutputOverflow => "invalid_request",
        FailureClass::MaxOutput => "max_output_tokens",
        FailureClass::Unreachable
        | FailureClass::Network
        | FailureClass::Timeout
        | FailureClass::StreamBroken
        | FailureClass::BadAnswer
        | FailureClass::EmptyAnswer
        | FailureClass::Internal => "server_error",
        FailureClass::PauseTurn | FailureClass::Refusal => "unknown",
    }
}
