//! Step 7: each call is allowed or denied, by four stages in order.
//!
//! 1 pre-filter, 2 PreToolUse hooks, 3 rules and mode, 4 permission handler. Deny wins over ask,
//! ask over mode, mode over allow, at every stage; whatever cannot be asked is denied. What comes
//! out is a [`Decision`] with its reason, and for an allowed call a [`Permit`].

pub(crate) mod stage1_prefilter;
mod stage2_pre_tool_use_hooks;
mod stage3_rule_evaluation;
pub(crate) mod stage4_permission_handler;

pub mod gate;
pub mod hook_condition;
pub mod permit;
pub mod setup;

mod call_input;
pub(crate) mod command;
pub mod conformance;
pub mod isolation;
mod judgement;
mod mode;
pub mod path_resolution;
pub mod path_rule;
pub(crate) mod protected;
pub mod rule;
mod rule_book;
pub mod shell;
pub mod transcripts;
mod web_hosts;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use crate::approval::PermissionAnswer;
use crate::permission::Scope;
pub(crate) use command::LinksSeen;
pub use command::{CommandClass, Listing, Look};
pub use gate::{Gate, GateStep};
pub use judgement::{CommandOrder, Judged};
pub use permit::{Permit, PermitError};
pub use setup::{GateSetup, Handler, Places};
pub(crate) use stage1_prefilter::denies_agent;
pub use stage1_prefilter::offered;
pub(crate) use stage4_permission_handler::no_handler_reason;
#[doc(hidden)]
pub use web_hosts::host_of_rules;

/// What was decided about one call, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Whether the call may run.
    pub allowed: bool,
    /// The stage that decided.
    pub stage: GateStage,
    /// The rule that decided, if one did.
    pub rule: Option<RuleRef>,
    /// In words; a denied call's reason is what the model reads.
    pub reason: String,
    /// What a shell command needs at least; nothing for other calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<CommandClass>,
}

/// A rule and where it is. As text `scope:rule`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleRef {
    /// Where it comes from.
    pub scope: Scope,
    /// The rule, as it was written.
    pub text: String,
}

impl fmt::Display for RuleRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.scope.name(), self.text)
    }
}

/// The four stages of the gate, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateStage {
    /// 1: denied tools are not even offered.
    PreFilter,
    /// Stage 2: hooks on `PreToolUse`.
    PreToolUseHooks,
    /// 3: rules, then the mode.
    RuleEvaluation,
    /// 4: the one that can answer.
    PermissionHandler,
}

/// A path of a call, as written and as the kernel would reach it. Found out by who can look at the
/// file system; the rules only compare.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResolvedPath {
    /// As the model wrote it.
    pub given: String,
    /// Absolute, `.` and `..` and doubled slashes removed by text.
    pub lexical: String,
    /// Absolute, links followed; parts that do not exist yet are appended.
    pub real: String,
    /// Every path passed through on the way, `lexical` and `real` included, without repetitions.
    pub passed: Vec<String>,
    /// The kind of thing that `real` names.
    pub kind: PathKind,
}

impl ResolvedPath {
    /// Makes a path that could not be followed: wherever it leads is as it was written.
    pub fn unresolved(given: String, kind: PathKind) -> Self {
        let (lexical, real, passed) = (given.clone(), given.clone(), vec![given.clone()]);
        Self { given, lexical, real, passed, kind }
    }
}

/// What lies at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathKind {
    /// Nothing exists at the path.
    Missing,
    /// The path names a regular file.
    File,
    /// The path names a directory.
    Directory,
    /// A device, FIFO or socket; denied in every mode.
    Special,
    /// An empty path, a NUL inside, or a ring of links; denied in every mode.
    Invalid,
}
