//! Messages of a session's model for its sub-agents: what is sent, and what becomes of it.

use std::sync::Arc;

use crate::ids::{AgentId, ToolUseId};

/// Bytes of a message at most.
#[doc(hidden)]
pub const MAX_MESSAGE_BYTES: usize = 100_000;

/// A message for a sub-agent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentMessage {
    /// The tool use that sends it.
    pub tool_use: ToolUseId,
    /// The id of the sub-agent, as the model writes it.
    pub to: String,
    /// The text of the message, as the model wrote it.
    pub text: String,
}

impl AgentMessage {
    /// Makes a message that this tool use sends.
    pub fn new(tool_use: ToolUseId, to: impl Into<String>, text: impl Into<String>) -> Self {
        Self { tool_use, to: to.into(), text: text.into() }
    }
}

/// A message that a sub-agent has: it is on record with that.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delivered {
    /// The agent is at work and is shown the message before its next turn.
    AtWork,
    /// The agent had ended, and goes on with the message in the background.
    GoesOn {
        /// The path of its transcript.
        transcript: String,
    },
}

/// Why a sub-agent does not have a message. The codes are stable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Undelivered {
    /// No sub-agent of the session has this id.
    #[error("there is no agent {to}")]
    Unknown {
        /// The beginning of what the model wrote.
        to: String,
    },
    /// It is the name of a type, of which there may be many agents.
    #[error("{to} is a type of agents and not the id of one")]
    IsType {
        /// The name of the type.
        to: String,
    },
    /// Agents of this type answer once.
    #[error("the agent is of the type {agent_type}, which answers once and cannot go on")]
    OneShot {
        /// The name of the type.
        agent_type: Arc<str>,
    },
    /// It belongs to another sub-agent.
    #[error("it is an agent of another agent")]
    OfAnother,
    /// It worked in a worktree that may be gone.
    #[error("the agent worked in a worktree, and cannot go on")]
    InWorktree,
    /// The name of its type denotes another type by now, or none.
    #[error("{agent_type} is another type of agents by now, or none")]
    OtherType {
        /// The name of the type.
        agent_type: Arc<str>,
    },
    /// Nothing says what its type was when it began, and the name may denote another type by now.
    #[error("what the type {agent_type} was when the agent began is not known, so it cannot go on")]
    UnrecordedType {
        /// The name of the type.
        agent_type: Arc<str>,
    },
    /// A call waits for the agent.
    #[error("a call waits for the agent, which is at work")]
    IsAwaited,
    /// The agent has not read what it was sent before.
    #[error("the agent has too many messages that it has not read yet")]
    TooMany,
    /// A limit of the tree of agents does not let it go on.
    #[error("the agent cannot go on: {why}")]
    Limit {
        /// Which limit it is, in words.
        why: String,
    },
    /// The agent could not begin, for a reason in words.
    #[error("the agent cannot go on: {why}")]
    NotBegun {
        /// The reason, in words.
        why: String,
    },
    /// The agent crashed while it received the message.
    #[error("the agent crashed; whether it has the message is not known")]
    Unclear,
    /// The session does not take messages.
    #[error("messages cannot be sent here")]
    NotHere,
}

impl Undelivered {
    /// Returns the code, which is stable.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "unknown_agent",
            Self::IsType { .. } => "is_type",
            Self::OneShot { .. } => "one_shot",
            Self::OfAnother => "of_another",
            Self::InWorktree => "in_worktree",
            Self::OtherType { .. } => "other_type",
            Self::UnrecordedType { .. } => "unrecorded_type",
            Self::IsAwaited => "is_awaited",
            Self::TooMany => "too_many",
            Self::Limit { .. } => "limit",
            Self::NotBegun { .. } => "not_begun",
            Self::Unclear => "unclear",
            Self::NotHere => "not_here",
        }
    }
}

/// What became of a message that a session was handed for itself.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageFate {
    /// It is on record.
    Taken,
    /// No run is under way that could show it.
    NotTaken,
    /// Too many wait to be shown.
    TooMany,
    /// The session ended before that was known.
    Unclear,
}

/// What is known about a sub-agent of an earlier run, by what lies next to its transcript.
#[doc(hidden)]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownAgent {
    /// The name of its type.
    pub agent_type: Arc<str>,
    /// What its type was; `None` where that was not written down.
    pub definition: Option<String>,
    /// Its task in a few words.
    pub description: Arc<str>,
    /// The model that its call asked for.
    pub model: Option<String>,
    /// The agent that started it; `None`: the top session.
    pub parent: Option<AgentId>,
    /// Whether it worked in a worktree.
    pub in_worktree: bool,
}
