//! Stage 2: what PreToolUse hooks make of a call.
//!
//! A hook can deny, ask, or change the input. Its allow is only remembered: deny and ask rules
//! come after it and win.

use serde_json::Value;

use super::GateSetup;
use crate::hook::{HookDecision, HookEvent, HookVerdict};

/// What later stages need to know of the hooks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Remembered {
    /// No hook had an opinion.
    #[default]
    Nothing,
    /// A hook allowed the call, and none objected.
    Allow {
        /// Whether the input is one that the hook gave, which may answer what a person is asked.
        answers: bool,
    },
    /// A hook wants a person to be asked, for this reason.
    Ask(String),
}

/// Returns whether any hook is for this tool.
pub(super) fn needed(tool: &str, setup: &GateSetup) -> bool {
    let handlers = setup.settings().hooks.get(&HookEvent::PreToolUse);
    handlers.is_some_and(|it| it.iter().any(|handler| handler.matcher.matches(tool)))
}

/// Reads a verdict: what to remember and the input to go on with, or why the call is denied.
pub(super) fn read(verdict: &HookVerdict) -> Result<(Remembered, Option<String>), String> {
    if let Some(reason) = &verdict.stop {
        return Err(format!("a PreToolUse hook stopped the run: {reason}"));
    }
    let remembered = match &verdict.decision {
        Some(HookDecision::Deny { reason }) => return Err(reason.clone()),
        Some(HookDecision::Defer { reason }) => {
            return Err(format!("the call was put off: {reason}"));
        }
        Some(HookDecision::Ask { reason }) => Remembered::Ask(reason.clone()),
        Some(HookDecision::Allow { .. }) => Remembered::Allow { answers: verdict.answers },
        None => Remembered::Nothing,
    };
    if let Some(input) = &verdict.updated_input
        && !serde_json::from_str::<Value>(input).is_ok_and(|it| it.is_object())
    {
        return Err("a PreToolUse hook replaced the input with something that is no object".into());
    }
    Ok((remembered, verdict.updated_input.clone()))
}
