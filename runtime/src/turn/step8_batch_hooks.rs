//! Hooks after all calls of an answer, before the model is asked again: they can end the run, and add what the model
//! reads after the results.

use std::collections::BTreeMap;

use super::Turn;
use crate::{
    block::Block,
    hook::{AnsweredCall, Firing, HookEvent, HookVerdict},
    message::Role,
    run::RunEnd,
    step2_state_initialization::FiringReason,
    tool::ToolCall,
};

impl Turn {
    /// Fires once for all calls; false when that is done, or no hook waits for it.
    pub(super) fn fire_batch(&mut self) -> bool {
        if std::mem::replace(&mut self.state.has_fired_batch, true) {
            return false;
        }
        // Where the run ends, no model is asked again. Texts are copied only where somebody reads them.
        if self.end.is_some() || self.matching_hooks(HookEvent::PostToolBatch, None).is_empty() {
            return false;
        }
        let answers = self.history.iter().rev().take_while(|it| it.role != Role::Assistant);
        let answers = answers.flat_map(|it| it.blocks.iter()).filter_map(Block::as_tool_result);
        let results: BTreeMap<_, _> = answers.map(|(id, text, _)| (id, text)).collect();
        let answered = |call: &ToolCall| {
            let (id, tool, input) = (call.id.clone(), call.name.clone(), call.input.clone());
            let result = (*results.get(&call.id)?).to_owned();
            Some(AnsweredCall { id, tool, input, result })
        };
        let calls: Vec<AnsweredCall> =
            self.state.calls.iter().filter_map(|it| answered(&it.call)).collect();
        self.fire(Firing::PostToolBatch { calls }, None, FiringReason::PostToolBatch)
    }

    /// Handles the end of the hooks after all calls.
    pub(super) fn batch_answered(&mut self, verdict: HookVerdict) {
        if let Some(reason) = verdict.stop.or(verdict.block_reason) {
            self.end_with(RunEnd::HookStopped, Some(reason));
        }
        let event = Some(HookEvent::PostToolBatch);
        let added = verdict.additional_context.into_iter().map(|text| (event, text));
        self.state.reminders.extend(added);
        self.executed();
    }
}
