//! Runs one case of `tests/cases/stop_check.jsonl` through the stop check.
//!
//! Cases are a format of their own: they know the role `tool` and plain texts as
//! content. Nothing is taken from `expected`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{RunBudget, check_stop_condition};
use crate::{
    block::{Block, NotABlock},
    ids::EntryId,
    message::{Message, MessageKind, Messages, Role},
};

/// Why a case cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadCase {
    /// A part of the input is missing or of the wrong kind.
    #[error("the case has no usable `{part}`")]
    Missing {
        /// Which, as a path.
        part: &'static str,
    },
    /// A block is none.
    #[error("message {message} holds something that is not a block")]
    Block {
        /// Index of the message, counted from 0.
        message: usize,
        /// What is wrong with it.
        #[source]
        cause: NotABlock,
    },
}

/// Returns the decision for one parsed case: `{"done": …, "reason": …}`.
///
/// # Errors
///
/// [`BadCase`] when its `input` is not a transcript with a budget.
pub fn run_case(case: &Value) -> Result<Value, BadCase> {
    let input = &case["input"];
    let transcript = read_messages(&input["transcript"])?;
    let used =
        input["budget"]["used"].as_u64().ok_or(BadCase::Missing { part: "input.budget.used" })?;
    let decision =
        check_stop_condition(&transcript, RunBudget { used, max: input["budget"]["max"].as_u64() });
    Ok(json!({ "done": decision.done, "reason": decision.reason.map(super::EndReason::code) }))
}

/// Reads the messages of a case. A message without an id is named after its place.
///
/// # Errors
///
/// [`BadCase`] when the value is not a list of messages.
pub(crate) fn read_messages(list: &Value) -> Result<Messages, BadCase> {
    let list = list.as_array().ok_or(BadCase::Missing { part: "messages" })?;
    list.iter().enumerate().map(|(i, message)| read_message(i, message).map(Arc::new)).collect()
}

fn read_message(i: usize, message: &Value) -> Result<Message, BadCase> {
    let id = message["id"].as_str().map_or_else(|| EntryId::new(format!("m{i}")), EntryId::from);
    let role = message["role"].as_str().unwrap_or_default();
    if !["assistant", "user", "tool", "system"].contains(&role) {
        // Neither a prompt nor an answer nor a result, whatever it holds.
        let (role, kind) = (Role::System, MessageKind::Mark);
        return Ok(Message { id, role, kind, api_id: None, model: None, blocks: Vec::new() });
    }
    let blocks = match &message["content"] {
        Value::String(text) => vec![Block::text(text)],
        Value::Array(blocks) => blocks
            .iter()
            .map(|block| Block::from_wire(&block.to_string()))
            .collect::<Result<_, _>>()
            .map_err(|cause| BadCase::Block { message: i, cause })?,
        _ => return Err(BadCase::Missing { part: "content" }),
    };
    let only_results = !blocks.is_empty() && blocks.iter().all(|it| it.as_tool_result().is_some());
    let (role, kind) = match role {
        "assistant" => (Role::Assistant, MessageKind::Answer),
        "user" if !only_results => (Role::User, MessageKind::Prompt),
        "user" | "tool" => (Role::User, MessageKind::ToolResults),
        _ => (Role::System, MessageKind::Mark),
    };
    Ok(Message { id, role, kind, api_id: None, model: None, blocks })
}
