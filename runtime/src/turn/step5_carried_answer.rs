//! A turn that goes on with the calls of an answer that an earlier process received.
//!
//! The process was killed while somebody was asked about one of the calls, so none of them has run. The
//! turn takes all of them through the gate as it is now; it does not ask the model again.

use std::sync::Arc;

use super::Turn;
use crate::{
    message::{Message, MessageKind},
    step::Step,
    step5_model_call::{ModelAnswer, StopReason},
    transcript::entry::StepDetail,
};

/// What steps 4 and 5 say of such a turn.
const CARRIED: &str = "the calls of an earlier answer are open";

impl Turn {
    /// Returns the answer whose calls are open. Only a conversation that a killed process left ends in one.
    pub(super) fn carried_answer(&self) -> Option<&Arc<Message>> {
        let last = self.history.iter().next_back()?;
        let is_open = last.kind == MessageKind::Answer && last.tool_uses().next().is_some();
        (3 <= self.facts.revision && is_open).then_some(last)
    }

    /// Passes over step 4.
    pub(super) fn shape_nothing(&mut self) {
        self.record_step(StepDetail::Nothing { nothing: CARRIED.into() });
        self.next(Step::ModelCall);
    }

    /// Continues with the answer in step 5.
    pub(super) fn carry_answer(&mut self, answer: &Message) {
        self.state.model.answer_entry = Some(answer.id.clone());
        self.state.model.answer = Some(ModelAnswer {
            message_id: answer.api_id.clone().unwrap_or_default(),
            model: answer.model.clone().unwrap_or_default(),
            blocks: answer.blocks.clone(),
            stop_reason: StopReason::ToolUse,
            stop_sequence: None,
            refusal: None,
            usage: Default::default(),
            invalid_inputs: Vec::new(),
        });
        self.record_step(StepDetail::Nothing { nothing: CARRIED.into() });
        self.next(Step::ToolDispatch);
    }
}
