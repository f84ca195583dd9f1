//! What a provider takes: the promise of the compiler, written a second time and in another way.
//!
//! It shares no code with the compiler, so that it repeats no mistake of it.

use std::collections::BTreeSet;

use super::{ViewMessage, ViewTarget, server_tools::ServerBlock};
use crate::{
    block::{Block, BlockKind},
    ids::ToolUseId,
    message::Role,
};

/// Whether roles alternate, and calls and results are in pairs.
fn is_in_order(messages: &[ViewMessage]) -> bool {
    let mut expected = Role::User;
    let mut open: BTreeSet<&ToolUseId> = BTreeSet::new();
    for message in messages {
        let results = message.blocks.iter().map_while(Block::as_tool_result);
        let answered: Vec<&ToolUseId> = results.map(|(id, ..)| id).collect();
        let n_results = message.blocks.iter().filter_map(Block::as_tool_result).count();
        let all_answered = answered.len() == open.len()
            && answered.len() == n_results
            && answered.iter().all(|id| open.contains(id));
        if message.role != expected || message.blocks.is_empty() || !all_answered {
            return false;
        }
        let calls: Vec<&ToolUseId> =
            message.blocks.iter().filter_map(Block::as_tool_use).map(|(id, ..)| id).collect();
        open = calls.iter().copied().collect();
        if open.len() != calls.len() || (message.role == Role::User && !calls.is_empty()) {
            return false;
        }
        expected = if message.role == Role::User { Role::Assistant } else { Role::User };
    }
    open.is_empty() && server_tools_are_paired(messages)
}

/// Returns whether this provider would accept the messages of a view, for this model: what
/// [`compile_for`](super::compile_for) promises.
pub(crate) fn is_acceptable_for(target: ViewTarget<'_>, messages: &[ViewMessage]) -> bool {
    let features = target.format.features();
    let is_foreign = |block: &Block| match block.kind() {
        BlockKind::Thinking { signature, .. } => !features.signed_thinking || signature.is_none(),
        BlockKind::RedactedThinking => !features.signed_thinking,
        BlockKind::Opaque { kind } if kind.starts_with("openai_") => {
            features.items != Some(&**kind)
        }
        BlockKind::Opaque { .. } => {
            !features.server_tools && ServerBlock::of(block) != ServerBlock::None
        }
        BlockKind::StopRequest | BlockKind::Error(_) => true,
        BlockKind::Text(text) => text.trim().is_empty(),
        BlockKind::ToolUse { id, .. } => !is_plain(id),
        BlockKind::ToolResult { id, .. } => !is_plain(id),
    };
    is_in_order(messages) && !messages.iter().flat_map(|it| &it.blocks).any(is_foreign)
}

fn is_plain(id: &ToolUseId) -> bool {
    let fits = |it: u8| it.is_ascii_alphanumeric() || it == b'_' || it == b'-';
    !id.as_str().is_empty() && id.as_str().bytes().all(fits)
}

/// Each result of a server tool has its call in front of it; while a call waits for one, the user
/// says nothing but results.
fn server_tools_are_paired(messages: &[ViewMessage]) -> bool {
    let mut waiting: BTreeSet<String> = BTreeSet::new();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for (at, message) in messages.iter().enumerate() {
        for block in &message.blocks {
            match ServerBlock::of(block) {
                ServerBlock::Call(id) => {
                    if !seen.insert(id.clone()) {
                        return false;
                    }
                    waiting.insert(id);
                }
                ServerBlock::Result(id) if !waiting.remove(&id) => return false,
                ServerBlock::Result(_) | ServerBlock::None => {}
            }
        }
        let is_last = at + 1 == messages.len();
        let only_results = message.blocks.iter().all(|it| it.as_tool_result().is_some());
        let in_order = match message.role {
            Role::Assistant => true,
            Role::User | Role::System => only_results,
        };
        // After an answer that holds a call without result, only its continuation may come.
        if !waiting.is_empty() && !in_order {
            return false;
        }
        if is_last {
            return true;
        }
    }
    true
}
