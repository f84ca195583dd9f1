//! Messages of a conversation: their role, kind and content.

mod shared_messages;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    block::{Block, BlockKind},
    ids::{EntryId, ToolName, ToolUseId},
    tokens::{Estimate, Size, Tokens},
};

pub use shared_messages::SharedMessages;

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A person, a tool or the harness.
    User,
    /// The message comes from the model.
    Assistant,
    /// The harness, to readers of the transcript; never sent to a model.
    System,
}

/// Why a message is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MessageKind {
    /// What a person or an embedder asked.
    Prompt,
    /// What the model answered.
    Answer,
    /// Results of tool calls.
    ToolResults,
    /// Put in by the harness for the model (`isMeta` in transcripts): context, reminders, the
    /// reason of a Stop hook.
    Meta,
    /// The summary that represents what lies before a compaction boundary.
    CompactSummary,
    /// A stop request or a terminal error.
    Mark,
}

/// One message of a conversation. What is stored is never changed; shapers build new ones.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// Names its line in the transcript.
    pub id: EntryId,
    /// The author of the message.
    pub role: Role,
    /// What the message is for.
    pub kind: MessageKind,
    /// The provider's id of the response it belongs to.
    pub api_id: Option<Arc<str>>,
    /// Of an answer: the model that gave it, and that signed its reasoning; `None` where that
    /// is not known.
    pub model: Option<Arc<str>>,
    /// Its content, in order.
    pub blocks: Vec<Block>,
}

/// A conversation: messages by reference, oldest first.
pub type Messages = Vec<Arc<Message>>;

impl Message {
    /// Makes a prompt of one text block.
    pub fn prompt(id: EntryId, text: &str) -> Self {
        Self::user(id, MessageKind::Prompt, vec![Block::text(text)])
    }

    /// Makes a message with the role of the user.
    pub fn user(id: EntryId, kind: MessageKind, blocks: Vec<Block>) -> Self {
        Self { id, role: Role::User, kind, api_id: None, model: None, blocks }
    }

    /// Makes an answer of the model.
    pub fn answer(id: EntryId, api_id: &str, blocks: Vec<Block>) -> Self {
        let api_id = Some(api_id.into());
        Self { id, role: Role::Assistant, kind: MessageKind::Answer, api_id, model: None, blocks }
    }

    /// Names the model of the answer. An empty name counts as none.
    #[must_use]
    pub fn of_model(self, model: &str) -> Self {
        Self { model: (!model.is_empty()).then(|| model.into()), ..self }
    }

    /// Makes a stop request or a terminal error, for the stop check.
    pub(crate) fn mark(id: EntryId, block: Block) -> Self {
        Self {
            id,
            role: Role::System,
            kind: MessageKind::Mark,
            api_id: None,
            model: None,
            blocks: vec![block],
        }
    }

    /// Estimates its size by characters alone: those of all blocks, divided once and rounded up. What decides about the
    /// context goes by their kinds.
    pub fn tokens(&self) -> Tokens {
        Tokens::from_chars(self.blocks.iter().map(Block::chars).sum())
    }

    /// Estimates its size in tokens, rounded up once.
    pub(crate) fn estimate(&self) -> Estimate {
        Estimate::of(self.blocks.iter().map(Block::size).sum::<Size>())
    }

    /// Returns the tool uses in it, in order.
    pub fn tool_uses(&self) -> impl Iterator<Item = (&ToolUseId, &ToolName, &str)> {
        self.blocks.iter().filter_map(Block::as_tool_use)
    }

    /// Returns the texts in it, joined by newlines.
    pub fn text(&self) -> String {
        self.blocks.iter().filter_map(Block::as_text).collect::<Vec<_>>().join("\n")
    }

    /// Returns whether it starts something new: a user message with text (or with nothing), not only results of tools.
    pub(crate) fn is_prompt(&self) -> bool {
        self.role == Role::User
            && (self.blocks.is_empty()
                || self.blocks.iter().any(|it| !matches!(it.kind(), BlockKind::ToolResult { .. })))
    }
}

/// Estimates the size of a list of messages in tokens.
pub(crate) fn estimate_of<'a>(messages: impl IntoIterator<Item = &'a Arc<Message>>) -> Estimate {
    messages.into_iter().map(|it| it.estimate()).sum()
}

/// Estimates the size of a list of messages by characters alone.
pub(crate) fn tokens_of<'a>(messages: impl IntoIterator<Item = &'a Arc<Message>>) -> Tokens {
    messages.into_iter().map(|it| it.tokens()).sum()
}
