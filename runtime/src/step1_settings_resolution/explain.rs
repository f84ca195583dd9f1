//! Where each value of the settings comes from.
//!
//! Walks the layers as merging does, down to single values, entries of lists and rules.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    LayerText, code_edit,
    layer::{SettingsLayer, read_layer},
    merge::{TAKEN_WHOLE, strength},
};
use crate::permission::RuleKind;

/// Keys whose values may be secret; that there is one is shown, and not what it is.
const SECRET: &[&str] = &["env"];

/// A value that holds, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// Its key, with dots between the parts: `permissions.allow`.
    pub key: String,
    /// The value as JSON text; of a list one of its entries.
    pub value: String,
    /// The file or flag that says it.
    pub source: String,
    /// The sources whose values it replaces, the weakest first.
    pub replaces: Vec<String>,
}

/// Lists the values that apply, by key, each with its source. Entries of a list are in the order in which they count.
/// What merging drops is left out; its warnings name it.
pub fn explain(layers: &[LayerText]) -> Vec<Explained> {
    let mut read: Vec<_> = layers.iter().filter_map(|it| read_layer(it, &mut Vec::new())).collect();
    read.sort_by_key(|it| strength(it.scope));
    let mut found: BTreeMap<String, Vec<Explained>> = BTreeMap::new();
    for layer in &read {
        for (key, value) in &layer.values {
            walk(key, value, &layer.source, &mut found);
        }
        for rule in &layer.rules {
            let key = match rule.kind {
                RuleKind::Allow => "permissions.allow",
                RuleKind::Ask => "permissions.ask",
                RuleKind::Deny => "permissions.deny",
            };
            add(key, &Value::from(rule.text.as_str()), &layer.source, &mut found);
        }
        for (event, handlers) in &layer.hooks {
            for handler in handlers {
                let key = format!("hooks.{}", event.name());
                add(&key, &Value::from(handler.label()), &layer.source, &mut found);
            }
        }
    }
    explain_code_edit(&read, &mut found);
    found.into_values().flatten().collect()
}

/// Puts what holds of the confirmation of changes in the place of what the strongest layer says: the strictest layer
/// decides.
fn explain_code_edit(layers: &[SettingsLayer], found: &mut BTreeMap<String, Vec<Explained>>) {
    let Some((max, decides)) = code_edit::strictest(layers) else { return };
    let holding = [("confirm", Value::from(true)), ("max_changes_per_turn", Value::from(max))];
    for (name, value) in holding {
        let key = format!("ennead.{}.{name}", code_edit::GROUP);
        let before = found.remove(&key).unwrap_or_default().into_iter();
        let sources = before.flat_map(|it| it.replaces.into_iter().chain([it.source]));
        let replaces = sources.filter(|it| *it != decides.source).collect();
        let (value, source) = (value.to_string(), decides.source.clone());
        found.insert(key.clone(), vec![Explained { key, value, source, replaces }]);
    }
}

fn walk(key: &str, value: &Value, source: &str, found: &mut BTreeMap<String, Vec<Explained>>) {
    let last = key.rsplit('.').next().unwrap_or(key);
    match value {
        Value::Object(group) => {
            for (name, value) in group {
                walk(&format!("{key}.{name}"), value, source, found);
            }
        }
        Value::Array(list) if !TAKEN_WHOLE.contains(&last) => {
            list.iter().for_each(|it| add(key, it, source, found));
        }
        value => {
            let before = found.remove(key).unwrap_or_default();
            let replaces =
                before.into_iter().flat_map(|it| it.replaces.into_iter().chain([it.source]));
            let replaces = replaces.collect();
            let (value, source) = (display_value(key, value), source.to_owned());
            let explained = Explained { key: key.to_owned(), value, source, replaces };
            found.insert(key.to_owned(), vec![explained]);
        }
    }
}

/// Adds an entry of a list, unless a weaker layer has it.
fn add(key: &str, value: &Value, source: &str, found: &mut BTreeMap<String, Vec<Explained>>) {
    let (key, value, source) = (key.to_owned(), display_value(key, value), source.to_owned());
    let entries = found.entry(key.clone()).or_default();
    if entries.iter().all(|it| it.value != value) {
        entries.push(Explained { key, value, source, replaces: Vec::new() });
    }
}

fn display_value(key: &str, value: &Value) -> String {
    let top = key.split('.').next().unwrap_or(key);
    if SECRET.contains(&top) { "(set)".into() } else { value.to_string() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::permission::Scope;

    // REQ: TRN-4, TOL-12
    #[test]
    fn of_the_confirmation_of_changes_the_strictest_layer_is_named() {
        let layer = |scope: Scope, section: Value| {
            let text = json!({ "ennead": { "codeEdit": section } }).to_string();
            LayerText { scope, source: scope.name().to_owned(), text }
        };
        let (user, project) = (Scope::User.name(), Scope::Project.name());
        let number = json!({ "maxChangesPerTurn": 2 });
        for (of_user, of_project, confirm, max) in [
            (
                json!({ "confirm": true }),
                json!({ "confirm": false }),
                format!("true {user} [{project:?}]"),
                format!("5 {user} []"),
            ),
            (
                json!({ "confirm": true, "maxChangesPerTurn": 9 }),
                number.clone(),
                format!("true {project} [{user:?}]"),
                format!("2 {project} [{user:?}]"),
            ),
            (
                number,
                json!({ "maxChangesPerTurn": 7 }),
                format!("true {user} []"),
                format!("2 {user} [{project:?}]"),
            ),
        ] {
            let layers = [layer(Scope::User, of_user), layer(Scope::Project, of_project)];
            let lines = explain(&layers).into_iter();
            let lines: Vec<String> = lines
                .map(|it| format!("{} {} {} {:?}", it.key, it.value, it.source, it.replaces))
                .collect();
            let expected = [
                format!("ennead.code_edit.confirm {confirm}"),
                format!("ennead.code_edit.max_changes_per_turn {max}"),
            ];
            assert_eq!(lines, expected);
        }
    }

    // REQ: TRN-4
    #[test]
    fn each_value_names_its_source_and_what_it_replaces() {
        let layer = |scope: Scope, content: Value| {
            let source = format!("{}.json", scope.name());
            LayerText { scope, source, text: content.to_string() }
        };
        let (user, project) = (Scope::User, Scope::Project);
        let layers = [
            layer(
                project,
                json!({
                    "model": "b", "fallbackModel": ["z"], "claudeMdExcludes": ["x", "y"],
                    "permissions": {"allow": ["Bash(git *)"], "deny": ["Read(x)"]},
                }),
            ),
            layer(
                user,
                json!({
                    "model": "a", "fallbackModel": ["x", "y"], "claudeMdExcludes": ["x"],
                    "permissions": {"allow": ["Bash(ls *)"]}, "env": {"KEY": "sk-secret"},
                    "ennead": {"maxTurns": 7},
                }),
            ),
        ];
        let lines: Vec<String> = explain(&layers)
            .into_iter()
            .map(|it| format!("{} {} {} {:?}", it.key, it.value, it.source, it.replaces))
            .collect();
        let (u, p) = (format!("{}.json", user.name()), format!("{}.json", project.name()));
        assert_eq!(
            lines,
            [
                format!("claudeMdExcludes \"x\" {u} []"),
                format!("claudeMdExcludes \"y\" {p} []"),
                format!("ennead.max_turns 7 {u} []"),
                format!("env.KEY (set) {u} []"),
                format!("fallbackModel [\"z\"] {p} [{u:?}]"),
                format!("model \"b\" {p} [{u:?}]"),
                format!("permissions.allow \"Bash(ls *)\" {u} []"),
                format!("permissions.allow \"Bash(git *)\" {p} []"),
                format!("permissions.deny \"Read(x)\" {p} []"),
            ]
        );
    }
}
