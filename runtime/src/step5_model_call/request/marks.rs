//! Where a request is marked for the provider's cache (CTX-7).
//!
//! A mark says: keep everything up to here. Four are allowed: the last tool, the last segment of the
//! system prompt that is the same in every session, the end of what the request before was sent
//! with, and the end of this request. The third is there because a read looks no further back than
//! 20 blocks from a mark, and one turn can add more than that. All four last equally long, so none
//! that lasts an hour follows one that does not.
//!
//! Where marks go follows from the messages alone, not from what was sent before, so a request can
//! be made again from its record. A mark is not part of what is cached: the provider keeps and
//! compares the blocks. So a mark that moves on from one request to the next costs nothing.

use serde::{Deserialize, Serialize};

use crate::{
    block::{Block, BlockKind},
    message::Role,
    step5_model_call::{view::ViewMessage, wire_format::WireFormat},
};

/// How long a provider is asked to keep what it was sent. Each use starts the time anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PromptCaching {
    /// No block is marked for caching.
    #[serde(rename = "off")]
    Off,
    /// Marked blocks are cached for five minutes.
    #[default]
    #[serde(rename = "5m")]
    FiveMinutes,
    /// An hour. Writing to the cache costs more: 2 times the price of input in place of 1.25.
    #[serde(rename = "1h")]
    OneHour,
}

/// What of a head is marked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CachePlan {
    /// Whether and for how long.
    pub caching: PromptCaching,
    /// Segments at the front of the system prompt that are the same on every machine and day.
    pub n_static: usize,
}

/// A block of a view: the place of its message, and its own in there.
pub(super) type BlockIndex = (usize, usize);

impl PromptCaching {
    /// Returns what follows a block and closes it; `None`: nothing is marked.
    pub(super) fn mark(self) -> Option<&'static str> {
        match self {
            Self::Off => None,
            Self::FiveMinutes => Some(r#","cache_control":{"type":"ephemeral"}}"#),
            Self::OneHour => Some(r#","cache_control":{"type":"ephemeral","ttl":"1h"}}"#),
        }
    }

    /// Returns how long a provider keeps what it was sent in this format, in milliseconds; `None` if it keeps nothing.
    /// Formats without marks are those of providers that cache by themselves, for about five minutes.
    pub(crate) fn keeps_ms(self, format: WireFormat) -> Option<u64> {
        match self {
            _ if matches!(format, WireFormat::OpenAiChat | WireFormat::OpenAiResponses) => {
                Some(Self::FiveMinutes.lasts_ms())
            }
            Self::Off => None,
            Self::FiveMinutes | Self::OneHour => Some(self.lasts_ms()),
        }
    }

    /// Returns how long it lasts, in milliseconds.
    pub(crate) fn lasts_ms(self) -> u64 {
        match self {
            Self::Off => 0,
            Self::FiveMinutes => 5 * 60 * 1000,
            Self::OneHour => 60 * 60 * 1000,
        }
    }
}

/// Returns the blocks of a view to be marked, in order; the same place never twice. They are in the two newest messages
/// of the user, or before: a paused answer after them goes back as it came.
pub(super) fn places(messages: &[ViewMessage]) -> [Option<BlockIndex>; 2] {
    let user = |up_to: usize| messages[..up_to].iter().rposition(|it| it.role == Role::User);
    let Some(newest) = user(messages.len()) else { return [None, None] };
    let last = last_markable(messages, newest);
    let before = user(newest).and_then(|it| last_markable(messages, it));
    [before.filter(|it| Some(*it) != last), last]
}

/// The last block up to the end of a message that can be marked.
fn last_markable(messages: &[ViewMessage], up_to: usize) -> Option<BlockIndex> {
    messages[..=up_to].iter().enumerate().rev().find_map(|(i, message)| {
        message.blocks.iter().rposition(is_markable).map(|block| (i, block))
    })
}

/// Reasoning cannot be marked, nor an empty text, nor what only the provider knows.
fn is_markable(block: &Block) -> bool {
    match block.kind() {
        BlockKind::Text(text) => !text.trim().is_empty(),
        BlockKind::ToolUse { .. } | BlockKind::ToolResult { .. } => true,
        BlockKind::Opaque { kind } => matches!(&**kind, "image" | "document"),
        BlockKind::Thinking { .. }
        | BlockKind::RedactedThinking
        | BlockKind::StopRequest
        | BlockKind::Error(_) => false,
    }
}

#[cfg(test)]
mod tests;
