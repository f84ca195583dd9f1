//! What a model answered: a line of the conversation, or what the record of the attempt kept.

use serde_json::value::RawValue;

use super::{super::texts::text_of, RecordedInputs, ReplayError};
use crate::{
    block::Block,
    step::Step,
    step5_model_call::{FailureClass, ModelAnswer, ModelFailure, StopReason},
    transcript::{
        entry::{DiscardedAnswer, RecordKind},
        replay::window::conversation_line,
    },
    turn::{
        TurnInput,
        effect::{ModelCallOrder, Purpose},
        input::Answered,
    },
};

impl RecordedInputs<'_> {
    pub(super) fn model(
        &mut self,
        order: &ModelCallOrder,
        step: Step,
    ) -> Result<TurnInput, ReplayError> {
        let what = "what the model answered";
        let recorded = self.recorded(what, step, |it| match it {
            RecordKind::ModelAttempt {
                outcome,
                message,
                retry_after_ms,
                status,
                usage,
                in_doubt,
                first_token_ms,
                duration_ms,
                parked_ms,
                unsaid,
                ..
            } => {
                let failure = (outcome != "ok").then(|| ModelFailure {
                    class: serde_json::from_value(outcome.as_str().into())
                        .unwrap_or(FailureClass::Internal),
                    status: *status,
                    message: message.clone().unwrap_or_default(),
                    retry_after_ms: *retry_after_ms,
                    // Shown and withdrawn; nothing is decided by it.
                    partial_text: String::new(),
                });
                Some((
                    failure,
                    (*usage, in_doubt.is_some()),
                    (*first_token_ms, *duration_ms, *parked_ms),
                    unsaid.as_deref(),
                ))
            }
            _ => None,
        })?;
        let (failure, (usage, is_in_doubt), (first_token_ms, duration_ms, parked_ms), unsaid) =
            recorded;
        if order.purpose == Purpose::Turn {
            let asked = Some((order.provider, order.model.clone()));
            // Another model does not go on with what one has begun.
            if self.asked != asked {
                (self.asked, self.n_paused) = (asked, 0);
            }
        }
        let result = match failure {
            Some(failure) => Err(failure),
            None => Ok(ModelAnswer { usage, ..self.whole(order, unsaid, step)? }),
        };
        if let Ok(answer) = &result
            && unsaid.is_some()
            && order.purpose == Purpose::Turn
            && answer.stop_reason == StopReason::PauseTurn
        {
            self.n_paused += answer.blocks.len();
        }
        let attempt = order.attempt;
        let answered = Answered {
            attempt,
            result,
            usage,
            is_in_doubt,
            first_token_ms,
            duration_ms,
            parked_ms,
        };
        Ok(TurnInput::ModelAnswered(Box::new(answered)))
    }

    fn whole(
        &self,
        order: &ModelCallOrder,
        unsaid: Option<&DiscardedAnswer>,
        step: Step,
    ) -> Result<ModelAnswer, ReplayError> {
        let number = self.ahead(0).map_or(0, |it| it.number);
        let unrecorded =
            || ReplayError::Unrecorded { line: number, step, what: "what the model answered" };
        let line = match order.purpose {
            Purpose::Turn => {
                self.ahead(1).and_then(conversation_line).filter(|it| it.answer.is_some())
            }
            _ => None,
        };
        let fields = line.and_then(|it| it.answer.as_ref());
        let (stop_reason, blocks) = match (unsaid, line, fields) {
            (Some(unsaid), ..) => {
                let content = text_of(&unsaid.content, number, self.stored)?;
                (unsaid.stop_reason.as_str(), blocks(&content).ok_or_else(unrecorded)?)
            }
            (None, Some(line), Some(fields)) => {
                let blocks = line.message.blocks.get(self.n_paused..);
                (&*fields.stop_reason, blocks.ok_or_else(unrecorded)?.to_vec())
            }
            _ => return Err(unrecorded()),
        };
        Ok(ModelAnswer {
            message_id: line.and_then(|it| it.message.api_id.clone()).unwrap_or_default(),
            model: fields.map(|it| it.model.clone()).unwrap_or_default(),
            blocks,
            stop_reason: StopReason::read(stop_reason),
            stop_sequence: None,
            refusal: None,
            usage: Default::default(),
            // The results of such calls say so; they are refused by what they say.
            invalid_inputs: Vec::new(),
        })
    }
}

/// Blocks of a JSON list, with the bytes they came in.
fn blocks(list: &str) -> Option<Vec<Block>> {
    let parts: Vec<&RawValue> = serde_json::from_str(list).ok()?;
    parts.iter().map(|it| Block::from_wire(it.get()).ok()).collect()
}
