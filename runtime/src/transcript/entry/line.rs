//! One line of either kind.

use super::{ConversationLine, Record};

/// One line, before the writer adds `seq`, `prev` and `hash`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A message of the conversation.
    Conversation(Box<ConversationLine>),
    /// Something that the harness did.
    Harness(Box<Record>),
}

impl Line {
    /// Returns the record, if it is one.
    pub fn record(&self) -> Option<&Record> {
        match self {
            Line::Harness(record) => Some(record),
            Line::Conversation(_) => None,
        }
    }
}
