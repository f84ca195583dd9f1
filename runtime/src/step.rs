//! The nine steps of a turn: their order, numbers and names.

use serde::{Deserialize, Serialize};

/// One step of a turn. The order of the variants is the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// 1: the layers of settings become the settings that hold.
    SettingsResolution,
    /// 2: what lives as long as this turn is created.
    StateInitialization,
    /// 3: nine sources become the context.
    ContextAssembly,
    /// 4: five shapers make it fit.
    ContextShaping,
    /// 5: the model answers.
    ModelCall,
    /// 6: its tool uses become calls.
    ToolDispatch,
    /// 7: each call is allowed or denied.
    PermissionGate,
    /// 8: the allowed ones run.
    ToolExecution,
    /// 9: is the run over?
    StopCheck,
}

impl Step {
    /// All steps in order.
    pub const ALL: [Step; 9] = [
        Step::SettingsResolution,
        Step::StateInitialization,
        Step::ContextAssembly,
        Step::ContextShaping,
        Step::ModelCall,
        Step::ToolDispatch,
        Step::PermissionGate,
        Step::ToolExecution,
        Step::StopCheck,
    ];

    /// Returns the number of the step, 1 to 9.
    pub fn number(self) -> u8 {
        self as u8 + 1
    }

    /// Returns the name used in transcripts, events and spans.
    pub fn name(self) -> &'static str {
        match self {
            Step::SettingsResolution => "settings_resolution",
            Step::StateInitialization => "state_initialization",
            Step::ContextAssembly => "context_assembly",
            Step::ContextShaping => "context_shaping",
            Step::ModelCall => "model_call",
            Step::ToolDispatch => "tool_dispatch",
            Step::PermissionGate => "permission_gate",
            Step::ToolExecution => "tool_execution",
            Step::StopCheck => "stop_check",
        }
    }

    /// Returns the step after this one; `None` after the ninth.
    pub fn next(self) -> Option<Step> {
        Step::ALL.get(usize::from(self.number())).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: TRN-1
    #[test]
    fn nine_steps_follow_one_another_and_are_named_as_on_the_wire() {
        let mut walked = vec![Step::SettingsResolution];
        while let Some(next) = walked[walked.len() - 1].next() {
            walked.push(next);
        }
        assert_eq!(walked, Step::ALL);
        for step in Step::ALL {
            let wire = serde_json::to_string(&step).unwrap();
            assert_eq!(wire, format!("\"{}\"", step.name()));
        }
    }
}
