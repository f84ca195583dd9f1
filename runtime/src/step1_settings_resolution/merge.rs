//! Merging: layers in, settings out; nothing else is looked at.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    FallbackModel, InstructionSettings, LayerText, Settings, WorktreeBase, certificates, code_edit,
    ennead_section, hooks,
    layer::{HOOKS_OFF, SettingsLayer, read_layer},
    models, redact, sandbox,
    secrets::SecretEnv,
};
use crate::{
    catalogue::{Catalogue, Effort},
    digest::Digest,
    hook::{HookTable, merge_tables},
    json::MeasuredText,
    permission::{PermissionMode, Scope},
    recovery::backoff::MAX_RETRIES,
    step5_model_call::{adaptation::Thinking, request::PromptCaching},
};

/// Keys whose value is taken whole from the strongest layer, though it is a list.
pub(super) const TAKEN_WHOLE: &[&str] = &["fallbackModel", "fallback"];

/// Sets [`Settings::max_retries`] for programs that know no other way.
const MAX_RETRIES_VARIABLE: &str = "CLAUDE_CODE_MAX_RETRIES";

/// The settings that hold, where each came from, and what was wrong on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The settings that result from all layers.
    pub settings: Arc<Settings>,
    /// Top-level keys and the source whose value holds.
    pub provenance: BTreeMap<String, String>,
    /// The sources of values that apply, each once.
    pub sources: Arc<[String]>,
    /// What is known about the models that the settings name; all that a replay needs of it.
    pub models: Catalogue,
    /// The same as JSON, as a transcript holds it.
    pub(crate) models_text: MeasuredText,
    /// What was dropped, in words for the user.
    pub warnings: Vec<String>,
    /// Of the layers, in order; equal layers give equal settings.
    pub digest: Digest,
}

/// Merges layers into the settings that apply. The order of layers of different scopes does not matter; of layers of
/// one scope (drop-ins) a later one wins. About models nothing is known; see [`merge_with`].
pub fn merge(layers: &[LayerText]) -> Resolved {
    merge_with(layers, &Arc::default())
}

/// Merges as [`merge`] does, with limits of the model as they are in a catalogue.
pub fn merge_with(layers: &[LayerText], known: &Arc<Catalogue>) -> Resolved {
    let mut warnings = Vec::new();
    let mut read: Vec<SettingsLayer> =
        layers.iter().filter_map(|it| read_layer(it, &mut warnings)).collect();
    read.sort_by_key(|it| strength(it.scope));

    let merged = Value::Object(merge_values(read.iter().map(|it| &it.values)));
    let mut provenance = BTreeMap::new();
    for layer in &read {
        let keys = layer.values.keys().map(String::as_str);
        let hooks = (!layer.hooks.is_empty()).then_some("hooks");
        let permissions = (!layer.rules.is_empty()).then_some("permissions");
        for key in keys.chain(hooks).chain(permissions) {
            provenance.insert(key.to_owned(), layer.source.clone());
        }
    }

    let mut settings = Settings::default();
    if let Some(model) = merged.get("model").and_then(Value::as_str) {
        settings.model = model.into();
    }
    let models = models::apply(&merged, known, &mut settings, &mut warnings);
    if let Some(on) = merged.get("autoCompactEnabled").and_then(Value::as_bool) {
        settings.shapers.auto_compact = on;
    }
    // The variables that existing shells set; ennead's own key is the stronger one.
    let is_set = |name| {
        let value = merged.get("env").and_then(|it| it.get(name)).and_then(Value::as_str);
        value.is_some_and(|it| !matches!(it, "" | "0" | "false"))
    };
    if is_set("ENABLE_PROMPT_CACHING_1H") {
        settings.prompt_caching = PromptCaching::OneHour;
    }
    if is_set("DISABLE_PROMPT_CACHING") {
        settings.prompt_caching = PromptCaching::Off;
    }
    let parameters = &mut settings.parameters;
    parameters.effort = merged.get("effortLevel").and_then(|it| Effort::deserialize(it).ok());
    parameters.thinking = merged
        .get("alwaysThinkingEnabled")
        .and_then(Value::as_bool)
        .map(|it| if it { Thinking::Adaptive { display: None } } else { Thinking::Disabled });
    let by_env = merged.pointer(&format!("/env/{MAX_RETRIES_VARIABLE}")).and_then(Value::as_str);
    if let Some(max_retries) = by_env.and_then(|it| it.trim().parse::<u32>().ok()) {
        settings.max_retries = max_retries.min(MAX_RETRIES);
    }
    let fallback = merged.get("fallbackModel").and_then(Value::as_array).into_iter().flatten();
    settings.fallback = fallback
        .filter_map(Value::as_str)
        .map(|model| FallbackModel { provider: None, model: model.into() })
        .collect();
    if let Some(own_keys) = merged.get("ennead") {
        let auto_compact = settings.shapers.auto_compact;
        ennead_section::apply(own_keys, &mut settings);
        let section = own_keys.get("shapers").and_then(|it| it.get("auto_compact"));
        if section.is_none() {
            settings.shapers.auto_compact = auto_compact;
        }
    }
    if let Some(env) = merged.get("env").and_then(Value::as_object) {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        settings.env = env.iter().filter_map(|(k, v)| Some((k.clone(), text(v)?))).collect();
    }
    let base = merged.pointer("/worktree/baseRef").map(WorktreeBase::deserialize);
    settings.worktree_base = base.and_then(Result::ok).unwrap_or_default();
    settings.instructions = instructions(&read, &merged);
    settings.certificates = certificates::certificates(&read, &mut warnings);
    settings.sandbox = sandbox::sandbox(&read, &mut warnings);
    settings.secrets = SecretEnv::of(&read, &mut warnings);
    settings.redact = redact::redact(&read, &mut warnings);
    settings.code_edit = code_edit::code_edit(&read);
    let directories =
        merged.pointer("/permissions/additionalDirectories").and_then(Value::as_array);
    settings.permissions.additional_directories =
        directories.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    settings.permissions.plans_directory =
        merged.get("plansDirectory").and_then(Value::as_str).map(str::to_owned);
    settings.permissions.off = switched_off(&merged);
    settings.permissions.mode = start_mode(&read, &settings.permissions.off, &mut warnings);
    settings.permissions.rules = read.iter().flat_map(|it| it.rules.iter().cloned()).collect();
    settings.permissions.rules.sort_by_key(|it| it.scope);
    settings.hooks = merged_hooks(read, &merged, &mut warnings);
    let sources: BTreeSet<&String> = provenance.values().collect();
    let sources = sources.into_iter().cloned().collect();
    let (settings, digest) = (Arc::new(settings), digest(layers));
    let models_text = MeasuredText::new(serde_json::to_string(&models).unwrap_or_default());
    Resolved { settings, provenance, sources, models, models_text, warnings, digest }
}

/// Returns the strength of a scope, weakest first: user, project, local, command line, managed.
pub(super) fn strength(scope: Scope) -> u8 {
    match scope {
        Scope::User => 0,
        Scope::Project => 1,
        Scope::Local => 2,
        Scope::CliArg => 3,
        Scope::Session => 4,
        Scope::Policy => 5,
    }
}

/// Merges objects, weakest first: scalars of the strongest, lists one after the other without
/// repetitions, objects key by key.
pub fn merge_values<'a>(
    layers: impl IntoIterator<Item = &'a Map<String, Value>>,
) -> Map<String, Value> {
    let mut merged = Map::new();
    for layer in layers {
        for (key, value) in layer {
            merge_key(&mut merged, key, value);
        }
    }
    merged
}

fn merge_key(into: &mut Map<String, Value>, key: &str, value: &Value) {
    match (into.get_mut(key), value) {
        (Some(Value::Object(old)), Value::Object(new)) => {
            for (key, value) in new {
                merge_key(old, key, value);
            }
        }
        (Some(Value::Array(old)), Value::Array(new)) if !TAKEN_WHOLE.contains(&key) => {
            for value in new {
                if !old.contains(value) {
                    old.push(value.clone());
                }
            }
        }
        _ => {
            into.insert(key.into(), value.clone());
        }
    }
}

/// The hooks of the layers, but for those that are switched off. The switch counts as
/// the strongest layer that has it says; hooks of the organisation are only its own to switch off.
fn merged_hooks(read: Vec<SettingsLayer>, merged: &Value, warnings: &mut Vec<String>) -> HookTable {
    let is_off = |it: Option<&Value>| it.and_then(Value::as_bool) == Some(true);
    let own = read.iter().rev().filter(|it| it.scope == Scope::Policy);
    let own_off = is_off(own.filter_map(|it| it.values.get(HOOKS_OFF)).next());
    let off = is_off(merged.get(HOOKS_OFF));
    let runs = |scope| !off || scope == Scope::Policy && !own_off;
    let limits = hooks::limits(&read, warnings);
    let mut table = merge_tables(read.into_iter().filter(|it| runs(it.scope)).map(|it| it.hooks));
    hooks::restrict(&mut table, &limits, warnings);
    table
}

/// What is read as instructions. Only the organisation's settings can hold instructions.
fn instructions(read: &[SettingsLayer], merged: &Value) -> InstructionSettings {
    let excludes = merged.get("claudeMdExcludes").and_then(Value::as_array).into_iter().flatten();
    let of_policy = read.iter().rev().filter(|it| it.scope == Scope::Policy);
    let managed = of_policy.filter_map(|it| it.values.get("claudeMd")?.as_str()).next();
    InstructionSettings {
        excludes: excludes.filter_map(Value::as_str).map(str::to_owned).collect(),
        managed: managed.filter(|it| !it.trim().is_empty()).map(Into::into),
        has_memory: merged.get("autoMemoryEnabled").and_then(Value::as_bool).unwrap_or(true),
    }
}

/// The modes that settings switch off.
fn switched_off(merged: &Value) -> Vec<PermissionMode> {
    let is_off = |key: &str| {
        let section = merged.get("permissions").and_then(|it| it.get(key));
        section.and_then(Value::as_str) == Some("disable")
    };
    let modes = [
        ("disableBypassPermissionsMode", PermissionMode::BypassPermissions),
        ("disableAutoMode", PermissionMode::Auto),
    ];
    modes.into_iter().filter(|(key, _)| is_off(key)).map(|(_, mode)| mode).collect()
}

/// The mode of the strongest layer that may set it. A repository cannot put a session into a mode
/// that asks no person, and a sub-agent's mode is not for files.
fn start_mode(
    read: &[SettingsLayer],
    off: &[PermissionMode],
    warnings: &mut Vec<String>,
) -> PermissionMode {
    for layer in read.iter().rev() {
        let Some(value) = layer.values.get("permissions").and_then(|it| it.get("defaultMode"))
        else {
            continue;
        };
        let Ok(mode) = PermissionMode::deserialize(value) else {
            warnings
                .push(format!("{}: {value} is not a permission mode; it is ignored", layer.source));
            continue;
        };
        let is_refused = match (mode, layer.scope) {
            (PermissionMode::Bubble, _) => true,
            (PermissionMode::BypassPermissions, Scope::Project) => true,
            (PermissionMode::Auto, Scope::Project | Scope::Local) => true,
            _ => off.contains(&mode),
        };
        if !is_refused {
            return mode;
        }
        warnings.push(format!("{}: the mode {value} may not be set here", layer.source));
    }
    PermissionMode::Default
}

fn digest(layers: &[LayerText]) -> Digest {
    layers.iter().fold(Digest::default(), |all, layer| {
        [layer.scope.name(), &layer.source, &layer.text]
            .iter()
            .fold(all, |all, part| all.chain(Digest::of(part.as_bytes())))
    })
}

#[cfg(test)]
mod tests;
