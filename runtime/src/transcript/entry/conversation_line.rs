//! A message of the conversation, as it is on its line.

use std::sync::Arc;

use crate::{
    ids::{AgentId, EntryId, SessionId},
    message::Message,
    time::Timestamp,
    tokens::{Tokens, Usage},
};

/// Fields that are the same on all conversation lines of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineFrame {
    /// The session; in a sidechain the top session.
    pub session: SessionId,
    /// The sub-agent, in a sidechain.
    pub agent: Option<AgentId>,
    /// The working directory at the start of the session; absolute.
    pub cwd: Arc<str>,
    /// The checked-out branch, if any.
    pub git_branch: Option<Arc<str>>,
    /// Version of ennead that writes the line.
    pub version: &'static str,
}

#[cfg(test)]
impl LineFrame {
    /// Returns the frame of a session of a test.
    pub(crate) fn of_test() -> Self {
        Self {
            session: "s".into(),
            agent: None,
            cwd: "/app".into(),
            git_branch: None,
            version: "0.1.0",
        }
    }
}

/// A message of the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationLine {
    /// Time at which the message was recorded.
    pub at: Timestamp,
    /// The conversation line before it.
    pub parent: Option<EntryId>,
    /// The message; its id names the line.
    pub message: Arc<Message>,
    /// Of an answer: who gave it, why it ended, what it cost.
    pub answer: Option<AnswerFields>,
    /// Of a tool result: the structured result, JSON text, and the line of the call.
    pub tool_result: Option<ToolResultFields>,
    /// What a compaction boundary says about the compaction.
    pub boundary: Option<Boundary>,
}

impl ConversationLine {
    /// Makes the line of a message that is neither an answer, nor a tool result, nor a boundary.
    pub(crate) fn of(at: Timestamp, parent: Option<EntryId>, message: Arc<Message>) -> Self {
        Self { at, parent, message, answer: None, tool_result: None, boundary: None }
    }
}

/// What an assistant line holds in addition to its content.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AnswerFields {
    /// The model that answered, as the provider named it.
    pub model: Arc<str>,
    /// The model that was asked, where its name is another one's.
    pub asked: Option<Arc<str>>,
    /// Wire name of the stop reason.
    pub stop_reason: Arc<str>,
    /// Tokens of the call, as the provider reported them.
    pub usage: Usage,
}

impl AnswerFields {
    /// Returns the model that signed the reasoning in it, by the name it was asked under.
    pub fn signed_by(&self) -> Option<&Arc<str>> {
        self.asked.as_ref().or(Some(&self.model)).filter(|it| !it.is_empty())
    }
}

/// What a tool result line holds in addition to its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResultFields {
    /// The structured result (`toolUseResult`), as JSON text.
    pub structured: Option<Arc<str>>,
    /// Line of the answer that holds the tool use (`sourceToolAssistantUUID`).
    pub source: EntryId,
}

/// A compaction boundary: `{"type":"system","subtype":"compact_boundary",…}`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Boundary {
    /// `auto`, `manual` or `reactive`.
    pub trigger: &'static str,
    /// Estimated tokens of the conversation before the compaction.
    pub pre_tokens: Tokens,
    /// First and last message that stay verbatim after the summary.
    pub preserved: Option<(EntryId, EntryId)>,
}
