//! Questions about calls, and what answers them.
//!
//! A question is bound to one action, by digest, to the rules and the mode under which it was asked,
//! and to a time. It is a record of the transcript, and so is the answer. The turn that asks takes the first answer that fits.

pub(crate) mod classifier;
mod counts;
mod error;
mod overrides;
pub mod rule_file;
mod rule_update;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use counts::QuestionCounts;
pub use error::{AnswerError, ModeError};
pub use overrides::PermissionOverrides;
pub use rule_update::{RuleDestination, RuleUpdate, UpdateAct};

use crate::{
    digest::Digest,
    ids::{AgentId, ApprovalId, EntryId, RunId, SessionId},
    permission::PermissionMode,
    step7_permission_gate::{
        CommandClass,
        rule::{BadRule, Rule},
    },
    time::Timestamp,
    tool::ToolCall,
};

/// Rules that one answer may add.
pub(crate) const MAX_RULES: usize = 8;

/// Bytes of all rules of one answer together, so that its record holds them.
pub(crate) const MAX_RULE_BYTES: usize = 1024;

/// A question about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Question {
    /// Names it. The same after the process was killed and the session opened again.
    pub id: ApprovalId,
    /// The session; for a sub-agent the top session of its tree.
    pub session: SessionId,
    /// The run whose call it is.
    pub run: RunId,
    /// The agent that asks: the sub-agents from the top of the tree down to it; empty for the session
    /// itself.
    pub agents: Arc<[AgentId]>,
    /// The call, with the input it would run with.
    pub call: ToolCall,
    /// The directory that the call would run in; absolute.
    pub cwd: Arc<str>,
    /// The digest of the exact action: see `action_digest`.
    pub digest: Digest,
    /// Of the rules and the mode under which it is asked.
    pub epoch: Digest,
    /// What a shell command needs at least; nothing for other calls.
    pub class: Option<CommandClass>,
    /// Why it is asked.
    pub reason: String,
    /// Rules that would settle it for the future, narrowest first.
    pub suggestions: Vec<String>,
    /// The path of the call if it is outside the workspace; absolute.
    pub blocked_path: Option<String>,
    /// When it was asked.
    pub asked_at: Timestamp,
    /// When answers stop being taken, by the wall clock.
    pub expires: Timestamp,
}

/// What an answer names, so that it cannot be taken for the answer to another question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct QuestionKey {
    /// The id of the question that is answered.
    pub id: ApprovalId,
    /// The action that was shown to the one who answers.
    pub digest: Digest,
    /// The rules and the mode that held then.
    pub epoch: Digest,
}

/// What somebody answered about a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PermissionAnswer {
    /// Whether the call may run.
    pub allowed: bool,
    /// In words; the model reads the reason of a no.
    pub reason: String,
    /// The input to run with instead, JSON text of an object. It is judged again: what is denied, or
    /// would have to be asked for another reason than a missing rule, does not run.
    pub input: Option<Arc<str>>,
    /// Rules that hold from now on, for the session and where else each says.
    pub rules: Vec<RuleUpdate>,
    /// With a no: the run ends, and no other call of the same answer of the model runs.
    pub interrupt: bool,
    /// With a yes to a plan: the mode that it is carried out in; `None`: the one before the mode `plan`. One
    /// that the session may not be put into does not count.
    pub mode: Option<PermissionMode>,
}

impl PermissionAnswer {
    /// Makes an answer that lets the call run.
    pub fn allow() -> Self {
        Self { allowed: true, ..Self::default() }
    }

    /// Refuses the call, for a reason that the model reads.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), ..Self::default() }
    }

    /// Adds a rule that holds from now on.
    #[must_use]
    pub fn with_rule(mut self, rule: RuleUpdate) -> Self {
        self.rules.push(rule);
        self
    }

    /// Sets the mode in which a plan is carried out.
    #[must_use]
    pub fn in_mode(self, mode: PermissionMode) -> Self {
        Self { mode: Some(mode), ..self }
    }

    /// Replaces the input of the call.
    #[must_use]
    pub fn with_input(self, input: impl Into<Arc<str>>) -> Self {
        Self { input: Some(input.into()), ..self }
    }

    /// Checks whether it can be taken at all, whatever it answers.
    ///
    /// # Errors
    ///
    /// [`AnswerError`], the first thing that is wrong.
    pub fn check(&self) -> Result<(), AnswerError> {
        if let Some(input) = &self.input {
            let is_object = serde_json::from_str::<Value>(input).is_ok_and(|it| it.is_object());
            if !self.allowed || !is_object {
                return Err(AnswerError::BadInput(
                    "it is not a JSON object of an allowed call".into(),
                ));
            }
        }
        if self.interrupt && self.allowed {
            return Err(AnswerError::AllowsAndInterrupts);
        }
        let n_bytes: usize = self.rules.iter().map(|it| it.rule.len()).sum();
        if MAX_RULES < self.rules.len() || MAX_RULE_BYTES < n_bytes {
            return Err(AnswerError::TooManyRules);
        }
        for update in &self.rules {
            match update.act {
                UpdateAct::Add | UpdateAct::Remove => drop(Rule::parse(&update.text())?),
                UpdateAct::AddDirectory | UpdateAct::RemoveDirectory if update.rule.is_empty() => {
                    return Err(AnswerError::BadRule(BadRule::NoTool(update.rule.clone())));
                }
                UpdateAct::Clear | UpdateAct::AddDirectory | UpdateAct::RemoveDirectory => {}
            }
            if update.rule.chars().any(char::is_control) {
                return Err(AnswerError::BadRule(BadRule::NoTool(update.rule.clone())));
            }
        }
        Ok(())
    }
}

/// Who or what ended a question. The codes are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AnsweredBy {
    /// A hook, which is asked before everybody else.
    Hook,
    /// The policy of the embedder.
    Policy,
    /// The model that decides in the mode `auto`.
    Classifier,
    /// A surface of the session above, for a question of a sub-agent.
    Bubble,
    /// A person or a program that was shown the question.
    Surface,
    /// The time ran out without an answer.
    Expiry,
    /// The run was ended from outside before an answer came.
    Interrupt,
    /// The session has no handler that could answer.
    Nobody,
    /// Rules or mode have changed, and the call is judged anew. Sent as an event, not recorded.
    Change,
}

impl AnsweredBy {
    /// Returns the stable code.
    pub fn code(self) -> &'static str {
        match self {
            Self::Hook => "hook",
            Self::Policy => "policy",
            Self::Classifier => "classifier",
            Self::Bubble => "bubble",
            Self::Surface => "surface",
            Self::Expiry => "expiry",
            Self::Interrupt => "interrupt",
            Self::Nobody => "nobody",
            Self::Change => "change",
        }
    }

    /// Returns whether the question was answered, in contrast to one that ended without an answer.
    pub(crate) fn is_answer(self) -> bool {
        matches!(self, Self::Hook | Self::Policy | Self::Classifier | Self::Bubble | Self::Surface)
    }
}

/// An answer, and where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenAnswer {
    /// What the call may do, as the answer has it.
    pub answer: PermissionAnswer,
    /// The handler that gave the answer.
    pub by: AnsweredBy,
    /// The name of the surface, where one answered.
    pub surface: Option<String>,
}

/// What a policy says about a question before anybody else is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolicyVerdict {
    /// The call may run.
    Allow {
        /// In words, for the record.
        reason: String,
    },
    /// The call may not run.
    Deny {
        /// In words; the model reads it.
        reason: String,
    },
    /// The policy has nothing to say: the next handler is asked.
    Abstain,
}

impl Question {
    /// Returns what an answer to it names.
    pub fn key(&self) -> QuestionKey {
        QuestionKey { id: self.id.clone(), digest: self.digest, epoch: self.epoch }
    }

    /// Checks whether an answer with this key fits, at this time.
    ///
    /// # Errors
    ///
    /// [`AnswerError`] with what does not fit.
    pub fn accepts(&self, key: &QuestionKey, now: Timestamp) -> Result<(), AnswerError> {
        if key.id != self.id {
            return Err(AnswerError::Unknown(key.id.clone()));
        }
        if key.digest != self.digest {
            return Err(AnswerError::OtherAction { answered: key.digest, asked: self.digest });
        }
        if key.epoch != self.epoch {
            return Err(AnswerError::OldEpoch);
        }
        if now < self.expires { Ok(()) } else { Err(AnswerError::Expired(self.id.clone())) }
    }
}

/// Returns the digest of an action: tool, input and directory as canonical JSON, keys in order and without blanks. An
/// input that is not JSON counts by its text.
pub(crate) fn action_digest(call: &ToolCall, cwd: &str) -> Digest {
    let input = serde_json::from_str(&call.input).unwrap_or_else(|_| Value::from(&*call.input));
    let action = serde_json::json!({ "cwd": cwd, "input": input, "tool": call.name.as_str() });
    Digest::of(action.to_string().as_bytes())
}

/// Returns the name of a question: the same whenever the same action of the same answer of the model is asked about, in
/// whatever process.
pub(crate) fn question_id(
    session: &SessionId,
    answer: Option<&EntryId>,
    action: Digest,
) -> ApprovalId {
    let answer = answer.map_or("", EntryId::as_str);
    let of = [session.as_str(), answer].map(|it| Digest::of(it.as_bytes()));
    ApprovalId::new(format!("q_{}", of[0].chain(of[1]).chain(action)))
}

/// Checks whether a session may be put into this mode. `has_leave`: it was opened with leave to bypass permissions;
/// `off`: the modes that settings switch off.
///
/// # Errors
///
/// [`ModeError`] with the reason.
pub fn may_change_to(
    mode: PermissionMode,
    has_leave: bool,
    off: &[PermissionMode],
) -> Result<(), ModeError> {
    match mode {
        PermissionMode::Bubble => Err(ModeError::OnlyForAgents),
        _ if off.contains(&mode) => Err(ModeError::SwitchedOff),
        PermissionMode::BypassPermissions if !has_leave => Err(ModeError::NoLeave),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
