//! Handlers that ask a model: one call after the other, when the other handlers of the firing have ended.
//!
//! Each call is an attempt like any other: it is recorded and counted. None is repeated, and an answer that cannot be
//! had is a failure of its handler.

use super::{
    Turn,
    step5_attempts::{AttemptFindings, AttemptOrder},
    step5_model_call::wire_of,
};
use crate::{
    block::Block,
    hook::{HandlerEnd, HandlerOutput, HookAction, MAX_JUDGEMENT_TOKENS, judging_instructions},
    message::{Message, MessageKind},
    recovery::chain::ChainModel,
    step2_state_initialization::AskedByHook,
    step5_model_call::{
        FailureClass,
        request::{CachePlan, EncodedHead, PrefixChain, PromptCaching, RequestHead},
        view::{ViewTarget, compile_for},
    },
    tokens::Tokens,
    transcript::entry::{DiscardedAnswer, UnconfirmedUsage, stored::clip},
    turn::{
        Effect,
        effect::{ModelCallOrder, Purpose},
        input::Answered,
    },
};

/// Bytes of what a provider says about a failure.
const MAX_MESSAGE_BYTES: usize = 1024;

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
        let format = self.format(&link);
        let head = EncodedHead::new(RequestHead {
            model: link.model.clone(),
            max_tokens: MAX_JUDGEMENT_TOKENS,
            stream: self.facts.streams,
            system: vec![judging_instructions()],
            tools: Vec::new(),
            cache: CachePlan { caching: PromptCaching::Off, n_static: 0 },
            parameters: Default::default(),
        });
        let blocks = vec![Block::text(&text.unwrap_or_default())];
        let message = Message::user("hook".into(), MessageKind::Prompt, blocks);
        let target = ViewTarget { format, model: Some(&link.model) };
        let view = compile_for(&[message.into()], target);
        let request = format.encode(&head, &view, &mut PrefixChain::default());
        let attempt = self.begin_attempt(Purpose::Hook, None);
        let settings = self.settings();
        self.state.model.request = (request.digest, request.body.len() as u64);
        let estimate = Tokens::from_chars(request.body.len() as u64);
        self.state.model.for_hook = Some(AskedByHook { link: link.clone(), index, estimate });
        let order = ModelCallOrder {
            purpose: Purpose::Hook,
            attempt,
            provider: link.provider,
            format,
            model: link.model,
            request,
            is_retry: false,
            has_other_provider: true,
            http: settings.http,
            certificates: settings.certificates.clone(),
            patience_ms: None,
            limit_ms: Some(limit_ms),
            streamed: self.facts.streams,
        };
        self.effects.push(Effect::CallModel(Box::new(order)));
        true
    }

    /// Who judges: the model that the handler names, else a fast one where the session knows it, else the one that it
    /// asks first.
    fn judge(&self, named: Option<&str>) -> ChainModel {
        let settings = self.settings();
        let known = self.memory.resolved.as_ref().map(|it| &it.models);
        let named = named.map(|it| known.map_or(it, |known| known.resolve(it)).to_owned());
        let model = named.or_else(|| self.fast_model()).unwrap_or_else(|| settings.model.clone());
        ChainModel { provider: 0, model: model.into() }
    }

    /// Handles the model's answer for a handler, or that none came in time.
    pub(super) fn hook_judged(&mut self, mut answered: Answered) {
        let in_doubt: Option<UnconfirmedUsage> =
            answered.is_in_doubt.then(|| self.worst_case().into());
        self.state.model.purpose = None;
        let Some(AskedByHook { link, index, .. }) = self.state.model.for_hook.take() else {
            return;
        };
        if let Err(failure) = &mut answered.result {
            clip(&mut failure.message, MAX_MESSAGE_BYTES);
        }
        let settings = self.settings();
        let known = settings.models.find(&link.model).map(|it| &**it);
        let cost = self.cost_of(known, &answered.usage);
        let unsaid = answered.result.as_ref().ok().map(|answer| {
            let content = self.journal.stored(&wire_of(&answer.blocks));
            DiscardedAnswer { stop_reason: answer.stop_reason.as_wire().into(), content }
        });
        let order = AttemptOrder {
            purpose: Purpose::Hook,
            cause: None,
            provider: None,
            model: Some(link.model.to_string()),
            streamed: self.facts.streams,
            max_tokens: MAX_JUDGEMENT_TOKENS,
        };
        let found = AttemptFindings { in_doubt, cost, unsaid, cache_drop: None };
        self.record_model_attempt(order, &answered, found);
        self.state.model.usage = self.state.model.usage + answered.usage;
        let (ended, stdout, stderr) = match &answered.result {
            Ok(answer) => {
                let text: String = answer.blocks.iter().filter_map(Block::as_text).collect();
                (HandlerEnd::Exited(0), text, String::new())
            }
            Err(failure) => {
                self.count_failure();
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
