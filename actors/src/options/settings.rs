//! Settings that an embedder gives at the call, typed.

use std::{num::NonZeroU32, time::Duration};

use ennead_runtime::{
    hook::{HookEvent, OnFailure},
    permission::{PermissionMode, RuleKind, RuleText, Scope},
    step1_settings_resolution::{Durability, merge_values},
    step7_permission_gate::rule::Rule,
};
use serde_json::{Map, Value, json};

use super::OptionError;

/// Settings with the rank of flags of the command: above the files of the user and the repository, below
/// those of an organisation.
///
/// What has no method here is given as JSON, in the shape of a settings file, with
/// [`Settings::from_json`].
///
/// ```
/// use std::num::NonZeroU32;
/// use ennead::{permission::PermissionMode, settings::Settings};
///
/// let settings = Settings::new()
///     .model("claude-sonnet-4-5")
///     .max_turns(NonZeroU32::new(50).expect("not 0"))
///     .mode(PermissionMode::AcceptEdits)
///     .allow("Bash(cargo test *)")?
///     .deny("Read(.env)")?;
/// assert!(Settings::new().deny("Bash(rm").is_err(), "a rule that cannot be read is refused at the call");
/// # Ok::<(), ennead::OptionError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings(Map<String, Value>);

impl Settings {
    /// Returns empty settings, so that those of files and the defaults apply.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads settings in the shape of a settings file. Keys that cannot be read are ignored, as in a file, and an alert
    /// says so with the first run.
    ///
    /// # Errors
    ///
    /// [`OptionError::NotAnObject`].
    pub fn from_json(settings: Value) -> Result<Self, OptionError> {
        match settings {
            Value::Object(map) => Ok(Self(map)),
            _ => Err(OptionError::NotAnObject),
        }
    }

    /// Merges other settings over these as the layers of settings files are merged: objects key by key, lists of rules
    /// and hooks one after the other, all else is replaced. So nothing that was denied is allowed by what comes later.
    #[must_use]
    pub fn over(self, other: Settings) -> Self {
        Self(merge_values([&self.0, &other.0]))
    }

    /// Sets the model that is asked.
    #[must_use]
    pub fn model(self, model: &str) -> Self {
        self.with("model", model.into())
    }

    /// Sets the models to turn to when the first cannot answer, in order.
    #[must_use]
    pub fn fallback_models<'a>(self, models: impl IntoIterator<Item = &'a str>) -> Self {
        self.with("fallbackModel", models.into_iter().collect())
    }

    /// Sets the permission mode that the session starts in. Settings of an organisation may choose another.
    #[must_use]
    pub fn mode(self, mode: PermissionMode) -> Self {
        self.within("permissions", "defaultMode", json!(mode))
    }

    /// Allows what this rule matches: `Tool` or `Tool(specifier)`.
    ///
    /// # Errors
    ///
    /// [`OptionError::Rule`] when it cannot be read.
    pub fn allow(self, rule: &str) -> Result<Self, OptionError> {
        self.rule(RuleKind::Allow, "allow", rule)
    }

    /// Denies what this rule matches, whatever allows it.
    ///
    /// # Errors
    ///
    /// As [`Settings::allow`].
    pub fn deny(self, rule: &str) -> Result<Self, OptionError> {
        self.rule(RuleKind::Deny, "deny", rule)
    }

    /// Adds a rule whose calls the approver is asked about, whatever allows them.
    ///
    /// # Errors
    ///
    /// As [`Settings::allow`].
    pub fn ask(self, rule: &str) -> Result<Self, OptionError> {
        self.rule(RuleKind::Ask, "ask", rule)
    }

    /// Counts this directory as part of the workspace. Absolute, or relative to the working directory.
    #[must_use]
    pub fn additional_directory(self, directory: &str) -> Self {
        self.push("permissions", "additionalDirectories", directory.into())
    }

    /// Sets a variable for commands, hooks and servers.
    #[must_use]
    pub fn env(self, name: &str, value: &str) -> Self {
        self.within("env", name, value.into())
    }

    /// Sets the maximum number of turns of a run. Defaults to 25.
    #[must_use]
    pub fn max_turns(self, max_turns: NonZeroU32) -> Self {
        self.within("ennead", "maxTurns", json!(max_turns))
    }

    /// Sets the maximum number of tool calls in a turn.
    #[must_use]
    pub fn max_tool_calls(self, max_tool_calls: NonZeroU32) -> Self {
        self.within("ennead", "maxToolCalls", json!(max_tool_calls))
    }

    /// Sets the maximum number of tool calls that run at once.
    #[must_use]
    pub fn max_parallel_calls(self, max_parallel_calls: NonZeroU32) -> Self {
        self.within("ennead", "maxParallelCalls", json!(max_parallel_calls))
    }

    /// Sets the maximum number of tokens of an answer.
    #[must_use]
    pub fn max_output_tokens(self, max_output_tokens: NonZeroU32) -> Self {
        self.within("ennead", "maxOutputTokens", json!(max_output_tokens))
    }

    /// Sets the number of tokens that a request and its answer may have together, for a model that the
    /// catalogue does not know.
    #[must_use]
    pub fn context_window(self, tokens: u64) -> Self {
        self.within("ennead", "contextWindow", tokens.into())
    }

    /// Ends a run when it has used this many tokens.
    #[must_use]
    pub fn run_token_budget(self, tokens: u64) -> Self {
        self.within("ennead", "runTokenBudget", tokens.into())
    }

    /// Sets the maximum number of sub-agents of the whole tree, ended ones included. Defaults to 50.
    #[must_use]
    pub fn max_agents(self, max_agents: NonZeroU32) -> Self {
        self.group("ennead", |own| match own.entry("agents").or_insert_with(|| json!({})) {
            Value::Object(agents) => drop(agents.insert("maxInTree".to_owned(), json!(max_agents))),
            other => *other = json!({ "maxInTree": max_agents }),
        })
    }

    /// Sets how often a call of the model is retried, at most 15.
    #[must_use]
    pub fn max_retries(self, retries: u32) -> Self {
        self.within("ennead", "maxRetries", retries.into())
    }

    /// Sets when lines of the transcript are forced to disk.
    #[must_use]
    pub fn durability(self, durability: Durability) -> Self {
        self.within("ennead", "durability", json!(durability))
    }

    /// Adds a hook of this process.
    pub(super) fn hook(
        self,
        event: HookEvent,
        matcher: &str,
        limit: Duration,
        name: &str,
        on_failure: OnFailure,
    ) -> Self {
        // A limit of 0 would count as none.
        let seconds = limit.as_secs_f64().max(0.001);
        let mut handler = json!({ "type": "in_process", "command": name, "timeout": seconds });
        if on_failure == OnFailure::Block {
            handler["onFailure"] = "block".into();
        }
        self.push("hooks", event.name(), json!({ "matcher": matcher, "hooks": [handler] }))
    }

    /// Returns the value of a key, as it is in JSON.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// Returns the text of a settings file; `None` when nothing is set.
    pub(crate) fn text(&self) -> Option<String> {
        // A map with keys of text is written without fail.
        (!self.0.is_empty()).then(|| serde_json::to_string(&self.0).unwrap_or_default())
    }

    fn with(mut self, key: &str, value: Value) -> Self {
        self.0.insert(key.to_owned(), value);
        self
    }

    fn within(self, group: &str, key: &str, value: Value) -> Self {
        self.group(group, |it| drop(it.insert(key.to_owned(), value)))
    }

    fn push(self, group: &str, key: &str, value: Value) -> Self {
        self.group(group, |it| match it.entry(key).or_insert_with(|| json!([])) {
            Value::Array(list) => list.push(value),
            other => *other = json!([value]),
        })
    }

    fn rule(self, kind: RuleKind, key: &str, text: &str) -> Result<Self, OptionError> {
        Rule::parse(&RuleText::new(kind, Scope::CliArg, text))?;
        Ok(self.push("permissions", key, text.into()))
    }

    /// Changes the object of this key, made if there is none.
    fn group(mut self, name: &str, change: impl FnOnce(&mut Map<String, Value>)) -> Self {
        let mut group = match self.0.remove(name) {
            Some(Value::Object(group)) => group,
            _ => Map::new(),
        };
        change(&mut group);
        self.with(name, Value::Object(group))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: TRN-4, PRM-1
    #[test]
    fn what_comes_later_takes_away_no_rule_no_hook_and_no_limit() {
        let hook = |command: &str| json!([{"hooks": [{"type": "command", "command": command}]}]);
        let first = json!({
            "model": "a", "fallbackModel": ["x"], "permissions": {"deny": ["Bash(rm *)"]},
            "hooks": {"Stop": hook("guard")}, "ennead": {"agents": {"maxInTree": 5}},
        });
        let later = json!({
            "model": "b", "fallbackModel": ["y"], "permissions": {"deny": ["Read(.env)"], "allow": ["Bash"]},
            "hooks": {"Stop": hook("other")}, "ennead": {"agents": {"maxDepth": 1}},
        });
        let read = |it| Settings::from_json(it).unwrap();
        let merged = Value::Object(read(first).over(read(later)).0);
        let both = [hook("guard")[0].clone(), hook("other")[0].clone()];
        let expected = json!({
            "model": "b", "fallbackModel": ["y"],
            "permissions": {"deny": ["Bash(rm *)", "Read(.env)"], "allow": ["Bash"]},
            "hooks": {"Stop": both}, "ennead": {"agents": {"maxInTree": 5, "maxDepth": 1}},
        });
        assert_eq!(merged, expected);
    }
}
