//! Fires hooks from whichever step, and reads what their handlers answer.
//!
//! A step calls [`Turn::fire`] and goes on when its own `*_answered` is called with the verdict:
//! step 4 before a compaction, step 7 before a call, step 8 after it, step 9 before the end.

use super::{Effect, Turn};
use crate::{
    event::Event,
    hook::{self, Firing, HandlerOutput, HookAnswer, HookEvent, HookVerdict},
    step2_state_initialization::{AwaitedFiring, FiringReason},
    tool::ToolCall,
    transcript::entry::{RecordKind, StoredText, TextFolder},
    turn::effect::HookFiring,
};

impl Turn {
    /// Fires the handlers that match; false when there is none.
    pub(super) fn fire(
        &mut self,
        what: &Firing<'_>,
        call: Option<&ToolCall>,
        reason: FiringReason,
    ) -> bool {
        let settings = self.settings();
        let (event, subject) = (what.event(), what.subject());
        let handlers: Vec<_> =
            hook::matching(&settings.hooks, event, subject).into_iter().cloned().collect();
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
            input: hook::input_json(&self.hook_context(), what).into(),
            handlers: handlers.clone(),
        };
        self.state.firing = Some(AwaitedFiring { firing, reason, handlers });
        self.effects.push(Effect::RunHooks(Box::new(order)));
        true
    }

    pub(super) fn hooks_answered(&mut self, firing: u32, outputs: Vec<HandlerOutput>) {
        let Some(awaited) = self.state.firing.take_if(|it| it.firing == firing) else { return };
        let (event, call) = match &awaited.reason {
            FiringReason::PreToolUse(_, call) => (HookEvent::PreToolUse, Some(call.clone())),
            FiringReason::PostToolUse(_, call) => (HookEvent::PostToolUse, Some(call.clone())),
            FiringReason::PreCompact => (HookEvent::PreCompact, None),
            FiringReason::Stop => (HookEvent::Stop, None),
        };
        let fail_closed = self.settings().hooks_fail_closed;
        let mut answers = Vec::new();
        // A handler of which nothing is heard was not run.
        let unheard = HandlerOutput::refused("nothing was heard of it");
        let outputs = outputs.iter().chain(std::iter::repeat(&unheard));
        for (index, (handler, output)) in awaited.handlers.iter().zip(outputs).enumerate() {
            let answer = hook::read_answer(event, output, handler.on_failure, fail_closed);
            let answer = if handler.only_restricts { answer.restricting() } else { answer };
            let effect = answer.effect().to_owned();
            self.tell(Event::HookFinished { hook: event, effect: effect.as_str().into() });
            let messages = &answer.verdict.messages;
            let message = (!messages.is_empty()).then(|| messages.join("\n"));
            let what = RecordKind::Hook {
                event,
                call: call.clone(),
                index: u32::try_from(index).unwrap_or(u32::MAX),
                handler: handler.label(),
                exit: output.ended.exit_code(),
                ended: output.ended.code().into(),
                duration_ms: output.duration_ms,
                effect,
                message: message.map(|it| self.journal.stored(&it)),
                stdout: self.journal.stored(&output.stdout),
                stderr: self.journal.stored(&output.stderr),
            };
            self.journal.record(self.now, what);
            answers.push(answer);
        }
        let (verdict, kept) = self.joined(event, answers);
        kept.into_iter().for_each(|it| self.journal.keep(it));
        for error in &verdict.errors {
            self.tell(Event::Alert { what: error.as_str().into() });
        }
        for text in &verdict.messages {
            self.tell(Event::HookMessage { hook: event, text: text.as_str().into() });
        }
        match awaited.reason {
            FiringReason::PreToolUse(..) => self.pre_tool_use_answered(verdict),
            FiringReason::PostToolUse(index, _) => self.post_tool_use_answered(index, verdict),
            FiringReason::PreCompact => self.pre_compact_answered(verdict),
            FiringReason::Stop => self.stop_answered(verdict),
        }
    }

    /// What the answers of one firing mean together, and the texts that are kept in files since they
    /// are too long to be shown.
    pub(crate) fn joined(
        &self,
        event: HookEvent,
        answers: Vec<HookAnswer>,
    ) -> (HookVerdict, Vec<StoredText>) {
        let mut verdict = hook::merge(event, answers);
        let mut kept = Vec::new();
        for overlong in std::mem::take(&mut verdict.overlong) {
            let whole = StoredText::new(overlong.whole.as_str(), TextFolder::ToolResults);
            let path = format!("{}/tool-results/{}.txt", self.facts.directory, whole.digest);
            verdict.stored(&overlong, &path);
            kept.push(whole);
        }
        (verdict, kept)
    }

    /// What all hook inputs hold.
    fn hook_context(&self) -> hook::HookContext<'_> {
        hook::HookContext {
            session: &self.facts.session,
            transcript_path: &self.facts.transcript,
            cwd: self.cwd(),
            mode: self.mode(),
            agent: self.facts.agent.as_ref().map(|it| (it, &*self.facts.agent_type)),
        }
    }
}
