//! Remembers how large the messages of a conversation are.

use std::sync::Arc;

use super::{
    source7_conversation_history::{is_sent, is_summary, since_last_summary},
    source8_tool_results, source9_compact_summaries,
};
use crate::{
    block::Block,
    message::{Message, SharedMessages},
    tokens::Estimate,
};

/// The messages since the last summary, counted. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct CountedMessages {
    /// The conversation as it was counted last.
    seen: SharedMessages,
    /// What of it is sent.
    sent: SharedMessages,
    counts: Counts,
    looks: u64,
}

/// How large messages are together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Characters that count as content.
    pub(super) chars: u64,
    /// Those of them that are in results of tools.
    pub(super) of_results: u64,
    /// Those in the summary that they begin with.
    pub(super) of_summary: u64,
    /// The estimate of their tokens.
    pub(super) estimate: Estimate,
}

impl CountedMessages {
    /// Counts what is new of a conversation, or all of it where it did not only grow. Returns what is sent of it: nothing
    /// of what is in front of the last summary.
    pub(super) fn count(&mut self, conversation: &SharedMessages) -> (SharedMessages, Counts) {
        let mut n_seen = self.seen.len();
        let holds = self.seen.shares(conversation, n_seen)
            && !conversation.walk_from(n_seen).any(is_summary);
        if !holds {
            *self = Self { looks: self.looks, ..Self::default() };
            n_seen = since_last_summary(conversation);
            let first = conversation.walk_from(n_seen).next();
            self.counts.of_summary = source9_compact_summaries::size(first);
        }
        for message in conversation.walk_from(n_seen) {
            self.looks += 1;
            if is_sent(message) {
                self.sent.push(Arc::clone(message));
                self.counts.add(message);
            }
        }
        self.seen = conversation.clone();
        (self.sent.clone(), self.counts)
    }

    /// Counts the messages that were counted so far.
    pub fn looks(&self) -> u64 {
        self.looks
    }
}

impl Counts {
    fn add(&mut self, message: &Message) {
        self.chars += message.blocks.iter().map(Block::chars).sum::<u64>();
        self.of_results += source8_tool_results::size(&message.blocks);
        self.estimate = self.estimate + message.estimate();
    }
}
