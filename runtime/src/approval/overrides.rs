//! What was changed of a session's permissions since it was opened: its mode, and rules and directories of answers.
//!
//! Known from records alone, so that a session, its turns and a replay have the same. Not restored
//! when the session is opened again (PRM-6).

use serde_json::{Map, Value, json};

use super::{RuleUpdate, UpdateAct};
use crate::{
    permission::{PermissionMode, RuleKind, Scope},
    step1_settings_resolution::{LayerText, Settings},
    transcript::entry::RecordKind,
};

/// Mode, rules and directories that replace or join those of the settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PermissionOverrides {
    /// The mode that somebody put the session into.
    pub mode: Option<PermissionMode>,
    /// The one that it replaced by the mode `plan`; `None`: that of the settings.
    before_plan: Option<PermissionMode>,
    /// What answers changed, in the order in which it came, without what later ones made void.
    updates: Vec<RuleUpdate>,
}

impl PermissionOverrides {
    /// Returns whether nothing is overridden.
    pub fn is_empty(&self) -> bool {
        self.mode.is_none() && self.updates.is_empty()
    }

    /// Applies what a record changes.
    pub fn note(&mut self, what: &RecordKind) {
        match what {
            RecordKind::Mode(it) => self.set_mode(it.mode),
            RecordKind::Approval { rules, .. } => self.add(rules),
            _ => {}
        }
    }

    /// Puts the session into a mode.
    pub fn set_mode(&mut self, mode: PermissionMode) {
        if mode == PermissionMode::Plan && self.mode != Some(mode) {
            self.before_plan = self.mode;
        }
        self.mode = Some(mode);
    }

    /// Puts a session that has not begun into a mode, of which the last one alone is recorded.
    pub(crate) fn begin_in(&mut self, mode: PermissionMode) {
        (self.mode, self.before_plan) = (Some(mode), None);
    }

    /// The mode that holds when a plan is approved: the one before, and never `plan`.
    pub(crate) fn mode_after_plan(&self, settings: &Settings) -> PermissionMode {
        let permissions = &settings.permissions;
        let before = self.before_plan.unwrap_or(permissions.mode);
        let holds = before != PermissionMode::Plan && !permissions.off.contains(&before);
        if holds { before } else { PermissionMode::Default }
    }

    /// Applies what an answer changes. A rule that is there already is not added again.
    pub fn add(&mut self, updates: &[RuleUpdate]) {
        for update in updates {
            self.updates.retain(|it| !is_void(it, update));
            self.updates.push(update.clone());
        }
    }

    /// Applies these overrides to the settings. A mode that they switch off does not hold, and no answer takes away
    /// what a policy or the caller sets.
    #[must_use]
    pub fn apply_to(&self, settings: &Settings) -> Settings {
        let mut settings = settings.clone();
        let permissions = &mut settings.permissions;
        if let Some(mode) = self.mode.filter(|it| !permissions.off.contains(it)) {
            permissions.mode = mode;
        }
        for update in &self.updates {
            let (rules, scope) = (&mut permissions.rules, update.destination.scope());
            match update.act {
                UpdateAct::Remove => rules.retain(|it| {
                    it.scope != scope || it.kind != update.kind || it.text != update.rule
                }),
                UpdateAct::Clear => rules.retain(|it| it.scope != scope || it.kind != update.kind),
                UpdateAct::Add | UpdateAct::AddDirectory | UpdateAct::RemoveDirectory => {}
            }
        }
        // What a later change took away of these is not there any more.
        permissions.rules.extend(self.of(UpdateAct::Add).map(RuleUpdate::text));
        self.move_directories(&mut permissions.additional_directories);
        permissions.rules.sort_by_key(|it| it.scope);
        settings
    }

    /// Adds directories to these, and takes others away.
    pub(crate) fn move_directories(&self, directories: &mut Vec<String>) {
        for update in &self.updates {
            match update.act {
                UpdateAct::AddDirectory if !directories.contains(&update.rule) => {
                    directories.push(update.rule.clone());
                }
                UpdateAct::RemoveDirectory => directories.retain(|it| *it != update.rule),
                _ => {}
            }
        }
    }

    fn of(&self, act: UpdateAct) -> impl Iterator<Item = &RuleUpdate> {
        self.updates.iter().filter(move |it| it.act == act)
    }

    /// Returns these overrides as a layer of settings, for sub-agents, which have their parent's. `None` if there are
    /// none.
    pub fn layer(&self) -> Option<LayerText> {
        if self.is_empty() {
            return None;
        }
        let mut permissions = Map::new();
        let directories: Vec<Value> =
            self.of(UpdateAct::AddDirectory).map(|it| Value::from(it.rule.as_str())).collect();
        if !directories.is_empty() {
            permissions.insert("additionalDirectories".into(), directories.into());
        }
        if let Some(mode) = self.mode {
            permissions.insert("defaultMode".into(), json!(mode));
        }
        for (kind, key) in
            [(RuleKind::Deny, "deny"), (RuleKind::Ask, "ask"), (RuleKind::Allow, "allow")]
        {
            let rules = self.of(UpdateAct::Add).filter(|it| it.kind == kind);
            let rules: Vec<Value> = rules.map(|it| Value::from(it.rule.as_str())).collect();
            if !rules.is_empty() {
                permissions.insert(key.into(), rules.into());
            }
        }
        let text = json!({ "permissions": permissions }).to_string();
        Some(LayerText { scope: Scope::Session, source: "session".into(), text })
    }
}

/// Whether an earlier change has no more effect after a later one.
fn is_void(earlier: &RuleUpdate, later: &RuleUpdate) -> bool {
    use UpdateAct::{Add, AddDirectory, Clear, Remove, RemoveDirectory};
    let is_same = earlier.rule == later.rule && earlier.destination == later.destination;
    match (earlier.act, later.act) {
        (Add | Remove, Add | Remove) => is_same && earlier.kind == later.kind,
        (Add | Remove | Clear, Clear) => {
            earlier.kind == later.kind && earlier.destination == later.destination
        }
        (AddDirectory | RemoveDirectory, AddDirectory | RemoveDirectory) => is_same,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{approval::RuleDestination, permission::RuleText};

    fn texts(overrides: &PermissionOverrides, settings: &Settings) -> Vec<String> {
        let rules = overrides.apply_to(settings).permissions.rules;
        let mut texts: Vec<_> =
            rules.iter().map(|it| format!("{:?} {}", it.kind, it.text)).collect();
        texts.sort();
        texts
    }

    // REQ: PRM-9
    #[test]
    fn rule_of_an_answer_is_taken_away_and_replaced_in_its_place_alone() {
        let rule = |scope, text: &str| RuleText { kind: RuleKind::Allow, scope, text: text.into() };
        let mut settings = Settings::default();
        settings.permissions.rules =
            vec![rule(Scope::Policy, "Bash(a)"), rule(Scope::Local, "Bash(a)")];
        settings.permissions.additional_directories = vec!["/more".into()];
        let mut overrides = PermissionOverrides::default();
        overrides.add(&[RuleUpdate::allow("Bash(b)"), RuleUpdate::allow("Bash(c)")]);
        overrides.add(&[RuleUpdate::allow("Bash(b)").with_act(UpdateAct::Remove)]);
        let all = ["Allow Bash(a)", "Allow Bash(a)", "Allow Bash(c)"];
        assert_eq!(texts(&overrides, &settings), all);
        // A rule of a file is taken away where that file is named, and a policy is not a file.
        let local = RuleUpdate::allow("Bash(a)").kept_in(RuleDestination::LocalSettings);
        overrides.add(&[local.clone().with_act(UpdateAct::Remove)]);
        assert_eq!(texts(&overrides, &settings), ["Allow Bash(a)", "Allow Bash(c)"]);
        overrides.add(&[local]);
        assert_eq!(texts(&overrides, &settings).len(), 4, "in the file and in the session");
        // To replace is to take all away and to add.
        let clear = RuleUpdate::allow("").with_act(UpdateAct::Clear);
        overrides.add(&[clear, RuleUpdate::allow("Bash(d)")]);
        assert!(texts(&overrides, &settings).contains(&"Allow Bash(d)".to_owned()));
        assert!(!texts(&overrides, &settings).contains(&"Allow Bash(c)".to_owned()));
        let directory = |path: &str, act| RuleUpdate::allow(path).with_act(act);
        overrides.add(&[
            directory("/more", UpdateAct::RemoveDirectory),
            directory("/other", UpdateAct::AddDirectory),
        ]);
        assert_eq!(overrides.apply_to(&settings).permissions.additional_directories, ["/other"]);
    }
}
