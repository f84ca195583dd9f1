//! What permission rules and modes are before anything is compiled or decided: scope, kind, text, mode.

use serde::{Deserialize, Serialize};

/// Where a layer or a rule comes from. The order is the order in which rules of one kind are
/// looked at: the first match names the decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Flags of the command, options of the embedder.
    CliArg,
    /// Answers of the session under way; forgotten with it.
    Session,
    /// `.claude/settings.local.json` of the workspace.
    Local,
    /// `.claude/settings.json` of the working directory.
    Project,
    /// Managed by an organisation.
    Policy,
    /// `settings.json` of the user.
    User,
}

impl Scope {
    /// Returns whether it is a file of the repository that is worked in.
    pub fn is_of_repository(self) -> bool {
        matches!(self, Self::Project | Self::Local)
    }

    /// Returns the name used in reasons and transcripts.
    pub fn name(self) -> &'static str {
        match self {
            Scope::CliArg => "cli_arg",
            Scope::Session => "session",
            Scope::Local => "local",
            Scope::Project => "project",
            Scope::Policy => "policy",
            Scope::User => "user",
        }
    }
}

/// One rule as written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RuleText {
    /// What the rule does with a call that it matches.
    pub kind: RuleKind,
    /// Where it comes from.
    pub scope: Scope,
    /// The rule as it is written, for example `Bash(git status)`.
    pub text: String,
}

impl RuleText {
    /// Makes a rule of its text, `Tool` or `Tool(specifier)`, which need not be one that can be read.
    pub fn new(kind: RuleKind, scope: Scope, text: impl Into<String>) -> Self {
        Self { kind, scope, text: text.into() }
    }
}

/// What a rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RuleKind {
    /// The rule refuses the call.
    Deny,
    /// The rule has the approver asked.
    Ask,
    /// The rule lets the call pass.
    Allow,
}

/// How the gate behaves where no rule decides. Wire names as in settings files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum PermissionMode {
    /// Nothing is changed until a plan is approved.
    Plan,
    /// Reads inside the workspace pass, the rest is asked.
    #[default]
    #[serde(alias = "manual")]
    Default,
    /// File changes inside the workspace pass, too.
    AcceptEdits,
    /// What would be asked a model decides, as far as a rule could; a person decides the rest.
    Auto,
    /// What would be asked is denied.
    DontAsk,
    /// What would be asked passes, but for safety-critical checks.
    BypassPermissions,
    /// What would be asked is asked of the parent.
    Bubble,
}
