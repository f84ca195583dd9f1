//! Handlers that ask a model: one call after the other, when the other handlers of the firing have ended.
//!
//! Each call is an attempt like any other: it is recorded and counted. None is repeated, and an answer that cannot be
//! had is a failure of its handler.

use super::{Turn, verdict_calls::VerdictCall};
use crate::{
    block::Block,
    hook::{HandlerEnd, HandlerOutput, HookAction, MAX_JUDGEMENT_TOKENS, judging_instructions},
    step2_state_initialization::SideQuestion,
    step5_model_call::FailureClass,
    transcript::entry::UnconfirmedUsage,
    turn::{effect::Purpose, input::Answered},
};

impl Turn {
    /// Asks the model for the next handler of the firing that wants it; false when there is none.
    pub(super) fn ask_for_hook(&mut self) -> bool {
        let Some(awaited) = &mut self.state.firing else { return false };
        let wants = |it: &HandlerOutput| it.ended == HandlerEnd::ForModel;
        let Some(index) = awaited.outputs.iter().position(wants) else { return false };
        let Some(handler) = awaited.handlers.get(index) else { return false };
        let HookAction::Prompt(hook) = &handler.action else { return false };
        let (named, limit_ms) = (hook.model.clone(), handler.timeout_ms);
        let text = awaited.outputs.get_mut(index).map(|it| std::mem::take(&mut it.stdout));
        let link = self.judge(named.as_deref());
        let estimate = self.ask_for_verdict(VerdictCall {
            purpose: Purpose::Hook,
            link: link.clone(),
            system: judging_instructions(),
            data: text.unwrap_or_default(),
            max_tokens: MAX_JUDGEMENT_TOKENS,
            limit_ms,
        });
        self.state.model.for_hook = Some(SideQuestion { link, index, estimate });
        true
    }

    /// Handles the model's answer for a handler, or that none came in time.
    pub(super) fn hook_judged(&mut self, mut answered: Answered) {
        let in_doubt: Option<UnconfirmedUsage> =
            answered.is_in_doubt.then(|| self.worst_case().into());
        self.state.model.purpose = None;
        let Some(SideQuestion { link, index, .. }) = self.state.model.for_hook.take() else {
            return;
        };
        let asked = (Purpose::Hook, &link, MAX_JUDGEMENT_TOKENS);
        self.record_verdict(asked, &mut answered, in_doubt);
        let (ended, stdout, stderr) = match &answered.result {
            Ok(answer) => {
                let text: String = answer.blocks.iter().filter_map(Block::as_text).collect();
                (HandlerEnd::Exited(0), text, String::new())
            }
            Err(failure) => {
                let ended = match failure.class {
                    FailureClass::Timeout => HandlerEnd::TimedOut,
                    _ => HandlerEnd::Unusable,
                };
                let why = format!("the model did not answer ({})", failure.class.code());
                (ended, String::new(), why)
            }
        };
        let output = HandlerOutput::new(ended, stdout, stderr, answered.duration_ms);
        let outputs = self.state.firing.as_mut().map(|it| &mut it.outputs);
        if let Some(asked) = outputs.and_then(|it| it.get_mut(index)) {
            *asked = output;
        }
        self.go_on_with_hooks();
    }
}
