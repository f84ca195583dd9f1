//! Why an answer is not taken, and why a mode is not changed.

use super::{MAX_RULE_BYTES, MAX_RULES};
use crate::{digest::Digest, ids::ApprovalId, step7_permission_gate::rule::BadRule};

/// Why an answer was not taken. The question is as it was. The codes are stable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// No such question was ever open here, or too long ago.
    #[error("there is no question {0}")]
    Unknown(ApprovalId),
    /// Another answer came first, or the question ended without one.
    #[error("the question {0} is answered already")]
    Answered(ApprovalId),
    /// The answer is about another action than the one that is asked about.
    #[error("the answer is for the action {answered}, the question is about {asked}")]
    OtherAction {
        /// The digest in the answer.
        answered: Digest,
        /// The digest of the question.
        asked: Digest,
    },
    /// Rules or mode have changed since the question was shown.
    #[error("rules or mode have changed since the question was shown; look at it again")]
    OldEpoch,
    /// Its time is over.
    #[error("the question {0} has expired")]
    Expired(ApprovalId),
    /// The changed input cannot be used.
    #[error("the changed input cannot be used: {0}")]
    BadInput(String),
    /// A rule cannot be read.
    #[error(transparent)]
    BadRule(#[from] BadRule),
    /// More rules than an answer may add.
    #[error("an answer adds at most {MAX_RULES} rules of {MAX_RULE_BYTES} bytes together")]
    TooManyRules,
    /// An allowed call cannot end the run.
    #[error("an answer that allows a call cannot interrupt the run")]
    AllowsAndInterrupts,
    /// A rule could not be kept in its file.
    #[error("the rule is not kept: {0}")]
    RuleNotKept(String),
    /// The session has ended.
    #[error("the session has ended")]
    Ended,
}

impl AnswerError {
    /// Returns the stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "unknown",
            Self::Answered(_) => "answered",
            Self::OtherAction { .. } => "other_action",
            Self::OldEpoch => "old_epoch",
            Self::Expired(_) => "expired",
            Self::BadInput(_) => "bad_input",
            Self::BadRule(_) => "bad_rule",
            Self::TooManyRules => "too_many_rules",
            Self::AllowsAndInterrupts => "allows_and_interrupts",
            Self::RuleNotKept(_) => "rule_not_kept",
            Self::Ended => "ended",
        }
    }
}

/// Why a session does not change its mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModeError {
    /// The session was opened without leave to enter this mode.
    #[error("the session was not opened with leave to bypass permissions")]
    NoLeave,
    /// Settings switch the mode off.
    #[error("the settings switch this mode off")]
    SwitchedOff,
    /// The mode is for sub-agents.
    #[error("the mode `bubble` is for sub-agents")]
    OnlyForAgents,
    /// The session has ended.
    #[error("the session has ended")]
    Ended,
}
