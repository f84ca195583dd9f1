//! The keys under `ennead`: numbers and switches that no other runtime has.

use std::{collections::BTreeMap, num::NonZeroU32};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    AgentLimits, ApprovalSettings, CodeEditSettings, Durability, FallbackModel, HttpSettings,
    RedactSettings, Settings, ShaperSettings, ShellSettings, code_edit,
};
use crate::{
    catalogue::CatalogueOverrides,
    output::OutputSettings,
    recovery::backoff::MAX_RETRIES,
    step5_model_call::{adaptation::Parameters, request::PromptCaching},
};

/// The keys of the section. None is required.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct EnneadSettings {
    max_turns: Option<NonZeroU32>,
    max_tool_calls: Option<NonZeroU32>,
    max_parallel_calls: Option<NonZeroU32>,
    max_output_tokens: Option<NonZeroU32>,
    model_max_output_tokens: Option<NonZeroU32>,
    context_window: Option<u64>,
    catalogue: Option<CatalogueOverrides>,
    prompt_caching: Option<PromptCaching>,
    run_token_budget: Option<u64>,
    max_cost_micro_usd: Option<u64>,
    fail_closed: Option<bool>,
    durability: Option<Durability>,
    shapers: Option<ShaperSettings>,
    agents: Option<AgentLimits>,
    shell: Option<ShellSettings>,
    http: Option<HttpSettings>,
    approvals: Option<ApprovalSettings>,
    output: Option<OutputSettings>,
    max_retries: Option<u32>,
    fallback: Option<Vec<Fallback>>,
    secret_env: Option<Vec<String>>,
    server_env: Option<BTreeMap<String, Vec<String>>>,
    redact: Option<RedactSettings>,
    code_edit: Option<CodeEditSettings>,
}

/// A model to turn to: `"model"`, `"provider/model"` or `{"provider": …, "model": …}`.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Fallback {
    Name(String),
    Qualified { provider: Option<String>, model: String },
}

impl From<Fallback> for FallbackModel {
    fn from(fallback: Fallback) -> Self {
        match fallback {
            Fallback::Name(model) => Self { provider: None, model },
            Fallback::Qualified { provider, model } => Self { provider, model },
        }
    }
}

/// Keys whose values are objects of keys.
pub(super) const GROUPS: [&str; 8] =
    ["shapers", "agents", "shell", "http", "approvals", "output", "redact", code_edit::GROUP];

/// Returns whether an object of one key can be read. `group` is one of [`GROUPS`].
pub(super) fn fits(group: Option<&str>, one: Map<String, Value>) -> bool {
    let value = Value::Object(one);
    match group {
        Some("shapers") => ShaperSettings::deserialize(value).is_ok(),
        Some("agents") => AgentLimits::deserialize(value).is_ok(),
        Some("shell") => ShellSettings::deserialize(value).is_ok(),
        Some("output") => OutputSettings::deserialize(value).is_ok(),
        Some("approvals") => ApprovalSettings::deserialize(value).is_ok(),
        Some(code_edit::GROUP) => CodeEditSettings::deserialize(value).is_ok(),
        Some("redact") => RedactSettings::deserialize(value).is_ok(),
        Some("http") => HttpSettings::deserialize(value).is_ok(),
        _ => EnneadSettings::deserialize(&value).is_ok() && Parameters::deserialize(value).is_ok(),
    }
}

/// Returns what the merged keys define about models.
pub(super) fn overrides(merged: &Value) -> CatalogueOverrides {
    EnneadSettings::deserialize(merged).ok().and_then(|it| it.catalogue).unwrap_or_default()
}

/// Puts the merged keys into the settings.
pub(super) fn apply(merged: &Value, settings: &mut Settings) {
    // Every key was read once already, alone; read together they fit as well.
    let own = EnneadSettings::deserialize(merged).unwrap_or_default();
    let number = |value: Option<NonZeroU32>, default| value.map_or(default, NonZeroU32::get);
    settings.max_turns = own.max_turns.unwrap_or(settings.max_turns);
    settings.max_tool_calls = number(own.max_tool_calls, settings.max_tool_calls);
    settings.max_parallel_calls = number(own.max_parallel_calls, settings.max_parallel_calls);
    settings.max_output_tokens = number(own.max_output_tokens, settings.max_output_tokens);
    settings.model_max_output_tokens =
        number(own.model_max_output_tokens, settings.model_max_output_tokens);
    settings.context_window = own.context_window.unwrap_or(settings.context_window);
    settings.prompt_caching = own.prompt_caching.unwrap_or(settings.prompt_caching);
    settings.run_token_budget = own.run_token_budget;
    settings.max_cost_micro_usd = own.max_cost_micro_usd;
    settings.hooks_fail_closed = own.fail_closed.unwrap_or(settings.hooks_fail_closed);
    settings.durability = own.durability.unwrap_or(settings.durability);
    settings.agents = own.agents.unwrap_or(settings.agents);
    settings.shell = own.shell.unwrap_or(settings.shell);
    settings.output = own.output.unwrap_or_default();
    let given = Parameters::deserialize(merged).unwrap_or_default();
    // The keys that other runtimes have may set the same.
    let before = std::mem::take(&mut settings.parameters);
    settings.parameters = Parameters {
        thinking: given.thinking.or(before.thinking),
        effort: given.effort.or(before.effort),
        ..given
    };
    settings.max_retries = own.max_retries.unwrap_or(settings.max_retries).min(MAX_RETRIES);
    if let Some(fallback) = own.fallback {
        settings.fallback = fallback.into_iter().map(FallbackModel::from).collect();
    }
    settings.approvals = own.approvals.unwrap_or_default();
    settings.http = own.http.unwrap_or(settings.http);
    if let Some(shapers) = own.shapers {
        settings.shapers = shapers;
    }
}
