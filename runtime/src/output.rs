//! What a channel delivers of a run: the answer without what was not meant for it, each word once.
//!
//! A channel is any place that an answer goes to: a terminal, a page, a messenger, a program. One
//! run can go to several, each by its own [`ChannelPolicy`]. A [`Normalizer`] is fed with the
//! events of the session and gives [`Payload`]s; it is pure, so time is an argument.
//!
//! Text goes through four stages, each in its own file: reasoning is taken out
//! (`reasoning_tags`), blanks and heartbeats at the edges are dropped (`heartbeat`), what was delivered
//! already is not delivered again (`dedupe`), the rest is cut into blocks (`chunking`). How the
//! model's deltas were cut changes nothing of what comes out.

mod chunking;
mod dedupe;
mod fences;
mod heartbeat;
mod message;
pub mod normalizer;
mod pipe;
pub mod policy;
pub(crate) mod reasoning_tags;
pub mod terminal;
pub mod tool_result;

use std::sync::Arc;

use serde::Serialize;

use crate::event::Event;

pub use chunking::Piece;
pub use normalizer::Normalizer;
pub use policy::{Break, ChannelPolicy, ChunkPolicy, Chunking, Delivery, OutputSettings};
pub use tool_result::ToolResult;

/// What a channel delivers to its listener.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Payload {
    /// A piece of the answer, never blank.
    Text {
        /// From 1, without gaps, per channel, texts and reasoning together.
        id: u64,
        /// The next part of an answer.
        #[serde(flatten)]
        piece: Piece,
    },
    /// A piece of the reasoning, never blank.
    Reasoning {
        /// Numbered together with texts.
        id: u64,
        /// The next part of the reasoning.
        text: String,
    },
    /// What was delivered under these ids does not count: the attempt failed, or the whole message
    /// says something else. What replaces it follows under new ids.
    Retracted {
        /// The first of them.
        first_id: u64,
        /// The last of them.
        last_id: u64,
    },
    /// A tool has given its result.
    ToolResult(ToolResult),
    /// The channel was too slow, and this many events are gone for it. The transcript has what they
    /// held; a message they were part of is not delivered.
    Missed {
        /// Number of events that the listener missed.
        events: u64,
    },
    /// The run is over; nothing more of it follows.
    Ended {
        /// The code of its reason, or why it failed.
        reason: Arc<str>,
        /// It left no outcome.
        is_failure: bool,
    },
}

/// An input of a normalizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputEvent<'e> {
    /// A turn begins, and attempts are counted anew.
    TurnStarted,
    /// A piece of the answer.
    Text {
        /// Model attempt within the turn, from 1.
        attempt: u32,
        /// The next piece of the answer.
        text: &'e str,
    },
    /// A piece of reasoning that the model marked as such.
    Reasoning {
        /// Model attempt within the turn, from 1.
        attempt: u32,
        /// The next piece of the reasoning.
        text: &'e str,
    },
    /// A block of the answer, whole. Its beginning may have been sent as pieces.
    Block {
        /// Model attempt within the turn, from 1.
        attempt: u32,
        /// The whole text of the block.
        text: &'e str,
    },
    /// The model does something else than to speak, so that text after it is another block.
    Other {
        /// Model attempt within the turn, from 1.
        attempt: u32,
    },
    /// The message is complete.
    Completed {
        /// All of its text.
        text: &'e str,
    },
    /// What was sent of this attempt does not count.
    Withdrawn {
        /// Model attempt within the turn, from 1.
        attempt: u32,
    },
    /// A tool has given its result.
    ToolResult {
        /// The event that says so: [`Event::ToolFinished`].
        event: &'e Event,
    },
    /// Events were lost here.
    Missed {
        /// Number of events that the listener missed.
        events: u64,
    },
    /// The run has ended.
    Ended {
        /// Stable code of the reason for the end.
        reason: &'e str,
        /// Whether it left no outcome.
        is_failure: bool,
    },
}

impl<'e> OutputEvent<'e> {
    /// Returns what an event means for channels; `None` for most. What happens in sub-agents is not an answer.
    pub fn of(event: &'e Event) -> Option<Self> {
        Some(match event {
            Event::TurnStarted { .. } => Self::TurnStarted,
            Event::TextDelta { attempt, text } => Self::Text { attempt: *attempt, text },
            Event::ReasoningDelta { attempt, text } => Self::Reasoning { attempt: *attempt, text },
            Event::ToolInputPreview { attempt, .. } => Self::Other { attempt: *attempt },
            Event::MessageCompleted { text, .. } => Self::Completed { text },
            Event::Withdrawn { attempt } => Self::Withdrawn { attempt: *attempt },
            Event::ToolFinished { .. } => Self::ToolResult { event },
            Event::Lagged { missed, .. } => Self::Missed { events: *missed },
            Event::RunFinished { reason, .. } => Self::Ended { reason, is_failure: false },
            Event::RunLost { reason, .. } => Self::Ended { reason, is_failure: true },
            _ => return None,
        })
    }
}

/// Returns the answer in a text: what a channel delivers of it, in one piece. Empty when that is nothing.
pub fn answer_in(text: &str, settings: &OutputSettings) -> String {
    let mut pipe = pipe::Pipe::new(settings, None);
    let mut out = Vec::new();
    pipe.push(text, &mut out);
    pipe.finish(&mut out);
    out.into_iter().filter_map(pipe::Out::into_text).collect()
}

#[cfg(test)]
mod tests;
