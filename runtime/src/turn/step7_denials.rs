//! Step 7 of a turn: reports to hooks that a model has denied a call, before the denial counts.

use std::sync::Arc;

use super::Turn;
use crate::{
    approval::{AnsweredBy, GivenAnswer},
    hook::{Firing, HookEvent, HookVerdict},
    run::RunEnd,
    step2_state_initialization::FiringReason,
};

/// What the model reads after the reason of a denial that a hook does not take as final.
const MAY_RETRY: &str = " A hook lets you try this call again.";

impl Turn {
    /// Fires for the denial of a model; false when nothing waits for hooks.
    pub(super) fn fire_denial(&mut self, given: &GivenAnswer) -> bool {
        if given.by != AnsweredBy::Classifier || given.answer.allowed {
            return false;
        }
        let Some(open) = &mut self.state.question else { return false };
        open.denial = Some(given.clone());
        let question = Arc::clone(&open.question);
        let call = &question.call;
        let firing = Firing::PermissionDenied {
            id: call.id.clone(),
            tool: call.name.clone(),
            input: (&*call.input).into(),
            reason: (&*given.answer.reason).into(),
        };
        self.fire(firing, Some(call), FiringReason::PermissionDenied)
    }

    /// Handles the end of the PermissionDenied hooks. None of them can allow the call.
    pub(super) fn denial_answered(&mut self, verdict: HookVerdict) {
        if let Some(reason) = verdict.stop {
            self.end_with(RunEnd::HookStopped, Some(reason));
        }
        // The mode may have changed while they ran.
        if self.is_outdated() {
            return self.judge_anew();
        }
        let added = verdict.additional_context.into_iter();
        self.state.reminders.extend(added.map(|it| (Some(HookEvent::PermissionDenied), it)));
        let denial = self.state.question.as_mut().and_then(|it| it.denial.take());
        let Some(mut given) = denial else { return };
        if verdict.retry {
            given.answer.reason.push_str(MAY_RETRY);
        }
        self.settle_now(given);
    }
}
