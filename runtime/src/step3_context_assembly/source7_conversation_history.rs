//! Source 7: the messages since the last compaction.

use std::sync::Arc;

use crate::message::{Message, MessageKind, Role};

/// Returns the messages that count: from the last summary on, all of them without one.
pub(crate) fn since_last_summary(messages: &[Arc<Message>]) -> &[Arc<Message>] {
    let last = messages.iter().rposition(|it| it.kind == MessageKind::CompactSummary);
    &messages[last.unwrap_or(0)..]
}

/// Returns whether a model is ever sent this message.
pub(super) fn is_sent(message: &Message) -> bool {
    message.role != Role::System && message.kind != MessageKind::Mark
}
