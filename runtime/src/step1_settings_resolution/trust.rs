//! What a repository's own settings may say, by how far they are trusted.
//!
//! Apart from merging, because it is about who speaks and not about what wins. Whatever makes a
//! session stricter holds at once; what loosens it, or runs something, waits for trust.

use serde_json::Value;

use super::LayerText;
use crate::permission::Scope;

/// How far the files of a repository are trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Deny and ask rules hold; allow rules, directories, mode, hooks, variables and limits of
    /// ennead do not. For embedders and servers, unless they say otherwise.
    #[default]
    Untrusted,
    /// Hooks, variables and limits hold, too; allow rules, directories and mode do not. For `-p`.
    Headless,
    /// Everything holds.
    Trusted,
}

/// The layer without what it may not say. Layers of others than the repository come back as they
/// are, and so does a text that is no JSON object: merging refuses it whole.
pub fn restrict(layer: LayerText, trust: Trust) -> LayerText {
    let own = matches!(layer.scope, Scope::Project | Scope::Local);
    if !own || trust == Trust::Trusted {
        return layer;
    }
    let Ok(Value::Object(mut said)) = serde_json::from_str(&layer.text) else { return layer };
    if let Some(permissions) = said.get_mut("permissions").and_then(Value::as_object_mut) {
        for loosens in ["allow", "additionalDirectories", "defaultMode"] {
            permissions.remove(loosens);
        }
    }
    if trust == Trust::Untrusted {
        // Switching the user's hooks off may take a guard away.
        for runs_or_raises in ["hooks", "disableAllHooks", "env", "ennead"] {
            said.remove(runs_or_raises);
        }
    }
    LayerText { text: Value::Object(said).to_string(), ..layer }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(scope: Scope, trust: Trust, kept: &[&str]) {
        let said = json!({
            "permissions": {"allow": ["Bash"], "deny": ["Read"], "defaultMode": "plan"},
            "hooks": {}, "disableAllHooks": true, "env": {"A": "1"}, "ennead": {"maxTurns": 1000}, "model": "m",
        });
        let layer = LayerText { scope, source: "s".into(), text: said.to_string() };
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
        let all =
            ["allow", "defaultMode", "deny", "disableAllHooks", "ennead", "env", "hooks", "model"];
        let headless = ["deny", "disableAllHooks", "ennead", "env", "hooks", "model"];
        for own in [Scope::Project, Scope::Local] {
            check(own, Trust::Untrusted, &["deny", "model"]);
            check(own, Trust::Headless, &headless);
            check(own, Trust::Trusted, &all);
        }
        for other in [Scope::CliArg, Scope::Policy, Scope::User] {
            check(other, Trust::Untrusted, &all);
        }
    }
}
