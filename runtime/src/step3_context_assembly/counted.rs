//! Remembers how large the messages of a conversation are.

use std::sync::Arc;

use super::{
    source7_conversation_history::{is_sent, since_last_summary},
    source8_tool_results,
};
use crate::{
    block::Block,
    message::{Message, MessageKind},
    shared::SharedList,
    tokens::Estimate,
};

/// The messages since the last summary, counted. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct CountedMessages {
    messages: SharedList<Arc<Message>>,
    sent: Counts,
    looks: u64,
}

/// How large messages are together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Number of messages that were counted.
    pub(super) n: usize,
    /// Characters that count as content.
    pub(super) chars: u64,
    /// Those of them that are in results of tools.
    pub(super) of_results: u64,
    /// The estimate of their tokens.
    pub(super) estimate: Estimate,
}

impl CountedMessages {
    /// Counts what is new of a conversation, or all of it where it did not only grow. Gives the number
    /// of messages in front of the last summary, and what of the others is sent.
    pub(super) fn count(&mut self, conversation: &[Arc<Message>]) -> (usize, Counts) {
        let is_summary = |it: &Arc<Message>| it.kind == MessageKind::CompactSummary;
        let holds = self.messages.begins(conversation, Arc::ptr_eq)
            && !conversation[self.messages.len()..].iter().any(is_summary);
        let mut first = 0;
        if !holds {
            *self = Self { looks: self.looks, ..Self::default() };
            first = conversation.len() - since_last_summary(conversation).len();
        }
        let n_counted = first + self.messages.len();
        for message in &conversation[n_counted..] {
            self.looks += 1;
            self.messages.push(Arc::clone(message));
            if is_sent(message) {
                self.sent.n += 1;
                self.sent.chars += message.blocks.iter().map(Block::chars).sum::<u64>();
                self.sent.of_results += source8_tool_results::size(&message.blocks);
                self.sent.estimate = self.sent.estimate + message.estimate();
            }
        }
        (first, self.sent)
    }

    /// Counts the messages that were counted so far.
    pub fn looks(&self) -> u64 {
        self.looks
    }
}
