//! Step 7 of a turn: the call by which the model asks a person.
//!
//! The question about the call is the question of the model; the answers come as another input with the yes.

use serde_json::{Map, Value};

use crate::tool::{ASK_USER_QUESTION, Access, ToolCall, ToolSpec};

/// The fields of the input in which answers lie.
const ANSWERS: [&str; 3] = ["answers", "response", "annotations"];

/// Why a call that holds answers is refused.
pub(super) const ANSWERED: &str =
    "the person who is asked answers: call again with the questions alone";

/// Whether the model has put answers into its own questions. A person, or a hook, that says yes to the call would
/// seem to have given them, so this is looked at before hooks are.
pub(super) fn answers_itself(call: &ToolCall, spec: &ToolSpec) -> bool {
    // A tool of an embedder that has this name is another one.
    if spec.access != Access::Person || spec.name.as_str() != ASK_USER_QUESTION {
        return false;
    }
    let input: Map<String, Value> = serde_json::from_str(&call.input).unwrap_or_default();
    ANSWERS.iter().any(|it| input.get(*it).is_some_and(|it| !it.is_null()))
}
