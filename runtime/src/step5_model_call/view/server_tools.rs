//! Tools that a provider runs itself, in a conversation that another one may have to read.
//!
//! Their calls and results pair within the answers, by rules of their own. Where they
//! are not allowed, a text replaces them, so that the model still knows what was found.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::{ViewMessage, ViewNote};
use crate::{
    block::{Block, BlockKind},
    message::Role,
};

/// Characters of a result that its text keeps.
const MAX_TEXT_CHARS: usize = 4_000;

/// Fields of a result that a reader can use.
const TELLING: [&str; 8] =
    ["title", "url", "text", "data", "stdout", "stderr", "error_code", "content"];

/// What a block is to a server tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ServerBlock {
    /// A call with this id.
    Call(String),
    /// The result of the call with this id.
    Result(String),
    /// The block has nothing to do with a server's tool.
    None,
}

#[derive(Deserialize)]
struct ServerToolIds {
    id: Option<String>,
    tool_use_id: Option<String>,
}

impl ServerBlock {
    pub(super) fn of(block: &Block) -> Self {
        let BlockKind::Opaque { kind } = block.kind() else { return Self::None };
        let is_call = matches!(&**kind, "server_tool_use" | "mcp_tool_use");
        if !is_call && !kind.ends_with("_tool_result") {
            return Self::None;
        }
        let mut wire = Vec::with_capacity(block.wire_open().len() + 1);
        block.push_wire(&mut wire);
        let ids: Option<ServerToolIds> = serde_json::from_slice(&wire).ok();
        match (is_call, ids) {
            (true, Some(ServerToolIds { id, .. })) => Self::Call(id.unwrap_or_default()),
            (false, Some(ServerToolIds { tool_use_id, .. })) => {
                Self::Result(tool_use_id.unwrap_or_default())
            }
            (_, None) => Self::None,
        }
    }
}

/// Returns whether a block is a call or a result of a server tool.
pub(super) fn is_of_one(block: &Block) -> bool {
    ServerBlock::of(block) != ServerBlock::None
}

/// Puts a text in the place of every call and result that is not allowed: all of them where the
/// provider has no such tools, else those without partner.
pub(super) fn settle(messages: &mut [ViewMessage], allowed: bool, notes: &mut Vec<ViewNote>) {
    let places: Vec<(usize, usize, ServerBlock)> = messages
        .iter()
        .enumerate()
        .flat_map(|(m, message)| {
            message.blocks.iter().enumerate().map(move |(b, block)| (m, b, ServerBlock::of(block)))
        })
        .filter(|(.., it)| *it != ServerBlock::None)
        .collect();
    if places.is_empty() {
        return;
    }
    let stand = if allowed { standing(messages, &places) } else { BTreeSet::new() };
    for (m, b, _) in places {
        if stand.contains(&(m, b)) {
            continue;
        }
        if let Some(block) = messages.get_mut(m).and_then(|it| it.blocks.get_mut(b)) {
            if let BlockKind::Opaque { kind } = block.kind() {
                notes.push(ViewNote::AsText { kind: kind.clone() });
            }
            *block = as_text(block);
        }
    }
}

/// The places that may stay as they are.
fn standing(
    messages: &[ViewMessage],
    places: &[(usize, usize, ServerBlock)],
) -> BTreeSet<(usize, usize)> {
    let mut calls: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut again: BTreeSet<&str> = BTreeSet::new();
    let mut stand = BTreeSet::new();
    let only_results = |from: usize, to: usize| {
        messages.get(from + 1..to).unwrap_or_default().iter().all(|message| {
            message.role == Role::Assistant
                || message.blocks.iter().all(|it| it.as_tool_result().is_some())
        })
    };
    for (m, b, block) in places {
        if messages.get(*m).is_none_or(|it| it.role != Role::Assistant) {
            continue;
        }
        match block {
            ServerBlock::Call(id) if again.insert(id) => {
                calls.insert(id, (*m, *b));
            }
            ServerBlock::Result(id) => {
                if let Some(call) = calls.remove(id.as_str())
                    && only_results(call.0, *m)
                {
                    stand.insert(call);
                    stand.insert((*m, *b));
                }
            }
            ServerBlock::Call(_) | ServerBlock::None => {}
        }
    }
    // A call without result is one that the provider is still to continue.
    for call in calls.into_values() {
        let after = messages.get(call.0 + 1..).unwrap_or_default();
        if after.len() <= 1 && only_results(call.0, messages.len()) {
            stand.insert(call);
        }
    }
    stand
}

/// Returns the text that a reader gets of such a block if it does not know them.
pub(super) fn as_text(block: &Block) -> Block {
    let mut wire = Vec::new();
    block.push_wire(&mut wire);
    let value: Value = serde_json::from_slice(&wire).unwrap_or_default();
    let field = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let text = match (field("type"), value.get("input")) {
        (_, Some(input)) => format!("[the provider ran {} with {input}]", field("name")),
        (kind, None) => {
            let mut texts = Vec::new();
            collect(value.get("content").unwrap_or(&Value::Null), &mut texts);
            let texts: String = texts.join("\n").chars().take(MAX_TEXT_CHARS).collect();
            format!("[{kind}]\n{texts}")
        }
    };
    Block::text(text.trim_end())
}

/// The texts of a result, in their order.
fn collect(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::String(text) => out.push(text.clone()),
        Value::Array(parts) => parts.iter().for_each(|it| collect(it, out)),
        Value::Object(fields) => {
            for (_, value) in fields.iter().filter(|(name, _)| TELLING.contains(&name.as_str())) {
                collect(value, out);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
