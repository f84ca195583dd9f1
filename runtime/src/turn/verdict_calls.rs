//! Calls of a model for one verdict, apart from the conversation: of the classifier, of hooks that ask a model, and for
//! what sub-agents found.
//!
//! Such a call is an attempt like any other: it is recorded and counted. None is repeated.

use super::{
    Turn,
    step5_attempts::{AttemptFindings, AttemptOrder},
    step5_model_call::wire_of,
};
use crate::{
    approval::classifier::FAST_MODEL,
    block::Block,
    event::Event,
    message::{Message, MessageKind},
    recovery::chain::ChainModel,
    run::facts::NAMES_FAST_MODEL,
    step5_model_call::{
        request::{CachePlan, EncodedHead, PrefixChain, PromptCaching, RequestHead},
        view::{ViewTarget, compile_for},
        wire_format::WireFormat,
    },
    tokens::{Tokens, Usage},
    transcript::entry::{DiscardedAnswer, UnconfirmedUsage, stored::clip},
    turn::{
        Effect,
        effect::{ModelCallOrder, Purpose},
        input::Answered,
    },
};

/// Bytes of what a provider says about a failure.
const MAX_MESSAGE_BYTES: usize = 1024;

/// What a model is asked, and how.
pub(super) struct VerdictCall {
    pub(super) purpose: Purpose,
    pub(super) link: ChainModel,
    /// The instructions for the model.
    pub(super) system: String,
    /// What is to be judged.
    pub(super) data: String,
    pub(super) max_tokens: u32,
    pub(super) limit_ms: u64,
}

impl Turn {
    /// Who judges: the model that is named, else a fast one where the session knows it, else the one that it asks
    /// first.
    pub(super) fn judge(&self, named: Option<&str>) -> ChainModel {
        let settings = self.settings();
        let known = self.memory.resolved.as_ref().map(|it| &it.models);
        let named = named.map(|it| known.map_or(it, |known| known.resolve(it)).to_owned());
        let model = named.or_else(|| self.fast_model()).unwrap_or_else(|| settings.model.clone());
        ChainModel { provider: 0, model: model.into() }
    }

    /// Returns a fast model, where the session knows one.
    pub fn fast_model(&self) -> Option<String> {
        let first = self.facts.providers.first()?;
        let format = first.format;
        let is_claude = match format {
            WireFormat::AnthropicMessages
            | WireFormat::BedrockInvoke
            | WireFormat::VertexRawPredict => true,
            WireFormat::OpenAiChat | WireFormat::OpenAiResponses => false,
        };
        let known = self.memory.resolved.as_ref().map(|it| &it.models);
        let known = known.filter(|it| is_claude && it.find(FAST_MODEL).is_some())?;
        let name = known.resolve(FAST_MODEL);
        // The clouds have names of their own, which only settings know.
        let has_own_names =
            matches!(format, WireFormat::BedrockInvoke | WireFormat::VertexRawPredict)
                || &*first.name == "bedrock-mantle";
        let is_of_claude = known.find(name).is_some_and(|it| &*it.id == name);
        let is_wrong = NAMES_FAST_MODEL <= self.facts.revision && has_own_names && is_of_claude;
        (!is_wrong).then(|| name.to_owned())
    }

    /// Asks a model. Returns the estimate of what it is sent.
    pub(super) fn ask_for_verdict(&mut self, call: VerdictCall) -> Tokens {
        let VerdictCall { purpose, link, system, data, max_tokens, limit_ms } = call;
        let format = self.format(&link);
        let head = EncodedHead::new(RequestHead {
            model: link.model.clone(),
            max_tokens,
            stream: self.facts.streams,
            system: vec![system],
            tools: Vec::new(),
            cache: CachePlan { caching: PromptCaching::Off, n_static: 0 },
            parameters: Default::default(),
        });
        let blocks = vec![Block::text(&data)];
        let message = Message::user(purpose.name().into(), MessageKind::Prompt, blocks);
        let target = ViewTarget { format, model: Some(&link.model) };
        let view = compile_for(&[message.into()], target);
        let request = format.encode(&head, &view, &mut PrefixChain::default());
        let attempt = self.begin_attempt(purpose, None);
        let settings = self.settings();
        self.state.model.request = (request.digest, request.body.len() as u64);
        let estimate = Tokens::from_chars(request.body.len() as u64);
        let order = ModelCallOrder {
            purpose,
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
        estimate
    }

    /// Records what a model answered, or that it did not, and counts it.
    pub(super) fn record_verdict(
        &mut self,
        (purpose, link, max_tokens): (Purpose, &ChainModel, u32),
        answered: &mut Answered,
        in_doubt: Option<UnconfirmedUsage>,
    ) {
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
            purpose,
            cause: None,
            provider: None,
            model: Some(link.model.to_string()),
            streamed: self.facts.streams,
            max_tokens,
        };
        let found = AttemptFindings { in_doubt, cost, unsaid, cache_drop: None };
        self.record_model_attempt(order, answered, found);
        self.state.model.usage = self.state.model.usage + answered.usage;
        if answered.usage != Usage::default() {
            self.publish(Event::TokensUsed { usage: answered.usage });
        }
        if answered.result.is_err() {
            self.count_failure();
        }
    }
}
