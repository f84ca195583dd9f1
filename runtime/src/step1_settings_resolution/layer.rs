//! One layer of settings: what one file or flag says, cleaned of what cannot be used.
//!
//! A layer is what a file holds, settings are what counts; so here everything is optional. Unknown keys are kept and
//! ignored. A bad entry is dropped with a warning, the rest of its file holds.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{LayerText, WorktreeBase, ennead_section::GROUPS};
use crate::{
    catalogue::Effort,
    hook::{HookTable, read_table},
    permission::{RuleKind, RuleText, Scope},
    step7_permission_gate::rule::Rule,
};

impl LayerText {
    /// Makes a layer of JSON text; `source` is a path, or the name of a flag.
    pub fn new(scope: Scope, source: impl Into<String>, text: impl Into<String>) -> Self {
        Self { scope, source: source.into(), text: text.into() }
    }
}

/// Name of the setting that switches all hooks off.
pub(super) const HOOKS_OFF: &str = "disableAllHooks";

/// What one layer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SettingsLayer {
    /// Scope that the layer comes from.
    pub scope: Scope,
    /// Where it was read.
    pub source: String,
    /// Its keys, those of wrong type left out. Rules and hooks are not among them.
    pub values: Map<String, Value>,
    /// Its rules, in the order written.
    pub rules: Vec<RuleText>,
    /// Hooks that the layer configures.
    pub hooks: HookTable,
}

/// Reads one layer. `None` when the text is not a JSON object; then the whole layer is skipped.
pub(crate) fn read_layer(layer: &LayerText, warnings: &mut Vec<String>) -> Option<SettingsLayer> {
    let source = &layer.source;
    let mut values = match object(&layer.text) {
        Ok(values) => values,
        Err(why) => {
            warnings.push(format!("{source}: {why}; the whole file is skipped"));
            return None;
        }
    };
    let mut found = Vec::new();
    let hooks = take_hooks(&mut values, layer.scope, &mut found);
    let rules = take_rules(&mut values, layer.scope, &mut found);
    clean(&mut values, layer.scope, &mut found);
    warnings.extend(found.into_iter().map(|it| format!("{source}: {it}")));
    Some(SettingsLayer { scope: layer.scope, source: source.clone(), values, rules, hooks })
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(values)) => Ok(values),
        Ok(_) => Err("is not a JSON object".into()),
        Err(error) => Err(format!("is not JSON ({error})")),
    }
}

/// Returns why rules are lost with this text of a settings file, if so: it is not a JSON object, with line and column,
/// or its `permissions` are not one, or a list of rules that restrict is not a list. One entry that is not a rule is
/// not among them.
pub fn unreadable(text: &str) -> Option<String> {
    let values = match object(text) {
        Ok(values) => values,
        Err(why) => return Some(why),
    };
    let permissions = values.get("permissions")?;
    let Some(permissions) = permissions.as_object() else {
        return Some("`permissions` is not an object".into());
    };
    let no_list = |name: &&str| permissions.get(*name).is_some_and(|it| !it.is_array());
    let name = ["deny", "ask"].into_iter().find(no_list)?;
    Some(format!("`permissions.{name}` is not a list"))
}

fn take_hooks(
    values: &mut Map<String, Value>,
    scope: Scope,
    warnings: &mut Vec<String>,
) -> HookTable {
    let Some(mut hooks) = values.remove("hooks") else { return HookTable::new() };
    // Not an event but a switch; it moves to where the other switches are.
    if let Some(switch) = hooks.as_object_mut().and_then(|it| it.remove("fail_closed")) {
        let own = values.entry("ennead").or_insert_with(|| Value::Object(Map::new()));
        if let Some(own) = own.as_object_mut() {
            own.insert("fail_closed".into(), switch);
        }
    }
    read_table(&hooks, scope, warnings)
}

fn take_rules(
    values: &mut Map<String, Value>,
    scope: Scope,
    warnings: &mut Vec<String>,
) -> Vec<RuleText> {
    let mut rules = Vec::new();
    let permissions = match values.get_mut("permissions") {
        None => return rules,
        Some(Value::Object(permissions)) => permissions,
        Some(_) => {
            values.remove("permissions");
            warnings.push("`permissions` is not an object; it is ignored".into());
            return rules;
        }
    };
    for (name, kind) in
        [("deny", RuleKind::Deny), ("ask", RuleKind::Ask), ("allow", RuleKind::Allow)]
    {
        let entries = match permissions.remove(name) {
            None => continue,
            Some(Value::Array(entries)) => entries,
            Some(_) => {
                warnings.push(format!("`permissions.{name}` is not a list; it is ignored"));
                continue;
            }
        };
        for entry in entries {
            let Some(text) = entry.as_str() else {
                warnings.push(format!("`permissions.{name}`: {entry} is not a rule"));
                continue;
            };
            let rule = RuleText { kind, scope, text: text.into() };
            match Rule::parse(&rule) {
                Ok(_) => rules.push(rule),
                Err(bad) => warnings.push(format!("{bad}; it is ignored")),
            }
        }
    }
    rules
}

/// Takes out entries of wrong type.
fn clean(values: &mut Map<String, Value>, scope: Scope, warnings: &mut Vec<String>) {
    drop_unless(values, "", "model", Value::is_string, warnings);
    // One name is a list of one.
    if let Some(one @ Value::String(_)) = values.get("fallbackModel").cloned() {
        values.insert("fallbackModel".into(), Value::Array(vec![one]));
    }
    drop_unless(values, "", "fallbackModel", is_list_of_names, warnings);
    drop_unless(values, "", "autoCompactEnabled", Value::is_boolean, warnings);
    drop_unless(values, "", HOOKS_OFF, Value::is_boolean, warnings);
    drop_unless(values, "", "alwaysThinkingEnabled", Value::is_boolean, warnings);
    drop_unless(values, "", "effortLevel", |it| Effort::deserialize(it).is_ok(), warnings);
    drop_unless(values, "", "claudeMdExcludes", is_list_of_names, warnings);
    drop_unless(values, "", "claudeMd", Value::is_string, warnings);
    drop_unless(values, "", "autoMemoryEnabled", Value::is_boolean, warnings);
    let is_path = |it: &Value| it.as_str().is_some_and(|it| !it.trim().is_empty());
    drop_unless(values, "", "plansDirectory", is_path, warnings);
    if scope != Scope::Policy && values.remove("claudeMd").is_some() {
        warnings
            .push("`claudeMd` holds in settings of the organisation alone; it is ignored".into());
    }
    drop_unless(values, "", "env", Value::is_object, warnings);
    if let Some(Value::Object(env)) = values.get_mut("env") {
        for name in env.keys().cloned().collect::<Vec<_>>() {
            drop_unless(env, "env.", &name, Value::is_string, warnings);
        }
    }
    if let Some(Value::Object(permissions)) = values.get_mut("permissions") {
        drop_unless(permissions, "permissions.", "defaultMode", Value::is_string, warnings);
        let name = "additionalDirectories";
        drop_unless(permissions, "permissions.", name, Value::is_array, warnings);
        if let Some(Value::Array(list)) = permissions.get_mut(name) {
            list.retain(Value::is_string);
        }
    }
    drop_unless(values, "", "worktree", Value::is_object, warnings);
    if let Some(Value::Object(worktree)) = values.get_mut("worktree") {
        let is_base = |it: &Value| WorktreeBase::deserialize(it).is_ok();
        drop_unless(worktree, "worktree.", "baseRef", is_base, warnings);
    }
    drop_unless(values, "", "ennead", Value::is_object, warnings);
    if let Some(Value::Object(own)) = values.get_mut("ennead") {
        *own = own_keys(std::mem::take(own), warnings);
    }
}

fn is_list_of_names(value: &Value) -> bool {
    value.as_array().is_some_and(|list| list.iter().all(Value::is_string))
}

fn drop_unless(
    values: &mut Map<String, Value>,
    prefix: &str,
    name: &str,
    fits: fn(&Value) -> bool,
    warnings: &mut Vec<String>,
) {
    if values.get(name).is_some_and(|it| !fits(it)) {
        values.remove(name);
        warnings.push(format!("`{prefix}{name}` has the wrong type; it is ignored"));
    }
}

/// The keys under `ennead`, in snake case, those that fit. `maxTurns` and `max_turns` are one.
fn own_keys(written: Map<String, Value>, warnings: &mut Vec<String>) -> Map<String, Value> {
    let mut own = Map::new();
    for (name, value) in written {
        let name = snake(&name);
        let value = match (name.as_str(), value) {
            (key, Value::Object(group)) if key == "auto_compact" || GROUPS.contains(&key) => {
                Value::Object(group.into_iter().map(|(name, it)| (snake(&name), it)).collect())
            }
            (_, value) => value,
        };
        own.insert(name, value);
    }
    // `auto_compact.max_tokens` is the trigger of the fifth shaper.
    if let Some(tokens) = own.remove("auto_compact").and_then(|it| it.get("max_tokens").cloned()) {
        let shapers = own.entry("shapers").or_insert_with(|| Value::Object(Map::new()));
        if let Some(shapers) = shapers.as_object_mut() {
            shapers.insert("auto_compact_max_tokens".into(), tokens);
        }
    }
    for name in own.keys().cloned().collect::<Vec<_>>() {
        match own.get_mut(&name) {
            Some(Value::Object(group)) if GROUPS.contains(&name.as_str()) => {
                for inner in group.keys().cloned().collect::<Vec<_>>() {
                    let whole = format!("{name}.{inner}");
                    drop_unless_fits(group, &inner, &whole, warnings);
                }
            }
            _ => drop_unless_fits(&mut own, &name, &name, warnings),
        }
    }
    own
}

fn drop_unless_fits(
    values: &mut Map<String, Value>,
    name: &str,
    whole: &str,
    warnings: &mut Vec<String>,
) {
    let Some(value) = values.get(name) else { return };
    let one = Map::from_iter([(name.to_owned(), value.clone())]);
    let group = whole.split_once('.').map(|(group, _)| group);
    if !super::ennead_section::fits(group, one) {
        values.remove(name);
        let why = match whole {
            "redact.vault" => "is not a public key of a vault, as `ennead vault` prints it",
            _ => "cannot be read",
        };
        warnings.push(format!("`ennead.{whole}` {why}; it is ignored"));
    }
}

/// Writes `maxTurns` as `max_turns`. Names in capitals (`HISTORY_SNIP`) are only made small.
pub(super) fn snake(name: &str) -> String {
    if !name.chars().any(|c| c.is_ascii_lowercase()) {
        return name.to_ascii_lowercase();
    }
    let mut out = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}
