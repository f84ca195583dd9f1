//! Hooks after all calls of an answer, before the model is asked again: they can end the run, and add what the model
//! reads after the results.

use super::Turn;
use crate::{
    hook::{AnsweredCall, Firing, HookEvent, HookVerdict},
    run::RunEnd,
    step2_state_initialization::FiringReason,
};

impl Turn {
    /// Fires once for all calls; false when that is done, or no hook waits for it.
    pub(super) fn fire_batch(&mut self) -> bool {
        if std::mem::replace(&mut self.state.has_fired_batch, true) {
            return false;
        }
        // Texts are copied only where somebody reads them.
        if self.matching_hooks(HookEvent::PostToolBatch, None).is_empty() {
            return false;
        }
        let results =
            self.history.iter().rev().filter_map(|it| it.blocks.first()?.as_tool_result());
        let calls = self.state.calls.iter().rev().zip(results).map(|(state, (id, result, _))| {
            let (tool, input) = (state.call.name.clone(), state.call.input.clone());
            AnsweredCall { id: id.clone(), tool, input, result: result.to_owned() }
        });
        let mut calls: Vec<AnsweredCall> = calls.collect();
        calls.reverse();
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
