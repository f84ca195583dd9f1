//! Source 7: the messages since the last compaction.

use std::sync::Arc;

use crate::message::{Message, MessageKind, Role, SharedMessages};

/// Returns where the messages begin that count: at the last summary, at the first message without one.
pub(super) fn since_last_summary(messages: &SharedMessages) -> usize {
    let n_after = messages.walk().rev().position(is_summary);
    n_after.map_or(0, |it| messages.len() - it - 1)
}

/// Returns whether a message represents those in front of it.
pub(super) fn is_summary(message: &Arc<Message>) -> bool {
    message.kind == MessageKind::CompactSummary
}

/// Returns whether a model is ever sent this message.
pub(super) fn is_sent(message: &Message) -> bool {
    message.role != Role::System && message.kind != MessageKind::Mark
}
