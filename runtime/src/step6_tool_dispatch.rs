//! Step 6: the tool uses of the answer become calls.
//!
//! One call per tool use, in the order of the answer. A call that cannot go on (no such tool,
//! an input that is not an object or does not fit the schema, one call too many) gets its answer here
//! and the turn goes on with the others.

use std::sync::Arc;

use crate::{
    ids::ToolName,
    step2_state_initialization::{CallStage, CallState},
    step5_model_call::{InvalidInput, ModelAnswer, StopReason},
    tool::{ToolCall, ToolErrorKind, ToolOutcome, ToolSpec},
};

/// Whether a call was let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It goes on to the gate.
    Admitted,
    /// The dispatcher's mailbox is full.
    TooMany,
    /// Its input does not fit the schema.
    InvalidInput(String),
}

/// Returns the calls of an answer. Those that name no offered tool, or whose input is not an object, are refused
/// already.
pub(crate) fn calls_of(answer: &ModelAnswer, tools: &[Arc<ToolSpec>]) -> Vec<CallState> {
    let uses = answer.blocks.iter().filter_map(|block| block.as_tool_use());
    uses.map(|(id, name, input)| {
        let name = current_name(name);
        let call = ToolCall { id: id.clone(), name: name.clone(), input: input.into() };
        let spec = tools.iter().find(|it| it.name == name).cloned();
        let invalid = answer.invalid_inputs.iter().find(|(it, _)| it == id).map(|(_, why)| *why);
        // Only an answer that stopped for its tools is finished as far as they are concerned.
        let unfinished = answer.stop_reason != StopReason::ToolUse;
        let stage = match (&spec, invalid) {
            _ if unfinished => refused(
                ToolErrorKind::Failed,
                "Not run: the answer did not stop for tool use.".into(),
            ),
            (None, _) => refused(
                ToolErrorKind::UnknownTool,
                format!("No such tool available: {name}. Offered: {}.", names(tools)),
            ),
            (Some(_), Some(why)) => refused(ToolErrorKind::InvalidInput, unreadable(why)),
            (Some(_), None) => CallStage::Open,
        };
        CallState { call, is_rewritten: false, spec, stage }
    })
    .collect()
}

/// Returns the name that a tool has now: `Task` was what `Agent` is.
pub(crate) fn current_name(name: &ToolName) -> ToolName {
    match name.as_str() {
        "Task" => "Agent".into(),
        _ => name.clone(),
    }
}

/// Applies the dispatcher's answers about the calls that were still open, in order.
pub fn admit(calls: &mut [CallState], admissions: Vec<Admission>, max_calls: u32) {
    let open = calls.iter_mut().filter(|it| matches!(it.stage, CallStage::Open));
    for (state, admission) in open.zip(admissions) {
        match admission {
            Admission::Admitted => {}
            Admission::TooMany => {
                state.stage = refused(
                    ToolErrorKind::TooManyCalls,
                    format!(
                        "Not run: at most {max_calls} tool calls are allowed in one answer. \
                     Ask again for what is still needed."
                    ),
                )
            }
            Admission::InvalidInput(why) => {
                let text = format!("<tool_use_error>InputValidationError: {why}</tool_use_error>");
                state.stage = refused(ToolErrorKind::InvalidInput, text);
            }
        }
    }
}

/// Makes the answer to a call whose input was rewritten to one that does not fit the schema.
pub(crate) fn refused_rewritten(why: &str) -> ToolOutcome {
    let text = format!(
        "InputValidationError: {why} (the input is that of a PreToolUse hook or of an answer)"
    );
    ToolOutcome::failed(ToolErrorKind::InvalidInput, text)
}

fn refused(kind: ToolErrorKind, text: String) -> CallStage {
    CallStage::Refused(Box::new(ToolOutcome::failed(kind, text)))
}

fn unreadable(why: InvalidInput) -> String {
    let why = match why {
        InvalidInput::InvalidJson => "the input is not valid JSON",
        InvalidInput::NotAnObject => "the input is not a JSON object",
    };
    format!("<tool_use_error>InputValidationError: {why}</tool_use_error>")
}

fn names(tools: &[Arc<ToolSpec>]) -> String {
    tools.iter().map(|it| it.name.as_str()).collect::<Vec<_>>().join(", ")
}
