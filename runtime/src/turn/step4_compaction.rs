//! The middle of auto_compact: hooks before and after, the model's summary, and what takes the place of the old part.

use std::{collections::BTreeSet, iter, sync::Arc};

use super::Turn;
use crate::{
    catalogue::Money,
    hook::{Firing, HookEvent, HookVerdict},
    message::{Message, MessageKind, Messages, estimate_of},
    run::{
        RunEnd,
        facts::{FIRES_MORE, REBUILDS, REMEMBERS_FRUITLESS},
    },
    step2_state_initialization::FiringReason,
    step4_context_shapers::{ShapedContext, ShaperSetup, Stage, Trigger, shrink, under_pressure},
    step5_model_call::ModelAnswer,
    tokens::Tokens,
    transcript::entry::Boundary,
};

impl Turn {
    pub(super) fn pre_compact_answered(&mut self, verdict: HookVerdict) {
        match verdict.block_reason.or(verdict.stop) {
            None => self.ask_for_summary(None),
            Some(reason) => {
                self.no_summary(&format!("a PreCompact hook blocked it: {reason}"), false);
            }
        }
    }

    /// Returns why the conversation is summed up, for hooks.
    pub(super) fn compaction_trigger(&self) -> &'static str {
        if self.compacts.is_some() { "manual" } else { "auto" }
    }

    /// Fires what follows a compaction, and goes on.
    pub(super) fn compaction_over(&mut self) {
        let summary = |it: &&Arc<Message>| it.kind == MessageKind::CompactSummary;
        let summary = self.history.iter().find(summary).map(|it| it.text()).unwrap_or_default();
        let trigger = self.compaction_trigger().into();
        let firing = Firing::PostCompact { trigger, summary: summary.into() };
        if !self.fire(firing, None, FiringReason::PostCompact) {
            self.start_again();
        }
    }

    /// Fires the start of a session, which goes on from a summary now.
    fn start_again(&mut self) {
        let model = self.settings().model.clone();
        let firing = Firing::SessionStart { source: "compact".into(), model: model.into() };
        let fires = FIRES_MORE <= self.facts.revision && self.facts.agent.is_none();
        if !fires || !self.fire(firing, None, FiringReason::CompactStart) {
            self.fire_loaded();
        }
    }

    pub(super) fn compact_start_answered(&mut self, verdict: HookVerdict) {
        if let Some(reason) = verdict.stop {
            self.end_with(RunEnd::HookStopped, Some(reason));
        }
        let message = self.add_context(HookEvent::SessionStart, &verdict.additional_context);
        let counting = self.counting();
        if let Some((message, shaped)) = message.zip(self.state.shaped.as_mut()) {
            shaped.tokens = shaped.tokens + counting.tokens(message.estimate());
            shaped.messages.push(message);
        }
        self.fire_loaded();
    }

    pub(super) fn post_compact_answered(&mut self, verdict: &HookVerdict) {
        if let Some(reason) = &verdict.stop {
            self.end_with(RunEnd::HookStopped, Some(reason.clone()));
        }
        self.start_again();
    }

    pub(super) fn summary_answered(&mut self, answer: &ModelAnswer) {
        let text: Vec<_> = answer.blocks.iter().filter_map(|it| it.as_text()).collect();
        self.order_stage(Stage::AutoCompact, Some(text.join("\n")));
    }

    /// Asks again with less to summarise, if there is less.
    pub(super) fn shrink_summary(&mut self, cause: &'static str) {
        match self.state.shaping.summary.as_ref().and_then(shrink) {
            Some(request) => {
                self.state.shaping.summary = Some(request);
                self.ask_for_summary(Some(cause));
            }
            None => self.no_summary(&format!("no summary: {cause}"), true),
        }
    }

    /// Goes on without a summary, for a reason that lasts or one that need not be there in the next run.
    pub(super) fn no_summary(&mut self, why: &str, lasts: bool) {
        self.state.shaping.summary = None;
        let before = self.state.shaped.as_ref().map_or(Tokens(0), |it| it.tokens);
        self.watch_compaction(before, why, lasts);
        self.log_stage(Stage::AutoCompact, false, before, 0, why);
        self.after_stage(Stage::AutoCompact, false);
    }

    /// Replaces what is before the summary by it from now on, in the transcript as well.
    pub(super) fn compacted(&mut self, context: &ShapedContext, pre_tokens: Tokens) {
        let found = context.messages.walk().position(|it| it.kind == MessageKind::CompactSummary);
        let Some(at) = found else { return };
        let summary = Arc::clone(&context.messages[at]);
        // What follows it in the transcript, marks between the messages included.
        let kept: BTreeSet<_> = context.messages[at + 1..].iter().map(|it| &it.id).collect();
        let is_dropped = |it: &&Arc<Message>| !kept.contains(&it.id);
        let mut preserved: Messages = self.history.iter().skip_while(is_dropped).cloned().collect();
        while preserved.pop_if(|it| is_dropped(&&*it)).is_some() {}
        let ends = preserved.first().zip(preserved.last());
        let boundary = Boundary {
            trigger: match self.state.shaping.failure {
                Some(_) => "reactive",
                None => self.compaction_trigger(),
            },
            pre_tokens,
            preserved: ends.map(|(head, tail)| (head.id.clone(), tail.id.clone())),
        };
        self.journal.compaction(self.now, boundary, Arc::clone(&summary), preserved.clone());
        self.history = iter::once(summary).chain(preserved).collect();
        if REBUILDS <= self.facts.revision {
            // What is shown from now on is recorded as a change of what the transcript goes on from.
            self.memory.view = None;
        }
        self.memory.anchor = None;
        self.memory.spent = Money::default();
        if REMEMBERS_FRUITLESS <= self.facts.revision {
            self.memory.compactions.stop_waiting();
        }
    }

    /// Shows the harness's own context again where the summary took its place, in turns whose stages were given it; the
    /// model still needs it.
    pub(super) fn show_context_again(&mut self, context: &mut ShapedContext) {
        let Some(assembled) = self.state.assembled.as_ref().filter(|_| !self.shapes_conversation())
        else {
            return;
        };
        let made_up = &assembled.context;
        let is_gone = |it: &&Arc<Message>| context.messages.walk().all(|kept| kept.id != it.id);
        let gone: Messages = made_up.iter().filter(is_gone).cloned().collect();
        context.tokens = context.tokens + self.counting().tokens(estimate_of(&gone));
        context.messages = gone.iter().chain(context.messages.walk()).cloned().collect();
    }

    /// Ends a run that compacts again and again and gets nowhere.
    pub(super) fn watch_compaction(&mut self, before: Tokens, why: &str, lasts: bool) {
        // Somebody wanted it as it is.
        let Some(context) = self.state.shaped.as_ref().filter(|_| self.compacts.is_none()) else {
            return;
        };
        let Some(setup) = &self.state.shaper_setup else { return };
        let own = ShaperSetup { trigger_override: None, ..ShaperSetup::clone(setup) };
        let pressure = under_pressure(context, &own);
        let (after, is_pressed) = (context.tokens, pressure.is_some());
        let fits = self.state.shaping.failure.is_none()
            && match pressure {
                Some(Trigger::Messages | Trigger::Cost) => true,
                // A limit that the settings set is one that somebody wants held.
                Some(Trigger::Tokens) => {
                    self.shapes_conversation()
                        && own.settings.auto_compact_max_tokens.is_none()
                        && after <= own.context_budget
                }
                None => false,
            };
        if 2 <= self.facts.revision && fits {
            return self.memory.compactions.wait(context.messages.len(), lasts);
        }
        if let Some(evidence) = self.memory.compactions.note(before, after, is_pressed, why) {
            self.end_with(RunEnd::PromptTooLong, Some(evidence));
        }
    }
}
