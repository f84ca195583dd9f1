//! Fires hooks from whichever step, and reads what their handlers answer.
//!
//! A step calls [`Turn::fire`] and goes on when its own `*_answered` is called with the verdict:
//! step 1 before changed settings hold, step 2 before a prompt is answered, step 3 after instructions were loaded, step 4 before and after a
//! compaction, step 7 before a call, before somebody is asked about it and after a model has denied it,
//! step 8 after it, after a move of the working directory and after all calls, step 9 before the end and after a failure.

use std::sync::Arc;

use super::{Effect, Turn, count};
use crate::{
    event::Event,
    hook::{
        self, Firing, HandlerEnd, HandlerOutput, HookAction, HookAnswer, HookEvent, HookHandler,
        HookInput, HookVerdict, WatchReach,
    },
    run::facts::{
        ASKS_SERVERS, FIRES_AT_BATCHES, FIRES_AT_FILES, FIRES_AT_SETTINGS, FIRES_MORE,
        HOOKS_ASK_MODELS, HOOKS_CALL_TOOLS, HOOKS_START_AGENTS, RECORDS_MATCHERS,
    },
    step2_state_initialization::{AwaitedFiring, FiringReason},
    step7_permission_gate::hook_condition::CallOfHook,
    tool::ToolCall,
    transcript::entry::{RecordKind, SidechainHead, StoredText, TextFolder},
    turn::effect::HookFiring,
};

/// The revision of the rules from which on events fire that earlier sessions did not know.
const MORE_EVENTS: u32 = 6;

/// The revision of the rules from which on somebody who is to be asked is notified.
const NOTIFIES: u32 = 8;

/// Bytes of an output that listeners are shown.
const MAX_SHOWN_BYTES: usize = 10_000;

/// The revision of the rules from which on an event fires.
fn first_revision(event: HookEvent) -> u32 {
    match event {
        HookEvent::PreToolUse
        | HookEvent::PostToolUse
        | HookEvent::PreCompact
        | HookEvent::Stop => 0,
        HookEvent::Notification | HookEvent::SessionEnd => NOTIFIES,
        HookEvent::PermissionDenied
        | HookEvent::StopFailure
        | HookEvent::InstructionsLoaded
        | HookEvent::CwdChanged => FIRES_MORE,
        HookEvent::ConfigChange => FIRES_AT_SETTINGS,
        HookEvent::FileChanged => FIRES_AT_FILES,
        HookEvent::PostToolBatch => FIRES_AT_BATCHES,
        _ => MORE_EVENTS,
    }
}

/// Names the files in which texts that are too long to be shown are kept; returns these texts.
pub(crate) fn keep_overlong(verdict: &mut HookVerdict, directory: &str) -> Vec<StoredText> {
    let mut kept = Vec::new();
    for overlong in std::mem::take(&mut verdict.overlong) {
        let whole = StoredText::new(overlong.whole.as_str(), TextFolder::ToolResults);
        let path = format!("{directory}/tool-results/{}.txt", whole.digest);
        verdict.stored(&overlong, &path);
        kept.push(whole);
    }
    kept
}

/// The beginning of an output.
fn excerpt(output: &str) -> Arc<str> {
    output[..output.floor_char_boundary(MAX_SHOWN_BYTES)].into()
}

impl Turn {
    /// Fires the handlers that match; false when there is none.
    pub(super) fn fire(
        &mut self,
        what: Firing<'_>,
        call: Option<&ToolCall>,
        reason: FiringReason,
    ) -> bool {
        let event = what.event();
        // What a hook has started is not an agent of the session's: its beginning and its end are the hook's.
        let is_hooks_own = self.facts.verifies
            && matches!(event, HookEvent::SubagentStart | HookEvent::SubagentStop);
        if self.facts.revision < first_revision(event) || is_hooks_own {
            return false;
        }
        let subject = what.subject(&self.facts.agent_type);
        let handlers = self.matching_hooks(event, subject);
        if handlers.is_empty() {
            return false;
        }
        let firing = self.state.firings;
        self.state.firings += 1;
        let order = HookFiring {
            firing,
            event,
            call: call.map(|it| it.id.clone()),
            tool: call.map(|it| it.name.clone()),
            input: HookInput { context: self.hook_context(), firing: what.into_owned() },
            call_of_hook: self.call_of_hook(call, &handlers),
            handlers: handlers.clone(),
        };
        for (index, handler) in handlers.iter().enumerate() {
            if handler.condition.is_none() {
                self.publish_start(event, firing, index, handler);
            }
        }
        let call = order.call.clone();
        self.state.firing =
            Some(AwaitedFiring { firing, event, call, reason, handlers, outputs: Vec::new() });
        self.effects.push(Effect::RunHooks(Box::new(order)));
        true
    }

    fn publish_start(&mut self, hook: HookEvent, firing: u32, index: usize, handler: &HookHandler) {
        let (index, label) = (count(index), handler.label().into());
        self.publish(Event::HookStarted { hook, firing, index, label });
    }

    /// What the conditions of these handlers are held against; `None` where they have none, and where it is not about a
    /// call of a tool that is there: then they all run.
    fn call_of_hook(
        &self,
        call: Option<&ToolCall>,
        handlers: &[HookHandler],
    ) -> Option<CallOfHook> {
        let call = call.filter(|_| handlers.iter().any(|it| it.condition.is_some()))?;
        let spec = self.facts.tools.iter().find(|it| it.name == call.name)?;
        let setup = self.state.gate_setup.as_ref()?.with_cwd(self.cwd());
        Some(CallOfHook::new(spec, Arc::clone(&call.input), Arc::new(setup)))
    }

    /// Returns whether there are handlers for this subject.
    pub(super) fn has_hooks(&self, event: HookEvent, subject: &str) -> bool {
        first_revision(event) <= self.facts.revision
            && !self.matching_hooks(event, Some(subject)).is_empty()
    }

    /// Returns the handlers that run, in configuration order, of those that the rules of this session know.
    pub(crate) fn matching_hooks(
        &self,
        event: HookEvent,
        subject: Option<&str>,
    ) -> Vec<HookHandler> {
        let settings = self.settings();
        let revision = self.facts.revision;
        let asks_servers = ASKS_SERVERS <= revision;
        let matching = if asks_servers { hook::matching } else { hook::matching_commands };
        let is_known = |it: &&HookHandler| match it.action {
            HookAction::McpTool(_) => HOOKS_CALL_TOOLS <= revision,
            HookAction::Prompt(_) => HOOKS_ASK_MODELS <= revision,
            HookAction::Agent(_) => HOOKS_START_AGENTS <= revision,
            _ => true,
        };
        // What the user and the organisation set is no matter of a repository.
        let is_foreign = event == HookEvent::ConfigChange
            && matches!(subject, Some("user_settings" | "policy_settings"));
        // Nor may one that only restricts keep what is looser.
        let keeps = |it: &HookHandler| event == HookEvent::ConfigChange && it.only_restricts;
        let may_run =
            |it: &&HookHandler| !(it.scope.is_of_repository() && (is_foreign || keeps(it)));
        let matching = matching(&settings.hooks, event, subject).into_iter();
        matching.filter(is_known).filter(may_run).cloned().collect()
    }

    pub(super) fn hooks_answered(&mut self, firing: u32, outputs: Vec<HandlerOutput>) {
        let Some(awaited) = self.state.firing.as_mut().filter(|it| it.firing == firing) else {
            return;
        };
        awaited.outputs = outputs;
        self.go_on_with_hooks();
    }

    /// Asks the model for a handler that wants it; when there is none, takes what all handlers have answered.
    pub(super) fn go_on_with_hooks(&mut self) {
        if self.ask_for_hook() {
            return;
        }
        let Some(awaited) = self.state.firing.take() else { return };
        let firing = awaited.firing;
        let (event, call) = (awaited.event, &awaited.call);
        let fail_closed = self.settings().hooks_fail_closed;
        let mut answers = Vec::new();
        // A handler without an output was not run.
        let missing = HandlerOutput::refused("nothing was heard of it");
        let outputs = awaited.outputs.iter().chain(std::iter::repeat(&missing));
        for (index, (handler, output)) in awaited.handlers.iter().zip(outputs).enumerate() {
            let answer = handler.answer(event, output, fail_closed, self.facts.revision);
            let answer = if handler.only_restricts { answer.restricting() } else { answer };
            let answer = answer.watching(WatchReach::of(handler));
            let effect = answer.effect().to_owned();
            if output.ended != HandlerEnd::Unmet {
                // That it runs was not known before its condition was looked at.
                if handler.condition.is_some() {
                    self.publish_start(event, firing, index, handler);
                }
                self.publish(Event::HookFinished {
                    hook: event,
                    firing,
                    index: count(index),
                    effect: effect.as_str().into(),
                    exit: output.ended.exit_code(),
                    stdout: excerpt(&output.stdout),
                    stderr: excerpt(&output.stderr),
                });
            }
            let messages = &answer.verdict.messages;
            let message = (!messages.is_empty()).then(|| messages.join("\n"));
            let what = RecordKind::Hook {
                event,
                call: call.clone(),
                index: count(index),
                handler: handler.label(),
                matcher: handler.matcher.text().filter(|_| RECORDS_MATCHERS <= self.facts.revision),
                file: None,
                exit: output.ended.exit_code(),
                ended: output.ended.code().into(),
                duration_ms: output.duration_ms,
                effect,
                message: message.map(|it| self.journal.stored(&it)),
                stdout: self.journal.stored(&output.stdout),
                stderr: self.journal.stored(&output.stderr),
                shows: None,
                sidechain: output
                    .sidechain
                    .clone()
                    .map(|(agent, head)| SidechainHead::new(agent, head)),
            };
            self.journal.record(self.now, what);
            answers.push(answer);
        }
        let (mut verdict, kept) = self.join(event, answers);
        kept.into_iter().for_each(|it| self.journal.keep(it));
        for error in &verdict.errors {
            self.publish(Event::Alert { what: error.as_str().into() });
        }
        for text in &verdict.messages {
            self.publish(Event::HookMessage { hook: event, text: text.as_str().into() });
        }
        if let Some(named) = verdict.watches.take() {
            self.watch_files(Some(named));
        }
        self.name_session(verdict.title.take());
        match awaited.reason {
            FiringReason::SessionStart => self.session_start_answered(verdict),
            FiringReason::Prompt => self.prompt_answered(verdict),
            FiringReason::PreToolUse => self.pre_tool_use_answered(verdict),
            FiringReason::PermissionRequest => self.permission_request_answered(verdict),
            FiringReason::Notification => self.notified(&verdict),
            FiringReason::AfterCall(index) => self.after_call_answered(index, verdict),
            FiringReason::PreCompact => self.pre_compact_answered(verdict),
            FiringReason::PostCompact => self.post_compact_answered(&verdict),
            FiringReason::CompactStart => self.compact_start_answered(verdict),
            FiringReason::InstructionsLoaded => self.loaded_answered(verdict),
            FiringReason::PermissionDenied => self.denial_answered(verdict),
            FiringReason::ConfigChange => self.config_answered(verdict),
            FiringReason::CwdChanged => self.cwd_answered(verdict),
            FiringReason::PostToolBatch => self.batch_answered(verdict),
            FiringReason::Stop => self.stop_answered(verdict),
            FiringReason::StopFailure => self.failure_answered(),
        }
    }

    /// Joins the answers of one firing, and returns the texts that are kept in files since they are too long to be
    /// shown.
    pub(crate) fn join(
        &self,
        event: HookEvent,
        answers: Vec<HookAnswer>,
    ) -> (HookVerdict, Vec<StoredText>) {
        let mut verdict = hook::merge(event, answers);
        let kept = keep_overlong(&mut verdict, &self.facts.directory);
        (verdict, kept)
    }

    /// What all hook inputs hold.
    fn hook_context(&self) -> hook::HookContext {
        let agent = self.facts.agent.clone();
        // The prompt of a sub-agent is none of the program's.
        let prompt = self.prompt.clone().filter(|_| agent.is_none());
        hook::HookContext {
            session: self.facts.session.clone(),
            transcript_path: Arc::clone(&self.facts.transcript),
            cwd: self.cwd().into(),
            mode: self.mode(),
            prompt,
            agent: agent.map(|it| (it, Arc::clone(&self.facts.agent_type))),
        }
    }
}
