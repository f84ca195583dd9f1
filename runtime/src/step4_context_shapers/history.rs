//! The shape of a history: where it can be cut, what is newest, what is never dropped.
//!
//! Three stages cut, and agree by this. Calls are matched by id only.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    block::{Block, BlockKind},
    ids::{ToolName, ToolUseId},
    message::{Message, MessageKind, Messages, Role},
    saturating::Saturating as _,
};

/// Returns for each place between two messages whether a cut there tears no call from its result. Place `i` is before
/// message `i`. A call of the last answer that has no result yet counts as answered by what comes next, so it stays
/// together with it. Neither is one response torn that is in several messages: its thinking belongs to its calls.
pub(super) fn safe_cuts(messages: &[Arc<Message>]) -> Vec<bool> {
    let mut last_call: BTreeMap<&ToolUseId, (usize, bool)> = BTreeMap::new();
    let mut torn = vec![0_i64; messages.len() + 2];
    let mut span = |first: usize, last: usize| {
        torn[first + 1] += 1;
        torn[last + 1] -= 1;
    };
    for (i, message) in messages.iter().enumerate() {
        if message.api_id.is_some() && 0 < i && messages[i - 1].api_id == message.api_id {
            span(i - 1, i);
        }
        for block in &message.blocks {
            match block.kind() {
                BlockKind::ToolUse { id, .. } => {
                    last_call.insert(id, (i, false));
                }
                BlockKind::ToolResult { id, .. } => {
                    if let Some((first, is_answered)) = last_call.get_mut(id) {
                        span(*first, i);
                        *is_answered = true;
                    }
                }
                _ => {}
            }
        }
    }
    let last_answer = messages.iter().rposition(|it| it.role == Role::Assistant);
    for (first, is_answered) in last_call.into_values() {
        if !is_answered && Some(first) == last_answer {
            span(first, messages.len() - 1);
        }
    }
    let mut depth = 0;
    let depths = torn.iter().take(messages.len() + 1).map(|change| {
        depth += change;
        depth
    });
    depths.map(|it| it == 0).collect()
}

/// Returns where the newest messages begin: the last `keep` (at least 1), and as many more as whole pairs need.
pub(super) fn newest_start(messages: &[Arc<Message>], keep: u32) -> usize {
    let keep = usize::saturating(keep.max(1));
    let start = messages.len().saturating_sub(keep);
    if start == 0 {
        return 0;
    }
    let safe = safe_cuts(messages);
    (0..=start).rev().find(|i| safe[*i]).unwrap_or(0)
}

/// Counts the messages that the list opens with and that tell what it is about: prompts, a summary, context of the
/// harness.
pub(super) fn opening(messages: &[Arc<Message>]) -> usize {
    messages.iter().take_while(|it| it.role == Role::User && !has_results(it)).count()
}

/// Returns the last prompt, as distinguished from reminders of the harness.
pub(super) fn last_prompt(messages: &[Arc<Message>]) -> Option<usize> {
    messages.iter().rposition(|it| starts_run(it))
}

/// Returns whether a run begins with this message.
pub(super) fn starts_run(message: &Message) -> bool {
    message.role == Role::User
        && matches!(message.kind, MessageKind::Prompt | MessageKind::CompactSummary)
}

/// Returns whether it holds results of tools.
pub(super) fn has_results(message: &Message) -> bool {
    message.blocks.iter().any(|it| it.as_tool_result().is_some())
}

/// Returns the tool that a result in message `at` is of.
pub(super) fn tool_of<'a>(
    messages: &'a [Arc<Message>],
    at: usize,
    id: &ToolUseId,
) -> Option<&'a ToolName> {
    let calls = messages[..at].iter().rev().flat_map(|it| it.tool_uses());
    calls.filter(|(it, _, _)| *it == id).map(|(_, name, _)| name).next()
}

/// Replaces some blocks of message `at` in the list; nothing when none is. The message keeps its id, and a holder of
/// the old one keeps the old one.
pub(super) fn replace_blocks(
    messages: &mut Messages,
    at: usize,
    mut replace: impl FnMut(usize, &Block) -> Option<Block>,
) {
    let old = &messages[at];
    let new: Vec<_> = old.blocks.iter().enumerate().map(|(i, it)| replace(i, it)).collect();
    if new.iter().any(Option::is_some) {
        let blocks =
            new.into_iter().zip(&old.blocks).map(|(new, old)| new.unwrap_or_else(|| old.clone()));
        let message = Message { blocks: blocks.collect(), ..Message::clone(old) };
        messages[at] = Arc::new(message);
    }
}
