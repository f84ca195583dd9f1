//! The keys under `ennead`: numbers and switches that no other runtime has.

use std::num::NonZeroU32;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{AgentLimits, Durability, Settings, ShaperSettings};

/// All of them, none required.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Own {
    max_turns: Option<NonZeroU32>,
    max_tool_calls: Option<NonZeroU32>,
    max_parallel_calls: Option<NonZeroU32>,
    max_output_tokens: Option<NonZeroU32>,
    context_window: Option<u64>,
    run_token_budget: Option<u64>,
    fail_closed: Option<bool>,
    durability: Option<Durability>,
    shapers: Option<ShaperSettings>,
    agents: Option<AgentLimits>,
}

/// Whether an object of one key can be read. `group` is `shapers` or `agents`.
pub(super) fn fits(group: Option<&str>, one: Map<String, Value>) -> bool {
    let value = Value::Object(one);
    match group {
        Some("shapers") => ShaperSettings::deserialize(value).is_ok(),
        Some("agents") => AgentLimits::deserialize(value).is_ok(),
        _ => Own::deserialize(value).is_ok(),
    }
}

/// Puts the merged keys into the settings.
pub(super) fn apply(merged: &Value, settings: &mut Settings) {
    // Every key was read once already, alone; read together they fit as well.
    let own = Own::deserialize(merged).unwrap_or_default();
    let number = |value: Option<NonZeroU32>, default| value.map_or(default, NonZeroU32::get);
    settings.max_turns = own.max_turns.unwrap_or(settings.max_turns);
    settings.max_tool_calls = number(own.max_tool_calls, settings.max_tool_calls);
    settings.max_parallel_calls = number(own.max_parallel_calls, settings.max_parallel_calls);
    settings.max_output_tokens = number(own.max_output_tokens, settings.max_output_tokens);
    settings.context_window = own.context_window.unwrap_or(settings.context_window);
    settings.run_token_budget = own.run_token_budget;
    settings.hooks_fail_closed = own.fail_closed.unwrap_or(settings.hooks_fail_closed);
    settings.durability = own.durability.unwrap_or(settings.durability);
    settings.agents = own.agents.unwrap_or(settings.agents);
    if let Some(shapers) = own.shapers {
        settings.shapers = shapers;
    }
}
