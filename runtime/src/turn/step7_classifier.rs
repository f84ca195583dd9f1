//! Step 7 of a turn, mode `auto`: a model decides about a call before a person is asked.
//!
//! It is asked only about a call that lacks nothing but an allow rule, so it lets nothing pass that a
//! rule could not. The call of the model is an attempt like any other: it is recorded and counted.

use std::sync::Arc;

use super::{
    Turn,
    step5_attempts::{AttemptFindings, AttemptOrder},
};
use crate::{
    approval::{
        AnsweredBy, GivenAnswer, PermissionAnswer,
        classifier::{FAST_MODEL, MAX_TOKENS, Verdict, framed, instructions, read},
    },
    block::Block,
    lease::MaxCost,
    message::{Message, MessageKind},
    recovery::chain::ChainModel,
    step2_state_initialization::Classifying,
    step5_model_call::{
        request::{CachePlan, EncodedHead, PrefixChain, PromptCaching, RequestHead},
        view::{ViewTarget, compile_for},
        wire_format::WireFormat,
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
    /// Asks the model about the call at the gate.
    pub(super) fn classify(&mut self) {
        let Some(open) = &self.state.question else { return };
        let question = Arc::clone(&open.question);
        let Some(data) = framed(&question) else {
            return self.pass(AnsweredBy::Classifier, "the call is too long for the classifier");
        };
        let link = self.classifier();
        let format = self.format(&link);
        let n = u64::from(self.state.model.attempt) + 1;
        let token =
            format!("{:032x}", self.stream.draw("classifier", u64::from(self.number) << 32 | n));
        let head = EncodedHead::new(RequestHead {
            model: Arc::clone(&link.model),
            max_tokens: MAX_TOKENS,
            stream: self.facts.streams,
            system: vec![instructions(&token)],
            tools: Vec::new(),
            cache: CachePlan { caching: PromptCaching::Off, n_static: 0 },
            parameters: Default::default(),
        });
        let blocks = vec![Block::text(&data)];
        let message = Message::user("classifier".into(), MessageKind::Prompt, blocks);
        let target = ViewTarget { format, model: Some(&link.model) };
        let view = compile_for(&[message.into()], target);
        let request = format.encode(&head, &view, &mut PrefixChain::default());
        let attempt = self.begin_attempt(Purpose::Classification, None);
        let settings = self.settings();
        self.state.model.request = (request.digest, request.body.len() as u64);
        self.state.model.classifying = Some(Classifying {
            link: link.clone(),
            token,
            estimate: Tokens::from_chars(request.body.len() as u64),
        });
        let order = ModelCallOrder {
            purpose: Purpose::Classification,
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
            limit_ms: Some(settings.approvals.classifier_timeout_ms.get()),
            streamed: self.facts.streams,
        };
        self.effects.push(Effect::CallModel(Box::new(order)));
    }

    /// Who decides: the model of the settings, else a fast one where the session knows it, else the one
    /// that it asks first.
    fn classifier(&self) -> ChainModel {
        let settings = self.settings();
        let known = self.memory.resolved.as_ref().map(|it| &it.models);
        let named = settings.approvals.classifier_model.as_deref();
        let named = named.map(|it| known.map_or(it, |known| known.resolve(it)).to_owned());
        let model = named.or_else(|| self.fast_model()).unwrap_or_else(|| settings.model.clone());
        ChainModel { provider: 0, model: model.into() }
    }

    /// Returns a fast model, where the session knows one.
    pub(super) fn fast_model(&self) -> Option<String> {
        let is_claude = matches!(
            self.facts.providers.first().map(|it| it.format),
            Some(
                WireFormat::AnthropicMessages
                    | WireFormat::BedrockInvoke
                    | WireFormat::VertexRawPredict
            )
        );
        let known = self.memory.resolved.as_ref().map(|it| &it.models);
        let known = known.filter(|it| is_claude && it.find(FAST_MODEL).is_some())?;
        Some(known.resolve(FAST_MODEL).to_owned())
    }

    /// Returns the most that asking it can use.
    pub(super) fn worst_classification(&self) -> MaxCost {
        let settings = self.settings();
        let classifying = self.state.model.classifying.as_ref();
        let (model, estimate) = match classifying {
            Some(Classifying { link, estimate, .. }) => (&*link.model, *estimate),
            None => (settings.model.as_str(), Tokens::default()),
        };
        MaxCost::of_call(&settings.models, model, estimate.at_most(), MAX_TOKENS)
    }

    /// Handles the model's answer, or that none came in time.
    pub(super) fn classified(&mut self, mut answered: Answered) {
        let Some(Classifying { link, token, .. }) = self.state.model.classifying.clone() else {
            return;
        };
        let in_doubt: Option<UnconfirmedUsage> =
            answered.is_in_doubt.then(|| self.worst_classification().into());
        self.state.model.classifying = None;
        if let Err(failure) = &mut answered.result {
            clip(&mut failure.message, MAX_MESSAGE_BYTES);
        }
        let settings = self.settings();
        let known = settings.models.find(&link.model).map(|it| &**it);
        let cost = self.cost_of(known, &answered.usage);
        let unsaid = answered.result.as_ref().ok().map(|answer| {
            let content = self.journal.stored(&super::step5_model_call::wire_of(&answer.blocks));
            DiscardedAnswer { stop_reason: answer.stop_reason.as_wire().into(), content }
        });
        let order = AttemptOrder {
            purpose: Purpose::Classification,
            cause: None,
            provider: None,
            model: Some(link.model.to_string()),
            streamed: self.facts.streams,
            max_tokens: MAX_TOKENS,
        };
        let found = AttemptFindings { in_doubt, cost, unsaid, cache_drop: None };
        self.record_model_attempt(order, &answered, found);
        self.state.model.usage = self.state.model.usage + answered.usage;
        let by = AnsweredBy::Classifier;
        let verdict = match answered.result {
            Ok(answer) => {
                let answer_text: String = answer.blocks.iter().filter_map(Block::as_text).collect();
                read(&answer_text, &token)
            }
            Err(failure) => {
                self.count_failure();
                let reason = format!("the classifier did not answer ({})", failure.class.code());
                Verdict::Unsure { reason }
            }
        };
        let answer = match verdict {
            Verdict::Allow { reason } => {
                let reason = format!("the classifier {} allowed it: {reason}", link.model);
                PermissionAnswer { reason, ..PermissionAnswer::allow() }
            }
            Verdict::Deny { reason } => {
                PermissionAnswer::deny(format!("the classifier {} denied it: {reason}", link.model))
            }
            Verdict::Unsure { reason } => return self.pass(by, &reason),
        };
        self.settle(GivenAnswer { answer, by, surface: None });
    }
}
