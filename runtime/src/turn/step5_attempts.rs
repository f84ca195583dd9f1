//! The record of a model call, whatever it was for: an answer, a summary or a decision about a call.

use super::{Turn, step5_model_call::wire_of};
use crate::{
    catalogue::Money,
    recovery::Remedy,
    step2_state_initialization::RequestParams,
    step5_model_call::{FailureClass, ModelFailure, cache_watch::PromptCacheEvent},
    transcript::entry::{DiscardedAnswer, RecordKind, UnconfirmedUsage},
    turn::{effect::Purpose, input::Answered},
};

/// What a model call was asked for.
pub(super) struct AttemptOrder {
    pub(super) purpose: Purpose,
    /// The code of what made it necessary; `None` for the first call of a step.
    pub(super) cause: Option<&'static str>,
    pub(super) provider: Option<String>,
    pub(super) model: Option<String>,
    pub(super) streamed: bool,
    pub(super) max_tokens: u32,
}

/// What was found out about a model call that has ended.
pub(super) struct AttemptFindings {
    pub(super) in_doubt: Option<UnconfirmedUsage>,
    pub(super) cost: Option<Money>,
    /// The answer, where no line of the conversation will hold it.
    pub(super) unsaid: Option<DiscardedAnswer>,
    pub(super) cache_drop: Option<PromptCacheEvent>,
}

impl Turn {
    /// Records a call for an answer or a summary.
    pub(super) fn record_attempt(
        &mut self,
        purpose: Purpose,
        answered: &Answered,
        in_doubt: Option<UnconfirmedUsage>,
        decided: Option<&(ModelFailure, Remedy)>,
    ) {
        let answer = answered.result.as_ref().ok();
        let is_unsaid = purpose == Purpose::Compaction || decided.is_some_and(is_kept_back);
        let unsaid = answer.filter(|_| is_unsaid).map(|answer| DiscardedAnswer {
            stop_reason: answer.stop_reason.as_wire().into(),
            content: self.journal.stored(&wire_of(&answer.blocks)),
        });
        let asked = self.state.model.asked.take();
        let settings = self.settings();
        let name = asked.as_ref().map_or(settings.model.as_str(), |it| &it.model);
        let known = settings.models.find(name).map(|it| &**it);
        let cost = self.cost_of(known, &answered.usage);
        let cache_drop = self.cache_drop(purpose, known, answered);
        let RequestParams { max_tokens, streamed } = *self.state.model.parameters_for(purpose);
        let order = AttemptOrder {
            purpose,
            cause: self.state.model.cause,
            provider: asked.as_ref().map(|it| it.provider.to_string()),
            model: asked.map(|it| it.model.to_string()),
            streamed,
            max_tokens,
        };
        let found = AttemptFindings { in_doubt, cost, unsaid, cache_drop };
        self.record_model_attempt(order, answered, found);
    }

    /// Records a model call of any purpose.
    pub(super) fn record_model_attempt(
        &mut self,
        order: AttemptOrder,
        answered: &Answered,
        found: AttemptFindings,
    ) {
        let failure = answered.result.as_ref().err();
        let (request, request_bytes) = self.state.model.request;
        let what = RecordKind::ModelAttempt {
            attempt: answered.attempt,
            purpose: order.purpose.name().into(),
            cause: order.cause.map(Into::into),
            provider: order.provider,
            model: order.model,
            streamed: order.streamed,
            max_tokens: order.max_tokens,
            request,
            request_bytes,
            outcome: failure.map_or("ok", |it| it.class.code()).into(),
            message: failure.map(|it| it.message.clone()),
            retry_after_ms: failure.and_then(|it| it.retry_after_ms),
            status: failure.and_then(|it| it.status),
            usage: answered.usage,
            in_doubt: found.in_doubt,
            cost: found.cost,
            first_token_ms: answered.first_token_ms,
            duration_ms: answered.duration_ms,
            parked_ms: answered.parked_ms,
            unsaid: found.unsaid.map(Box::new),
            cache_drop: found.cache_drop.map(Box::new),
        };
        self.journal.record(self.now, what);
    }
}

/// Whether no line of the conversation will hold the answer.
fn is_kept_back((failure, remedy): &(ModelFailure, Remedy)) -> bool {
    match failure.class {
        FailureClass::PauseTurn | FailureClass::EmptyAnswer => *remedy != Remedy::Surface,
        _ => true,
    }
}
