//! Source 9: the summary that represents the messages before the last compaction.

use std::sync::Arc;

use super::source7_conversation_history::is_summary;
use crate::{block::Block, message::Message};

/// Returns the characters of the summary that messages begin with, of which this is the first; 0 where it is none.
pub(super) fn size(first: Option<&Arc<Message>>) -> u64 {
    let summary = first.filter(|it| is_summary(it));
    summary.map_or(0, |it| it.blocks.iter().map(Block::chars).sum())
}
