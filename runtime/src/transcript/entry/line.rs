//! One line of either kind.

use super::{ConversationLine, Record};
use crate::ids::is_uuid_byte;

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

    /// Returns whether the ids in its frame are UUIDs, as those are that the harness makes. Others come from embedders
    /// and from transcripts of other software.
    pub fn has_plain_ids(&self) -> bool {
        match self {
            Line::Conversation(line) => {
                is_uuid(line.message.id.as_str())
                    && line.parent.as_ref().is_none_or(|it| is_uuid(it.as_str()))
            }
            Line::Harness(record) => record.run.as_ref().is_none_or(|it| is_uuid(it.as_str())),
        }
    }
}

/// Whether a text has the length of a UUID and no bytes but such as those have.
fn is_uuid(id: &str) -> bool {
    <&[u8; 36]>::try_from(id.as_bytes())
        .is_ok_and(|it| it.iter().fold(true, |all, byte| all & is_uuid_byte(*byte)))
}
