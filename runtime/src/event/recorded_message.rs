//! A message as it went into the transcript, for listeners that follow the conversation itself.

use std::sync::Arc;

use serde::{Serialize, Serializer, ser::SerializeStruct};
use serde_json::value::RawValue;

use crate::{
    block::Block,
    message::{Message, MessageKind},
    time::Timestamp,
    transcript::entry::{AnswerFields, Boundary, ConversationLine},
};

/// A message of the conversation. Its id is that of its line in the transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordedMessage {
    /// Time at which the message was recorded.
    pub at: Timestamp,
    /// The message, as the transcript holds it.
    pub message: Arc<Message>,
    /// Of an answer: who gave it, why it ended, what it cost.
    pub answer: Option<AnswerFields>,
    /// Of a tool result: the structured result, JSON text.
    pub structured: Option<Arc<str>>,
    /// Of a compaction boundary: what caused it, and the size before it.
    pub boundary: Option<Boundary>,
}

impl RecordedMessage {
    /// Makes the message of a line.
    #[doc(hidden)]
    pub fn of(line: &ConversationLine) -> Self {
        Self {
            at: line.at,
            message: Arc::clone(&line.message),
            answer: line.answer.clone(),
            structured: line.tool_result.as_ref().and_then(|it| it.structured.clone()),
            boundary: line.boundary.clone(),
        }
    }

    /// Counts the bytes of its content as JSON text.
    pub fn n_bytes(&self) -> usize {
        self.message.blocks.iter().map(Block::wire_len).sum()
    }

    /// Returns its blocks as the Messages API has them.
    pub fn content(&self) -> Vec<Box<RawValue>> {
        let raw = |text: Vec<u8>| {
            String::from_utf8(text).ok().and_then(|it| RawValue::from_string(it).ok())
        };
        let wire = self.message.blocks.iter().map(|block| {
            let mut text = Vec::new();
            block.push_wire(&mut text);
            text
        });
        wire.filter_map(raw).collect()
    }
}

impl Serialize for RecordedMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let message = &self.message;
        let mut object = serializer.serialize_struct("RecordedMessage", 5)?;
        object.serialize_field("uuid", message.id.as_str())?;
        object.serialize_field("role", &message.role)?;
        object.serialize_field("is_meta", &(message.kind == MessageKind::Meta))?;
        object.serialize_field("content", &self.content())?;
        object.serialize_field("model", &self.answer.as_ref().map(|it| &it.model))?;
        object.end()
    }
}
