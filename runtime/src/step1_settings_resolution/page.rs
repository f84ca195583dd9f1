//! Holds `docs/configuration.md` to the code: every key that is read is in its tables, with the
//! type, the scope and the default that the code gives it, and every key in its tables has an effect.

use std::collections::BTreeSet;

use serde::{Deserialize, Deserializer, de, forward_to_deserialize_any};
use serde_json::{Value, json};

use super::{
    AgentLimits, ApprovalSettings, CodeEditSettings, HttpSettings, LayerText, RedactSettings,
    Resolved, Settings, ShaperSettings, ShellSettings,
    ennead_section::{EnneadSettings, GROUPS},
    merge,
    trust::{Trust, restrict},
};
use crate::{
    catalogue::CatalogueOverrides, mcp::policy::Policy, output::OutputSettings, permission::Scope,
    redaction::VaultKey, step5_model_call::adaptation::Parameters,
};

const PAGE: &str = include_str!("../../../docs/configuration.md");

/// The cells of a row of a table.
type TableRow = Vec<String>;

/// The rows of all tables of settings.
fn rows() -> Vec<TableRow> {
    let mut found = Vec::new();
    let mut is_table = false;
    for line in PAGE.lines() {
        is_table = line.starts_with("| Key |") || is_table && line.starts_with('|');
        if is_table && line.starts_with("| `") {
            let cells = line.trim_matches('|').split('|');
            found.push(cells.map(|it| it.trim().to_owned()).collect::<TableRow>());
        }
    }
    assert!(60 < found.len() && found.iter().all(|it| it.len() == 6), "{found:#?}");
    found
}

fn key(row: &TableRow) -> &str {
    row[0].trim_matches('`')
}

/// The object that sets one key, whose parts are separated by dots.
fn setting(key: &str, value: &Value) -> Value {
    key.rsplit('.').fold(value.clone(), |value, part| json!({ part: value }))
}

fn layer(scope: Scope, content: &Value) -> LayerText {
    LayerText { scope, source: "s".into(), text: content.to_string() }
}

/// Values of the type that the page names, which differ from the default, and values of none.
fn values(row: &TableRow) -> (Vec<Value>, Vec<Value>) {
    let words: Vec<&str> = row[1].split('`').skip(1).step_by(2).collect();
    let known = match key(row) {
        "permissions.disableBypassPermissionsMode" | "permissions.disableAutoMode" => {
            Some(json!("disable"))
        }
        "permissions.deny" | "permissions.ask" | "permissions.allow" => Some(json!(["Read(./x)"])),
        "ennead.thinking" => Some(json!({"type": "enabled", "budgetTokens": 2_000})),
        "ennead.catalogue" => Some(json!({"aliases": {"claude-sonnet-5": "other"}})),
        "ennead.redact.vault" => Some(json!(VaultKey::new([7; 32]))),
        "ennead.serverEnv" => Some(json!({"server": ["NAME"]})),
        "hooks" => Some(json!({"Stop": [{"hooks": [{"type": "command", "command": "c"}]}]})),
        "disabledMcpjsonServers" => Some(json!(["server"])),
        "allowedMcpServers" | "deniedMcpServers" => Some(json!([{"serverName": "server"}])),
        _ => None,
    };
    let (fit, not): (Value, Value) = match &*row[1] {
        "boolean" => (json!(row[4] != "true"), json!("yes")),
        "integer" => (json!(7), json!(-1)),
        "integer ≥ 1" => (json!(7), json!(0)),
        "number" => (json!(0.5), json!("half")),
        "text" => (json!("x"), json!(1)),
        "list of texts" | "list of rules" | "list of models" | "list of patterns" => {
            (json!(["x"]), json!(1))
        }
        "object of texts" => (json!({"NAME": "x"}), json!({"NAME": 1})),
        "object" => (json!({}), json!(1)),
        _ => {
            assert!(1 < words.len(), "no type of {}: {}", key(row), row[1]);
            let differ = words.iter().filter(|it| !row[4].contains(&format!("`{it}`")));
            return (differ.map(|it| json!(it)).collect(), vec![json!("neither"), json!(1)]);
        }
    };
    (vec![known.unwrap_or(fit)], vec![not])
}

/// What must be set for a key to have an effect.
fn companion(key: &str) -> Value {
    let hook = || json!({"Stop": [{"hooks": [{"type": "command", "command": "c"}]}]});
    match key {
        "permissions.disableBypassPermissionsMode" => {
            json!({"permissions": {"defaultMode": "bypassPermissions"}})
        }
        "permissions.disableAutoMode" => json!({"permissions": {"defaultMode": "auto"}}),
        "disableAllHooks" => json!({ "hooks": hook() }),
        "allowedHttpHookUrls" | "httpHookAllowedEnvVars" => {
            let http = json!({"type": "http", "url": "http://h", "allowedEnvVars": ["A"]});
            json!({"hooks": {"Stop": [{"hooks": [http]}]}})
        }
        _ => json!({}),
    }
}

/// Whether a layer of this scope, of a workspace that is not trusted, changes what is decided by.
fn has_effect(scope: Scope, key: &str, value: &Value) -> bool {
    let decided = |layers: &[LayerText]| {
        let Resolved { settings, .. } = merge(layers);
        (settings, Policy::of(layers, Trust::Untrusted, &|_| None))
    };
    let companion = layer(Scope::User, &companion(key));
    let content = restrict(layer(scope, &setting(key, value)), Trust::Untrusted);
    decided(&[companion.clone(), content]) != decided(&[companion])
}

// REQ: TRN-4
#[test]
fn every_documented_key_takes_its_type_and_has_an_effect() {
    for row in rows() {
        let scope = if row[3] == "managed" { Scope::Policy } else { Scope::User };
        let (fit, not) = values(&row);
        assert!(!fit.is_empty());
        for value in &fit {
            let warnings = merge(&[layer(scope, &setting(key(&row), value))]).warnings;
            assert!(warnings.is_empty(), "{value}: {warnings:?}");
            assert!(has_effect(scope, key(&row), value), "{} = {value} has no effect", key(&row));
        }
        // A value of the wrong type allows nothing, since these settings are there to restrict.
        let closes = ["allowedMcpServers", "allowedHttpHookUrls", "httpHookAllowedEnvVars"];
        for value in not.iter().filter(|_| !closes.contains(&key(&row))) {
            assert!(!has_effect(scope, key(&row), value), "{} = {value} is taken", key(&row));
        }
    }
}

#[test]
fn documented_scopes_are_those_that_the_code_keeps() {
    for row in rows() {
        for value in values(&row).0 {
            let is_any = has_effect(Scope::Project, key(&row), &value);
            assert_eq!(is_any, row[3] == "any", "{}: {}", key(&row), row[3]);
            let warnings = merge(&[layer(Scope::Project, &setting(key(&row), &value))]).warnings;
            let is_own = warnings.iter().any(|it| it.contains("does not count here"));
            assert_eq!(is_own, row[3] == "own", "{}: {warnings:?}", key(&row));
        }
    }
}

/// The defaults of all keys, as the types have them.
fn defaults() -> Value {
    let it = Settings::default();
    json!({
        "model": it.model,
        "hooks": {"fail_closed": it.hooks_fail_closed},
        "sandbox": {
            "enabled": it.sandbox.enabled,
            "required": it.sandbox.required,
            "autoAllow": it.sandbox.auto_allow,
            "network": it.sandbox.network,
            "allowUnsandboxedCommands": it.sandbox.allow_unsandboxed,
        },
        "worktree": {"baseRef": "fresh"},
        "autoMemoryEnabled": it.instructions.has_memory,
        "autoCompactEnabled": it.shapers.auto_compact,
        "ennead": {
            "max_turns": it.max_turns,
            "max_tool_calls": it.max_tool_calls,
            "max_parallel_calls": it.max_parallel_calls,
            "max_retries": it.max_retries,
            "durability": it.durability,
            "prompt_caching": it.prompt_caching,
            "shapers": it.shapers,
            "agents": it.agents,
            "shell": it.shell,
            "approvals": it.approvals,
            "output": it.output,
            "redact": it.redact,
            "code_edit": it.code_edit,
        },
    })
}

/// A value as the page writes it.
fn display_value(value: &Value) -> String {
    match value {
        Value::Number(number) => {
            let digits = number.to_string();
            let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
            groups.collect::<Vec<_>>().join(",")
        }
        Value::String(text) => format!("`{text}`"),
        Value::Array(list) if list.is_empty() => "none".into(),
        Value::Array(list) => list.iter().map(display_value).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

#[test]
fn documented_defaults_are_those_of_the_types() {
    let defaults = defaults();
    let mut n_compared = 0;
    for row in rows() {
        let name =
            if key(&row).starts_with("ennead.") { snake(key(&row)) } else { key(&row).into() };
        let path = format!("/{}", name.replace('.', "/"));
        let Some(default) = defaults.pointer(&path).filter(|it| !it.is_null() && !it.is_object())
        else {
            continue;
        };
        n_compared += 1;
        assert_eq!(row[4], display_value(default), "{}", key(&row));
    }
    assert!(25 < n_compared, "{n_compared}");
}

fn snake(name: &str) -> String {
    name.split('.').map(super::layer::snake).collect::<Vec<_>>().join(".")
}

/// Collects the names of a struct's fields from what it asks a deserializer for.
struct FieldNames<'a>(&'a mut Vec<&'static str>);

impl<'de> Deserializer<'de> for FieldNames<'_> {
    type Error = de::value::Error;

    fn deserialize_any<V: de::Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
        Err(de::Error::custom("only names are asked for"))
    }

    fn deserialize_struct<V: de::Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Self::Error> {
        self.0.extend(fields);
        Err(de::Error::custom("only names are asked for"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

fn fields<T: for<'de> Deserialize<'de>>() -> Vec<&'static str> {
    let mut names = Vec::new();
    let _unread = T::deserialize(FieldNames(&mut names));
    assert!(!names.is_empty());
    names
}

#[test]
fn every_field_of_the_settings_types_is_documented() {
    let documented: BTreeSet<String> = rows().iter().map(|it| snake(key(it))).collect();
    let own = fields::<EnneadSettings>();
    let groups = [
        ("shapers", fields::<ShaperSettings>()),
        ("agents", fields::<AgentLimits>()),
        ("shell", fields::<ShellSettings>()),
        ("http", fields::<HttpSettings>()),
        ("approvals", fields::<ApprovalSettings>()),
        ("output", fields::<OutputSettings>()),
        ("redact", fields::<RedactSettings>()),
        ("code_edit", fields::<CodeEditSettings>()),
    ];
    let in_groups = groups
        .iter()
        .flat_map(|(group, names)| names.iter().map(move |it| format!("ennead.{group}.{it}")));
    let alone = own.into_iter().chain(fields::<Parameters>());
    let alone = alone.filter(|it| !GROUPS.contains(it));
    let read: BTreeSet<String> = in_groups
        .chain(alone.map(|it| match it {
            "fail_closed" => "hooks.fail_closed".to_owned(),
            other => format!("ennead.{other}"),
        }))
        .collect();
    let under_ennead = |it: &&String| it.starts_with("ennead.") || *it == "hooks.fail_closed";
    let written: BTreeSet<String> = documented.iter().filter(under_ennead).cloned().collect();
    assert_eq!(written, read);
    for member in fields::<CatalogueOverrides>() {
        assert!(PAGE.contains(&format!("`{member}`")), "ennead.catalogue.{member}");
    }
}
