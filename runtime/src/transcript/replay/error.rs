//! Why a transcript could not be walked again.

use crate::{digest::Digest, step::Step};

/// Why a transcript could not be walked again, or where it differs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The turn makes another line than the one that is recorded.
    #[error("line {line}, {}: the turn makes {expected}, recorded is {found}", step.name())]
    Differs {
        /// Number of the line, counted from 1.
        line: u64,
        /// Where the turn is.
        step: Step,
        /// What the turn makes, around the first difference; empty when it makes no further line.
        expected: String,
        /// What is there; empty when nothing does.
        found: String,
    },
    /// The turn asks for something that no line holds.
    #[error("line {line}, {}: no line tells {what}", step.name())]
    Unrecorded {
        /// The line at which it should be.
        line: u64,
        /// Where the turn is.
        step: Step,
        /// Name of the missing part.
        what: &'static str,
    },
    /// A text next to the transcript is not at hand, or another one.
    #[error("line {line}: the stored text {digest} is not at hand")]
    NotStored {
        /// The line that names it.
        line: u64,
        /// Digest that names the stored text.
        digest: Digest,
    },
    /// The prompt of a run is not written as one of its session.
    #[error("line {line}: the prompt of this session is {expected}, recorded is {found}")]
    WrongPrompt {
        /// Number of the line, counted from 1.
        line: u64,
        /// What should be there, around the first difference.
        expected: String,
        /// The text that the transcript holds there, around the first difference.
        found: String,
    },
    /// The session decides otherwise than is recorded: which prompt begins a run, whether a turn
    /// follows, or how a turn or a run is closed.
    #[error("line {line}: the session makes {expected}, recorded is {found}")]
    Decided {
        /// Number of the line, counted from 1.
        line: u64,
        /// What should be there, around the first difference; empty when it makes no further line.
        expected: String,
        /// What the transcript holds there, around the first difference.
        found: String,
    },
    /// What a run starts from cannot be read.
    #[error("line {line}: what the run starts from cannot be read")]
    NoSetup {
        /// The line of its `run_start`.
        line: u64,
    },
}

impl ReplayError {
    /// Returns the number of the line that it is about, counted from 1.
    pub fn line(&self) -> u64 {
        match self {
            Self::Differs { line, .. }
            | Self::Unrecorded { line, .. }
            | Self::NotStored { line, .. }
            | Self::WrongPrompt { line, .. }
            | Self::Decided { line, .. }
            | Self::NoSetup { line } => *line,
        }
    }
}
