//! What a view differs in from its conversation, and the words for it.

use std::fmt;

use crate::ids::ToolUseId;

/// A repair that the view made to a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ViewNote {
    /// A call without result got an error result.
    MissingResult(ToolUseId),
    /// A result without call in front of it was left out.
    ResultWithoutCall(ToolUseId),
    /// A second result of one call was left out.
    SecondResult(ToolUseId),
    /// A second call with one id was left out.
    SecondCall(ToolUseId),
    /// Reasoning without signature was left out.
    UnsignedThinking,
    /// A last answer of reasoning alone was left out.
    ThinkingOnly,
    /// Answers in front of the first message of the user were left out.
    LeadingAnswer,
    /// A block had the wrong role: a call of the user, a result of the model.
    WrongRole,
    /// The input or the name of a call would be refused; the view holds another.
    CallRepaired(ToolUseId),
    /// Reasoning that another model has signed was left out.
    ForeignReasoning,
    /// A block that the provider does not know was left out.
    LeftOut {
        /// The type of the block.
        kind: Box<str>,
    },
    /// A text replaces a block that the provider does not know, or that has lost its partner.
    AsText {
        /// The type of the block.
        kind: Box<str>,
    },
    /// It is not known that the provider would take these bytes, which may have been changed: a block
    /// of the same content represents it, or nothing where only its bytes count.
    Doubtful {
        /// The type of the block.
        kind: Box<str>,
    },
    /// The conversation ended with an answer; a line of the harness asks to go on.
    EndsWithAnswer,
    /// A block was too large; a text replaces it.
    TooLarge {
        /// The type of the block.
        kind: Box<str>,
        /// Size of the block, in bytes.
        bytes: usize,
    },
}

/// For people and for records: what is different, and how.
impl fmt::Display for ViewNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingResult(id) => {
                write!(f, "call {id} has no result; an error result was put in")
            }
            Self::ResultWithoutCall(id) => {
                write!(f, "a result for {id} has no call before it; left out")
            }
            Self::SecondResult(id) => write!(f, "call {id} has a second result; left out"),
            Self::SecondCall(id) => write!(f, "a second call is named {id}; left out"),
            Self::UnsignedThinking => f.write_str("reasoning without a signature; left out"),
            Self::ThinkingOnly => f.write_str("a last answer of reasoning alone; left out"),
            Self::LeadingAnswer => f.write_str("answers before the first prompt; left out"),
            Self::WrongRole => f.write_str("a block in a message of the wrong role; left out"),
            Self::CallRepaired(id) => {
                write!(f, "the name or the input of call {id} would be refused; it was replaced")
            }
            Self::ForeignReasoning => f.write_str("reasoning that another model signed; left out"),
            Self::LeftOut { kind } => {
                write!(f, "a block of type {kind} that the provider does not know; left out")
            }
            Self::AsText { kind } => {
                write!(f, "a block of type {kind} that cannot be sent; a text stands for it")
            }
            Self::Doubtful { kind } => write!(
                f,
                "a block of type {kind} whose bytes may have been changed; only its text was sent"
            ),
            Self::EndsWithAnswer => {
                f.write_str("it ends with an answer; a request to go on was put behind it")
            }
            Self::TooLarge { kind, bytes } => {
                write!(
                    f,
                    "a block of type {kind} with {bytes} bytes is too large; a text stands for it"
                )
            }
        }
    }
}
