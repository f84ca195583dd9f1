//! What was changed of a session's permissions since it was opened: its mode, and rules of answers.
//!
//! Known from records alone, so that a session, its turns and a replay have the same. Not restored
//! when the session is opened again (PRM-6).

use serde_json::{Map, Value, json};

use super::RuleUpdate;
use crate::{
    permission::{PermissionMode, RuleKind, RuleText, Scope},
    step1_settings_resolution::{LayerText, Settings},
    transcript::entry::RecordKind,
};

/// Mode and rules that replace or join those of the settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// The mode that somebody put the session into.
    pub mode: Option<PermissionMode>,
    /// Rules that answers added, in the order in which they came.
    pub rules: Vec<RuleText>,
}

impl Overrides {
    /// Whether the settings hold as they are.
    pub fn is_empty(&self) -> bool {
        self.mode.is_none() && self.rules.is_empty()
    }

    /// Takes in what a record changes.
    pub fn note(&mut self, what: &RecordKind) {
        match what {
            RecordKind::Mode { mode } => self.mode = Some(*mode),
            RecordKind::Approval { rules, .. } => self.add(rules),
            _ => {}
        }
    }

    /// Adds rules; one that is there already is not added again.
    pub fn add(&mut self, rules: &[RuleUpdate]) {
        for rule in rules.iter().map(RuleUpdate::text) {
            if !self.rules.contains(&rule) {
                self.rules.push(rule);
            }
        }
    }

    /// The settings with these in force. A mode that they switch off does not hold.
    #[must_use]
    pub fn over(&self, settings: &Settings) -> Settings {
        let mut settings = settings.clone();
        let permissions = &mut settings.permissions;
        if let Some(mode) = self.mode.filter(|it| !permissions.off.contains(it)) {
            permissions.mode = mode;
        }
        permissions.rules.extend(self.rules.iter().cloned());
        permissions.rules.sort_by_key(|it| it.scope);
        settings
    }

    /// The same as a layer of settings, for sub-agents, which have their parent's.
    pub fn layer(&self) -> Option<LayerText> {
        if self.is_empty() {
            return None;
        }
        let mut permissions = Map::new();
        if let Some(mode) = self.mode {
            permissions.insert("defaultMode".into(), json!(mode));
        }
        for (kind, key) in
            [(RuleKind::Deny, "deny"), (RuleKind::Ask, "ask"), (RuleKind::Allow, "allow")]
        {
            let rules = self.rules.iter().filter(|it| it.kind == kind);
            let rules: Vec<Value> = rules.map(|it| Value::from(it.text.as_str())).collect();
            if !rules.is_empty() {
                permissions.insert(key.into(), rules.into());
            }
        }
        let text = json!({ "permissions": permissions }).to_string();
        Some(LayerText { scope: Scope::Session, source: "session".into(), text })
    }
}
