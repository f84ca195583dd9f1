//! What a repository's own settings may say, by how far they are trusted.
//!
//! Merging decides which value wins; this module decides which values count at all. Whatever makes
//! a session stricter holds at once; what loosens it, or runs something, waits for trust.

pub mod variables;

use serde_json::{Map, Value};

use super::{LayerText, code_edit, layer::snake};
use crate::{hook::ONLY_RESTRICTS, permission::Scope};

/// How far the files of a repository are trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Nothing of the repository starts, and nothing of it allows anything: deny and ask rules hold;
    /// allow rules, directories, mode, hooks, servers, variables and limits of ennead do not, but for the number of
    /// file changes that pass without a question, which can only become smaller.
    #[default]
    Untrusted,
    /// Hooks and servers start, because the caller asked for these files by name. A hook can deny, ask
    /// and add context; it cannot allow a call or change its input. Limits hold, and so do a few
    /// harmless variables (see [`variables::is_harmless`]). Allow rules, directories and mode do not.
    Headless,
    /// The user trusts the workspace: all its settings apply.
    Trusted,
}

/// Which settings files are read next to those of the organisation, which are always read. All of
/// them by default. Instruction files go with them: those of the user with the first,
/// `CLAUDE.md`, `AGENTS.md` and rules with the second, `CLAUDE.local.md` with the third.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettingSources {
    /// `settings.json` of the user.
    pub user: bool,
    /// `.claude/settings.json` of the working directory.
    pub project: bool,
    /// `.claude/settings.local.json` of the working directory.
    pub local: bool,
}

impl Default for SettingSources {
    fn default() -> Self {
        Self { user: true, project: true, local: true }
    }
}

/// A list that names a source which does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no source of settings `{0}`; there are user, project and local")]
pub struct UnknownSource(pub String);

impl SettingSources {
    /// No source of settings is read.
    pub const NONE: Self = Self { user: false, project: false, local: false };

    /// Reads a list such as `user,project`. An empty list names none.
    ///
    /// # Errors
    ///
    /// [`UnknownSource`] for the first name that is none of the three.
    pub fn parse(list: &str) -> Result<Self, UnknownSource> {
        let mut sources = Self::NONE;
        for name in list.split(',').map(str::trim).filter(|it| !it.is_empty()) {
            match name {
                "user" => sources.user = true,
                "project" => sources.project = true,
                "local" => sources.local = true,
                other => return Err(UnknownSource(other.to_owned())),
            }
        }
        Ok(sources)
    }

    /// Returns whether files of this scope are read.
    pub fn reads(self, scope: Scope) -> bool {
        match scope {
            Scope::User => self.user,
            Scope::Project => self.project,
            Scope::Local => self.local,
            Scope::CliArg | Scope::Session | Scope::Policy => true,
        }
    }

    /// Returns whether any file that comes with a repository is read.
    pub fn reads_any_of_repository(self) -> bool {
        self.project || self.local
    }
}

/// Removes from a layer what it may not set. Layers of others than the repository are returned as they are, and so is a
/// text that is not a JSON object: merging refuses it whole.
pub fn restrict(layer: LayerText, trust: Trust) -> LayerText {
    let own = layer.scope.is_of_repository();
    if !own || trust == Trust::Trusted {
        return layer;
    }
    let Ok(Value::Object(mut object)) = serde_json::from_str(&layer.text) else { return layer };
    if let Some(permissions) = object.get_mut("permissions").and_then(Value::as_object_mut) {
        for loosens in ["allow", "additionalDirectories", "defaultMode"] {
            permissions.remove(loosens);
        }
    }
    // Switching the user's hooks off, or leaving out the user's instructions, may take a guard away; where
    // plans lie, files are written.
    for guard in ["disableAllHooks", "claudeMdExcludes", "plansDirectory"] {
        object.remove(guard);
    }
    match trust {
        Trust::Untrusted => {
            for runs_or_raises in ["hooks", "env"] {
                object.remove(runs_or_raises);
            }
            // Of these keys only the ones that can but tighten.
            let own = object.remove("ennead");
            if let Some(Value::Object(mut own)) = own {
                own.retain(|name, _| snake(name) == code_edit::GROUP);
                if !own.is_empty() {
                    object.insert("ennead".into(), own.into());
                }
            }
        }
        Trust::Headless | Trust::Trusted => restrain(&mut object),
    }
    LayerText { text: Value::Object(object).to_string(), ..layer }
}

/// Leaves hooks that only restrict, variables that are harmless, and no switch that opens a guard.
fn restrain(object: &mut Map<String, Value>) {
    if let Some(env) = object.get_mut("env").and_then(Value::as_object_mut) {
        env.retain(|name, value| value.as_str().is_some_and(|it| variables::is_harmless(name, it)));
    }
    for group in ["hooks", "ennead"] {
        if let Some(group) = object.get_mut(group).and_then(Value::as_object_mut) {
            // That a failing guard denies is the user's to switch off.
            group.retain(|name, value| {
                !matches!(name.as_str(), "fail_closed" | "failClosed" | "FAIL_CLOSED")
                    || *value == Value::Bool(true)
            });
        }
    }
    let events = object.get_mut("hooks").and_then(Value::as_object_mut);
    let groups = events.into_iter().flat_map(Map::values_mut).filter_map(Value::as_array_mut);
    let lists = groups.flatten().filter_map(|it| it.get_mut("hooks")?.as_array_mut());
    for handler in lists.flatten().filter_map(Value::as_object_mut) {
        handler.insert(ONLY_RESTRICTS.into(), true.into());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(scope: Scope, trust: Trust, kept: &[&str]) {
        let object = json!({
            "permissions": {"allow": ["Bash"], "deny": ["Read"], "defaultMode": "plan"},
            "hooks": {}, "disableAllHooks": true, "claudeMdExcludes": ["**"], "env": {"A": "1"}, "ennead": {"maxTurns": 1000}, "model": "m",
            "plansDirectory": "plans",
        });
        let layer = LayerText { scope, source: "s".into(), text: object.to_string() };
        let left: Value = serde_json::from_str(&restrict(layer, trust).text).unwrap();
        let mut found: Vec<&str> = left.as_object().unwrap().keys().map(String::as_str).collect();
        found.retain(|it| *it != "permissions");
        let rules = left["permissions"].as_object().unwrap();
        found.extend(rules.keys().map(String::as_str));
        found.sort_unstable();
        assert_eq!(found, kept);
    }

    // REQ: TRN-4, PRM-2
    #[test]
    fn untrusted_repository_can_make_a_session_stricter_and_no_more() {
        let all = [
            "allow",
            "claudeMdExcludes",
            "defaultMode",
            "deny",
            "disableAllHooks",
            "ennead",
            "env",
            "hooks",
            "model",
            "plansDirectory",
        ];
        let headless = ["deny", "ennead", "env", "hooks", "model"];
        for own in [Scope::Project, Scope::Local] {
            check(own, Trust::Untrusted, &["deny", "model"]);
            check(own, Trust::Headless, &headless);
            check(own, Trust::Trusted, &all);
        }
        for other in [Scope::CliArg, Scope::Policy, Scope::User] {
            check(other, Trust::Untrusted, &all);
        }
    }

    fn restricted(object: &Value, trust: Trust) -> Value {
        let (scope, source) = (Scope::Project, "s".into());
        let layer = LayerText { scope, source, text: object.to_string() };
        serde_json::from_str(&restrict(layer, trust).text).unwrap()
    }

    // REQ: HKS-1
    #[test]
    fn hooks_of_a_repository_that_is_not_trusted_only_restrict_whatever_they_say_of_themselves() {
        let hook = json!({"type": "command", "command": "c", "onlyRestricts": false});
        let object = json!({"hooks": {
            "PreToolUse": [{"matcher": "A", "hooks": [hook, "no hook"]}, "no group"],
            "Stop": {"no": "list"}, "fail_closed": false,
        }});
        let found = restricted(&object, Trust::Headless);
        let hooks = &found["hooks"];
        assert_eq!(hooks["PreToolUse"][0]["hooks"][0]["onlyRestricts"], true);
        assert_eq!(hooks.get("fail_closed"), None, "a guard stays closed");
        assert_eq!(restricted(&object, Trust::Trusted), object);
        let closed = json!({"hooks": {"fail_closed": true}, "ennead": {"failClosed": true}});
        assert_eq!(restricted(&closed, Trust::Headless), closed);
    }

    // REQ: PRM-2
    #[test]
    fn variables_of_a_repository_wait_for_trust_unless_they_are_harmless() {
        let object =
            json!({"env": {"CI": "1", "A": "1", "BASH_ENV": "x", "TZ": "/x", "NO_COLOR": 1}});
        assert_eq!(restricted(&object, Trust::Headless), json!({"env": {"CI": "1"}}));
        assert_eq!(restricted(&object, Trust::Untrusted), json!({}));
        assert_eq!(restricted(&object, Trust::Trusted), object);
    }

    #[test]
    fn sources_are_named_with_commas() {
        let of = |user, project, local| Ok(SettingSources { user, project, local });
        assert_eq!(SettingSources::parse("user, local"), of(true, false, true));
        assert_eq!(SettingSources::parse("project"), of(false, true, false));
        assert_eq!(SettingSources::parse(""), Ok(SettingSources::NONE));
        assert_eq!(SettingSources::parse("user,all"), Err(UnknownSource("all".into())));
        assert!(SettingSources::NONE.reads(Scope::Policy));
        assert!(SettingSources::NONE.reads(Scope::CliArg));
        assert!(!SettingSources::NONE.reads_any_of_repository());
    }
}
