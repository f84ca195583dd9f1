//! Step 6 of a turn: the calls of the answer are let in, as many as may run.

use super::{Awaits, Effect, Turn, count};
use crate::{
    event::Event,
    step::Step,
    step2_state_initialization::CallStage,
    step6_tool_dispatch::{Admission, admit, calls_of},
    transcript::entry::StepDetail,
};

impl Turn {
    pub(super) fn dispatch_tools(&mut self) {
        let answer = self.state.model.answer.take();
        let offered = self.state.assembled.as_ref().map_or(&[][..], |it| &it.tools);
        self.state.calls = answer.as_ref().map_or_else(Vec::new, |it| calls_of(it, offered));
        for state in &self.state.calls {
            let (call, tool) = (state.call.id.clone(), state.call.name.clone());
            self.effects.push(Effect::Publish(Event::ToolRequested { call, tool }));
        }
        let open: Vec<_> = self
            .state
            .calls
            .iter()
            .filter(|it| matches!(it.stage, CallStage::Open))
            .map(|it| it.call.clone())
            .collect();
        if self.state.calls.is_empty() {
            let nothing = "the answer holds no tool use".into();
            self.record_step(StepDetail::Nothing { nothing });
            self.next(Step::PermissionGate);
        } else if open.is_empty() {
            self.awaits = Some(Awaits::Admissions);
            self.dispatched(Vec::new());
        } else {
            self.awaits = Some(Awaits::Admissions);
            self.onward = Some(Effect::Dispatch(open));
        }
    }

    pub(super) fn dispatched(&mut self, admissions: Vec<Admission>) {
        if !self.was_awaited(Awaits::Admissions) {
            return;
        }
        let max_calls = self.settings().max_tool_calls;
        admit(&mut self.state.calls, admissions, max_calls);
        let is_refused = |stage: &CallStage| matches!(stage, CallStage::Refused(_));
        let refused = self.state.calls.iter().filter(|it| is_refused(&it.stage)).count();
        let detail =
            StepDetail::Dispatch { calls: count(self.state.calls.len()), refused: count(refused) };
        self.record_step(detail);
        self.next(Step::PermissionGate);
    }
}
