//! Changes of rules and directories that an answer makes.

use serde::{Deserialize, Serialize};

use crate::permission::{RuleKind, RuleText, Scope};

/// What an answer does with a rule or a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum UpdateAct {
    /// Adds the rule to those that hold.
    #[default]
    Add,
    /// Takes the rule away.
    Remove,
    /// Takes away every rule of the kind.
    Clear,
    /// Adds the directory to those that the session works in.
    AddDirectory,
    /// Takes the directory away from those.
    RemoveDirectory,
}

impl UpdateAct {
    fn is_add(&self) -> bool {
        *self == Self::Add
    }
}

/// A change that an answer makes to the rules and directories of one place, and of the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RuleUpdate {
    /// What the update does with its rule.
    #[serde(default, skip_serializing_if = "UpdateAct::is_add")]
    pub act: UpdateAct,
    /// What the rule does with a call that it matches. Means nothing for a directory.
    pub kind: RuleKind,
    /// The rule as in settings files, for example `Bash(npm test *)`; the path of a directory; empty where all
    /// rules are taken away.
    pub rule: String,
    /// Where it is kept in addition to the session. What is taken away is taken from there.
    pub destination: RuleDestination,
}

impl RuleUpdate {
    /// Allows what `rule` matches for the rest of the session.
    pub fn allow(rule: impl Into<String>) -> Self {
        let (kind, destination) = (RuleKind::Allow, RuleDestination::Session);
        Self { act: UpdateAct::Add, kind, rule: rule.into(), destination }
    }

    /// Asks about what `rule` matches for the rest of the session.
    pub fn ask(rule: impl Into<String>) -> Self {
        Self { kind: RuleKind::Ask, ..Self::allow(rule) }
    }

    /// Denies what `rule` matches for the rest of the session.
    pub fn deny(rule: impl Into<String>) -> Self {
        Self { kind: RuleKind::Deny, ..Self::allow(rule) }
    }

    /// Adds a directory to those that the session works in.
    pub fn directory(path: impl Into<String>) -> Self {
        Self::allow(path).with_act(UpdateAct::AddDirectory)
    }

    /// Takes the same rule or directory away.
    #[must_use]
    pub fn removed(self) -> Self {
        let act = match self.act {
            UpdateAct::AddDirectory | UpdateAct::RemoveDirectory => UpdateAct::RemoveDirectory,
            UpdateAct::Add | UpdateAct::Remove | UpdateAct::Clear => UpdateAct::Remove,
        };
        self.with_act(act)
    }

    /// Takes all rules of the same kind away.
    #[must_use]
    pub fn cleared(self) -> Self {
        Self { rule: String::new(), ..self.with_act(UpdateAct::Clear) }
    }

    /// Returns the same rule or directory, with another act.
    #[must_use]
    pub(crate) fn with_act(self, act: UpdateAct) -> Self {
        Self { act, ..self }
    }

    /// Returns the update with a file in which the rule is kept as well.
    #[must_use]
    pub fn kept_in(self, destination: RuleDestination) -> Self {
        Self { destination, ..self }
    }

    /// Returns the rule as one of the session.
    pub fn text(&self) -> RuleText {
        RuleText { kind: self.kind, scope: Scope::Session, text: self.rule.clone() }
    }
}

/// Where a rule is kept that an answer adds. Wire names as the SDKs have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RuleDestination {
    /// Nowhere: it is forgotten with the session.
    Session,
    /// `.claude/settings.local.json` of the working directory.
    LocalSettings,
    /// `.claude/settings.json` of the working directory.
    ProjectSettings,
    /// `settings.json` of the user.
    UserSettings,
}

impl RuleDestination {
    /// Returns the scope of the rules that settings have from there.
    pub fn scope(self) -> Scope {
        match self {
            Self::Session => Scope::Session,
            Self::LocalSettings => Scope::Local,
            Self::ProjectSettings => Scope::Project,
            Self::UserSettings => Scope::User,
        }
    }
}
