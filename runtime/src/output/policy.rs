//! What a channel wants of a run, and the defaults that a session gives it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::saturating::Saturating as _;

/// What one channel gets (OUT-5).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChannelPolicy {
    /// When the answer comes.
    pub delivery: Delivery,
    /// How the text is cut into pieces.
    pub chunking: ChunkPolicy,
    /// Whether reasoning comes, too.
    pub reasoning: bool,
    /// Whether results of tools come; the most characters of each. `None`: they do not.
    pub tool_results: Option<usize>,
}

/// When the answer comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delivery {
    /// As it arrives. What turns out not to count is retracted.
    Partial,
    /// Each message once the model has completed it.
    Message,
    /// The last message of a run, at the end of the run.
    #[default]
    Final,
}

/// How an answer is cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChunkPolicy {
    /// Not at all: deltas as they come, messages whole.
    #[default]
    Whole,
    /// Into blocks, as the session says.
    Session,
    /// Into blocks of this kind.
    Blocks(Chunking),
}

/// Sizes of blocks and where they end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Chunking {
    /// Characters from which on a block ends at the preferred break. A block before a fenced one
    /// may be shorter, and so may one before a word that would not fit, the last one, or one that
    /// waited long enough.
    pub min: usize,
    /// Characters of a block at most, blanks around it aside; 16 at least.
    pub max: usize,
    /// Where it ends if it may choose.
    pub prefer: Break,
}

impl Chunking {
    /// Makes blocks of `min` characters, if a break is there, to `max`.
    pub fn new(min: usize, max: usize, prefer: Break) -> Self {
        Self { min, max, prefer }
    }
}

/// Where a block may end, best first. A sentence end is one of `.`, `!`, `?`, `:`, `;` before
/// blanks, or `。`, `！`, `？`. When none of these is in reach it is a blank between words, and then
/// anywhere between two characters as a reader counts them (grapheme clusters).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Break {
    /// After a blank line.
    #[default]
    Paragraph,
    /// At a line end.
    Newline,
    /// After the end of a sentence.
    Sentence,
}

/// Defaults of a session: the keys under `ennead.output`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct OutputSettings {
    /// Default of [`Chunking::min`], in characters; 800.
    pub chunk_min: u32,
    /// [`Chunking::max`]; 1,200: below what common messengers take at once.
    pub chunk_max: u32,
    /// Default of [`Chunking::prefer`]; `paragraph`.
    pub break_preference: Break,
    /// Milliseconds without new text after which a block is delivered as it is, up to the last
    /// break; 1,000. 0: never.
    pub flush_idle_ms: u64,
    /// Milliseconds for which deltas that are delivered as they come are gathered; 0: not at all.
    pub coalesce_ms: u64,
    /// Messages of nothing but these are not delivered; `HEARTBEAT_OK`.
    pub heartbeat_tokens: Arc<[String]>,
}

impl Default for OutputSettings {
    fn default() -> Self {
        Self {
            chunk_min: 800,
            chunk_max: 1200,
            break_preference: Break::Paragraph,
            flush_idle_ms: 1000,
            coalesce_ms: 0,
            heartbeat_tokens: ["HEARTBEAT_OK".to_owned()].into(),
        }
    }
}

impl OutputSettings {
    /// Returns how blocks are cut.
    pub(crate) fn chunking(&self) -> Chunking {
        let size = |it: u32| usize::saturating(it);
        let (min, max) = (size(self.chunk_min), size(self.chunk_max));
        Chunking { min, max, prefer: self.break_preference }
    }
}

impl Default for ChannelPolicy {
    /// The final answer, whole.
    fn default() -> Self {
        Self {
            delivery: Delivery::default(),
            chunking: ChunkPolicy::default(),
            reasoning: false,
            tool_results: None,
        }
    }
}

impl ChannelPolicy {
    /// Delivers the answer as it arrives, delta by delta: for a terminal or a page.
    pub fn partial() -> Self {
        Self { delivery: Delivery::Partial, ..Self::default() }
    }

    /// Delivers the answer as it arrives, in blocks of the size that the session's settings ask for: for a messenger.
    pub fn blocks() -> Self {
        Self { chunking: ChunkPolicy::Session, ..Self::partial() }
    }

    /// Returns a policy that delivers every message whole.
    pub fn messages() -> Self {
        Self { delivery: Delivery::Message, ..Self::default() }
    }

    /// Delivers the final answer, whole.
    pub fn final_answer() -> Self {
        Self::default()
    }

    /// Delivers reasoning as well as answers.
    #[must_use]
    pub fn reasoning(self) -> Self {
        Self { reasoning: true, ..self }
    }

    /// Delivers results of tools, too, each of this many characters at most.
    #[must_use]
    pub fn tool_results(self, max_chars: usize) -> Self {
        Self { tool_results: Some(max_chars), ..self }
    }

    /// Cuts the answer into blocks of this kind.
    #[must_use]
    pub fn chunks(self, chunking: Chunking) -> Self {
        Self { chunking: ChunkPolicy::Blocks(chunking), ..self }
    }
}
