//! Hooks at the beginning of a run: whether its prompt is answered, and with what context.

use std::sync::Arc;

use super::Turn;
use crate::{
    block::Block,
    event::Event,
    hook::{Firing, HookEvent, HookVerdict},
    message::{Message, MessageKind},
    run::{
        RunEnd,
        facts::{KEEPS_BEGUN, SEES_PAST_REPORTS},
    },
    step::Step,
    step2_state_initialization::FiringReason,
    step3_context_assembly::{of_hook, source8_tool_results::escape_harness_tags},
    transcript::entry::{RecordKind, StepDetail, WithdrawnPrompt},
};

impl Turn {
    /// Fires what goes before the first turn of a run.
    pub(super) fn submit_prompt(&mut self) {
        if self.number != 1 || !self.has_new_prompt() {
            return self.initialized();
        }
        let is_first = !std::mem::replace(&mut self.memory.has_run, true);
        if !is_first || self.facts.agent.is_some() {
            return self.fire_prompt();
        }
        let source = if self.history.len() == 1 { "startup" } else { "resume" };
        let settings = self.settings();
        let firing =
            Firing::SessionStart { source: source.into(), model: (&*settings.model).into() };
        if !self.fire(firing, None, FiringReason::SessionStart) {
            self.session_begun();
        }
    }

    /// Whether the conversation ends in the prompt of this run, and in what the harness has reported since.
    fn has_new_prompt(&self) -> bool {
        let skips = |it: &&Arc<Message>| {
            SEES_PAST_REPORTS <= self.facts.revision && it.kind == MessageKind::Meta
        };
        let last = self.history.iter().rev().find(|it| !skips(it));
        let is_own = |it: &Arc<Message>| self.prompt.as_ref() == Some(&it.id);
        let is_new = |it: &Arc<Message>| self.facts.revision < SEES_PAST_REPORTS || is_own(it);
        last.is_some_and(|it| it.kind == MessageKind::Prompt && is_new(it))
    }

    pub(super) fn session_start_answered(&mut self, verdict: HookVerdict) {
        match verdict.stop {
            Some(reason) => self.refuse_prompt(HookEvent::SessionStart, reason),
            None => {
                self.add_context(HookEvent::SessionStart, &verdict.additional_context);
                self.state.initial_message = verdict.initial_message;
                self.session_begun();
            }
        }
    }

    /// Has the session be known by what a hook calls it, unless that is what a hook called it before.
    pub(super) fn name_session(&mut self, title: Option<String>) {
        let Some(title) = title.filter(|it| self.memory.title.as_deref() != Some(it)) else {
            return;
        };
        let title: Arc<str> = title.into();
        self.memory.title = Some(Arc::clone(&title));
        self.journal.entitle(title);
    }

    /// Goes on after the hooks at the beginning of the session, which do not run again in this process.
    fn session_begun(&mut self) {
        if let Some(settings) = &self.memory.derived_settings
            && KEEPS_BEGUN <= self.facts.revision
        {
            self.journal.begin_run(Arc::clone(settings));
        }
        self.fire_prompt();
    }

    fn fire_prompt(&mut self) {
        let prompts = |it: &&Arc<Message>| it.kind == MessageKind::Prompt;
        let prompt = self.history.iter().rev().find(prompts).map(|it| it.text());
        let parts = prompt.into_iter().chain(self.state.initial_message.clone());
        let prompt = parts.collect::<Vec<_>>().join("\n\n");
        let firing = match self.facts.agent {
            None => Firing::UserPromptSubmit { prompt: prompt.into() },
            Some(_) => Firing::SubagentStart,
        };
        if !self.fire(firing, None, FiringReason::Prompt) {
            self.add_initial_message();
            self.initialized();
        }
    }

    pub(super) fn prompt_answered(&mut self, verdict: HookVerdict) {
        let event = match self.facts.agent {
            None => HookEvent::UserPromptSubmit,
            Some(_) => HookEvent::SubagentStart,
        };
        match verdict.stop.or(verdict.block_reason) {
            Some(reason) => self.refuse_prompt(event, reason),
            None => {
                self.add_initial_message();
                self.add_context(event, &verdict.additional_context);
                self.initialized();
            }
        }
    }

    /// Adds what a hook at the start has the user say with the prompt, which no hook has refused.
    fn add_initial_message(&mut self) {
        if let Some(text) = self.state.initial_message.take() {
            let blocks = vec![Block::text(&escape_harness_tags(&text))];
            let id = self.journal.next_id(self.now);
            self.remember(Message::user(id, MessageKind::Meta, blocks));
        }
    }

    /// Adds what hooks want the model to read, after the last message; returns the message that holds it.
    pub(super) fn add_context(
        &mut self,
        event: HookEvent,
        texts: &[String],
    ) -> Option<Arc<Message>> {
        if texts.is_empty() {
            return None;
        }
        let blocks = vec![Block::text(&of_hook(event, self.facts.revision, &texts.join("\n\n")))];
        let id = self.journal.next_id(self.now);
        Some(self.remember(Message::user(id, MessageKind::Meta, blocks)))
    }

    /// Ends the run without a model call. The prompt is taken back: no later request holds it.
    fn refuse_prompt(&mut self, hook: HookEvent, reason: String) {
        let prompts = |it: &&Arc<Message>| it.kind == MessageKind::Prompt;
        if let Some(prompt) = self.history.iter().rev().find(prompts).map(|it| it.id.clone()) {
            let what = RecordKind::PromptWithdrawn(WithdrawnPrompt { prompt: prompt.clone() });
            self.journal.record(self.now, what);
            self.journal.withdraw(prompt);
        }
        self.publish(Event::HookMessage { hook, text: reason.as_str().into() });
        self.end_with(RunEnd::HookStopped, Some(reason));
        self.record_state();
        for step in [
            Step::ContextAssembly,
            Step::ContextShaping,
            Step::ModelCall,
            Step::ToolDispatch,
            Step::PermissionGate,
            Step::ToolExecution,
        ] {
            let nothing = "the prompt was refused".into();
            self.record_step_of(step, StepDetail::Nothing { nothing });
        }
        self.next(Step::StopCheck);
    }
}
