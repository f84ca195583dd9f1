//! What a handler reads on its standard input: one JSON object.

use std::{borrow::Cow, sync::Arc};

use serde::Serialize;
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};

use super::{AnsweredCall, Firing};
use crate::{
    ids::{AgentId, EntryId, SessionId},
    permission::PermissionMode,
};

/// What every input holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookContext {
    /// Id of the session that fires the hook.
    pub session: SessionId,
    /// Absolute path of its transcript.
    pub transcript_path: Arc<str>,
    /// The current working directory; absolute.
    pub cwd: Arc<str>,
    /// The mode in force.
    pub mode: PermissionMode,
    /// The line of the prompt that is worked on, where the program or a person wrote one.
    pub prompt: Option<EntryId>,
    /// The sub-agent and its type, inside one.
    pub agent: Option<(AgentId, Arc<str>)>,
}

/// What the handlers of one firing read, in its parts: the JSON is written where no session waits for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookInput {
    /// What every input holds.
    pub context: HookContext,
    /// The event, with its particulars.
    pub firing: Firing<'static>,
}

impl HookInput {
    /// Returns the input as one line of JSON without a newline at the end. Work is linear in its bytes.
    pub fn to_json(&self) -> String {
        input_json(&self.context, &self.firing)
    }

    /// Returns the bytes of the texts that may be long.
    pub fn n_bytes(&self) -> usize {
        match &self.firing {
            Firing::PreToolUse { input, .. } | Firing::PermissionRequest { input, .. } => {
                input.len()
            }
            Firing::PostToolUse { input, response: more, .. }
            | Firing::PostToolUseFailure { input, error: more, .. } => input.len() + more.len(),
            Firing::PreCompact { custom_instructions: text, .. }
            | Firing::PostCompact { summary: text, .. }
            | Firing::UserPromptSubmit { prompt: text }
            | Firing::SubagentStop { last_assistant_message: text, .. }
            | Firing::Stop { last_assistant_message: text, .. } => text.len(),
            Firing::PostToolBatch { calls } => {
                calls.iter().map(|it| it.input.len() + it.result.len()).sum()
            }
            Firing::Notification { message: text, .. } => text.len(),
            Firing::PermissionDenied { input, reason, .. } => input.len() + reason.len(),
            Firing::StopFailure { details, last_assistant_message: text, .. } => {
                details.len() + text.len()
            }
            Firing::SessionStart { .. }
            | Firing::SubagentStart
            | Firing::SessionEnd { .. }
            | Firing::InstructionsLoaded(_)
            | Firing::ConfigChange { .. }
            | Firing::FileChanged { .. }
            | Firing::CwdChanged { .. } => 0,
        }
    }
}

/// The input as one line of JSON without a newline at the end.
fn input_json(context: &HookContext, firing: &Firing<'_>) -> String {
    let mut line = HookLine {
        session_id: context.session.as_str(),
        transcript_path: &context.transcript_path,
        cwd: &context.cwd,
        hook_event_name: firing.event().name(),
        permission_mode: context.mode,
        prompt_id: context.prompt.as_ref().map(|it| it.as_str()),
        agent_id: context.agent.as_ref().map(|it| it.0.as_str()),
        agent_type: context.agent.as_ref().map(|it| &*it.1),
        ..HookLine::default()
    };
    match firing {
        Firing::PreToolUse { id, tool, input } => {
            line.tool_name = Some(tool.as_str());
            line.tool_input = raw(input);
            line.tool_use_id = Some(id.as_str());
        }
        Firing::PostToolUse { id, tool, input, response, duration_ms } => {
            line.tool_name = Some(tool.as_str());
            line.tool_input = raw(input);
            line.tool_use_id = Some(id.as_str());
            line.tool_response = raw(response);
            line.duration_ms = Some(*duration_ms);
        }
        Firing::PreCompact { trigger, custom_instructions } => {
            line.trigger = Some(trigger);
            line.custom_instructions = Some(custom_instructions);
        }
        Firing::PostCompact { trigger, summary } => {
            line.trigger = Some(trigger);
            line.compact_summary = Some(summary);
        }
        Firing::SessionStart { source, model } => {
            line.source = Some(source);
            line.model = Some(model);
        }
        Firing::ConfigChange { source, file } => {
            line.source = Some(source);
            line.file_path = Some(file);
        }
        Firing::PostToolBatch { calls } => line.tool_calls = Some(calls.iter().map(call).collect()),
        Firing::FileChanged { path, kind } => {
            line.file_path = Some(path);
            line.event = Some(kind.name());
        }
        Firing::UserPromptSubmit { prompt } => line.prompt = Some(prompt),
        Firing::Notification { message, kind } => {
            line.message = Some(message);
            line.notification_type = Some(kind);
        }
        Firing::SessionEnd { reason } => line.reason = Some(reason),
        Firing::SubagentStart => {}
        Firing::SubagentStop { active, last_assistant_message } => {
            line.stop_hook_active = Some(*active);
            line.agent_transcript_path = Some(&context.transcript_path);
            line.last_assistant_message = Some(last_assistant_message);
        }
        Firing::PermissionRequest { tool, input, suggestions } => {
            line.tool_name = Some(tool.as_str());
            line.tool_input = raw(input);
            line.permission_suggestions =
                Some(suggestions.iter().map(|it| update_of(it)).collect());
        }
        Firing::PostToolUseFailure { id, tool, input, error, is_interrupt, duration_ms } => {
            line.tool_name = Some(tool.as_str());
            line.tool_input = raw(input);
            line.tool_use_id = Some(id.as_str());
            line.error = Some(error);
            line.is_interrupt = Some(*is_interrupt);
            line.duration_ms = Some(*duration_ms);
        }
        Firing::PermissionDenied { id, tool, input, reason } => {
            line.tool_name = Some(tool.as_str());
            line.tool_input = raw(input);
            line.tool_use_id = Some(id.as_str());
            line.reason = Some(reason);
        }
        Firing::StopFailure { error, details, last_assistant_message } => {
            line.error = Some(error);
            line.error_details = Some(details);
            line.last_assistant_message = Some(last_assistant_message);
        }
        Firing::InstructionsLoaded(loaded) => {
            line.file_path = Some(&loaded.path);
            line.memory_type = Some(loaded.memory_type);
            line.load_reason = Some(loaded.reason);
            line.globs = Some(&*loaded.globs).filter(|it| !it.is_empty());
        }
        Firing::CwdChanged { old, new } => {
            line.old_cwd = Some(old);
            line.new_cwd = Some(new);
        }
        Firing::Stop { active, last_assistant_message } => {
            line.stop_hook_active = Some(*active);
            line.last_assistant_message = Some(last_assistant_message);
        }
    }
    // Strings, numbers and JSON that was parsed before cannot fail to be written.
    serde_json::to_string(&line).unwrap_or_default()
}

/// JSON as it is, anything else as a string.
fn raw(text: &str) -> Option<Cow<'_, RawValue>> {
    match serde_json::from_str::<&RawValue>(text) {
        Ok(raw) => Some(Cow::Borrowed(raw)),
        Err(_) => to_raw_value(text).ok().map(Cow::Owned),
    }
}

fn call(call: &AnsweredCall) -> CallLine<'_> {
    CallLine {
        tool_name: call.tool.as_str(),
        tool_input: raw(&call.input),
        tool_use_id: call.id.as_str(),
        tool_response: &call.result,
    }
}

#[derive(Serialize)]
struct CallLine<'a> {
    tool_name: &'a str,
    tool_input: Option<Cow<'a, RawValue>>,
    tool_use_id: &'a str,
    tool_response: &'a str,
}

#[derive(Default, Serialize)]
struct HookLine<'a> {
    session_id: &'a str,
    transcript_path: &'a str,
    cwd: &'a str,
    hook_event_name: &'static str,
    permission_mode: PermissionMode,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_input: Option<Cow<'a, RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_use_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_response: Option<Cow<'a, RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    notification_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trigger: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    custom_instructions: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_hook_active: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_assistant_message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_transcript_path: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compact_summary: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_details: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<Vec<CallLine<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_path: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    load_reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    globs: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    old_cwd: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_cwd: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_interrupt: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    permission_suggestions: Option<Vec<Value>>,
}

/// Makes an update of permissions from a rule that would let a call pass.
pub fn update_of(rule: &str) -> Value {
    let (tool, content) = match rule.strip_suffix(')').and_then(|it| it.split_once('(')) {
        Some((tool, content)) => (tool, Some(content)),
        None => (rule, None),
    };
    let mut rule = json!({"toolName": tool});
    if let Some(content) = content {
        rule["ruleContent"] = content.into();
    }
    json!({"type": "addRules", "rules": [rule], "behavior": "allow", "destination": "session"})
}

#[cfg(test)]
mod tests;
