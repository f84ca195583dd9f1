//! Source 9: the summary that represents the messages before the last compaction.

use std::sync::Arc;

use crate::message::{Message, MessageKind};

/// Returns the summary that these messages begin with; `None` if they do not.
pub(crate) fn summary(messages: &[Arc<Message>]) -> Option<&Arc<Message>> {
    messages.first().filter(|it| it.kind == MessageKind::CompactSummary)
}

/// Returns the characters of all messages together.
pub(super) fn size(messages: &[Arc<Message>]) -> u64 {
    summary(messages).map_or(0, |it| it.blocks.iter().map(crate::block::Block::chars).sum())
}
