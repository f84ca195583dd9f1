//! What a handler reads on its standard input: one JSON object.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};

use super::HookEvent;
use crate::{
    ids::{AgentId, SessionId, ToolName, ToolUseId},
    permission::PermissionMode,
};

/// What every input holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookContext<'a> {
    /// Id of the session that fires the hook.
    pub session: &'a SessionId,
    /// Absolute path of its transcript.
    pub transcript_path: &'a str,
    /// The current working directory; absolute.
    pub cwd: &'a str,
    /// The mode in force.
    pub mode: PermissionMode,
    /// The sub-agent and its type, inside one.
    pub agent: Option<(&'a AgentId, &'a str)>,
}

/// The event that fires a hook, with its particulars.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Firing<'a> {
    /// A call is about to be decided about.
    PreToolUse {
        /// Id of the tool use, as the model issued it.
        id: &'a ToolUseId,
        /// Name of the tool that the call uses.
        tool: &'a ToolName,
        /// Input of the call, as JSON text.
        input: &'a str,
    },
    /// A tool call ended without an error.
    PostToolUse {
        /// Id of the tool use, as the model issued it.
        id: &'a ToolUseId,
        /// Name of the tool that the call uses.
        tool: &'a ToolName,
        /// JSON text, as it was run.
        input: &'a str,
        /// The structured result as JSON text; a text that is no JSON is given as a string.
        response: &'a str,
        /// Wall-clock time of the call, in milliseconds.
        duration_ms: u64,
    },
    /// A compaction is about to begin.
    PreCompact {
        /// What caused the compaction: `manual` or `auto`.
        trigger: &'a str,
        /// What the user wants kept.
        custom_instructions: &'a str,
    },
    /// A compaction is over.
    PostCompact {
        /// What caused the compaction: `manual` or `auto`.
        trigger: &'a str,
        /// What is in place of what was summed up.
        summary: &'a str,
    },
    /// A session is about to answer its first prompt in this process.
    SessionStart {
        /// `startup`, or `resume` where it goes on with an earlier conversation.
        source: &'a str,
        /// The model that is asked.
        model: &'a str,
    },
    /// A prompt is about to be answered.
    UserPromptSubmit {
        /// Its text.
        prompt: &'a str,
    },
    /// A sub-agent is about to begin; the context names it.
    SubagentStart,
    /// A sub-agent is about to end by itself; the context names it.
    SubagentStop {
        /// A hook has already held this agent.
        active: bool,
        /// The text of the last answer.
        last_assistant_message: &'a str,
    },
    /// Somebody is about to be asked about a call.
    PermissionRequest {
        /// Name of the tool that the call uses.
        tool: &'a ToolName,
        /// Input of the call, as JSON text.
        input: &'a str,
        /// Rules that would settle it for the future.
        suggestions: &'a [String],
    },
    /// A tool call ran and failed.
    PostToolUseFailure {
        /// Id of the tool use, as the model issued it.
        id: &'a ToolUseId,
        /// Name of the tool that the call uses.
        tool: &'a ToolName,
        /// JSON text, as it was run.
        input: &'a str,
        /// What the model would read.
        error: &'a str,
        /// Whether it was stopped from outside.
        is_interrupt: bool,
        /// Wall-clock time of the call, in milliseconds.
        duration_ms: u64,
    },
    /// A run is about to end by itself.
    Stop {
        /// A Stop hook has already held this run.
        active: bool,
        /// The text of the last answer.
        last_assistant_message: &'a str,
    },
}

impl Firing<'_> {
    /// Returns the event that is fired.
    pub fn event(&self) -> HookEvent {
        match self {
            Firing::PreToolUse { .. } => HookEvent::PreToolUse,
            Firing::PostToolUse { .. } => HookEvent::PostToolUse,
            Firing::PreCompact { .. } => HookEvent::PreCompact,
            Firing::Stop { .. } => HookEvent::Stop,
            Firing::PostCompact { .. } => HookEvent::PostCompact,
            Firing::SessionStart { .. } => HookEvent::SessionStart,
            Firing::UserPromptSubmit { .. } => HookEvent::UserPromptSubmit,
            Firing::SubagentStart => HookEvent::SubagentStart,
            Firing::SubagentStop { .. } => HookEvent::SubagentStop,
            Firing::PermissionRequest { .. } => HookEvent::PermissionRequest,
            Firing::PostToolUseFailure { .. } => HookEvent::PostToolUseFailure,
        }
    }

    /// What matchers are held against, in an agent of this type; `None` means that every handler runs.
    pub fn subject<'a>(&'a self, agent_type: &'a str) -> Option<&'a str> {
        match self {
            Firing::PreToolUse { tool, .. }
            | Firing::PermissionRequest { tool, .. }
            | Firing::PostToolUseFailure { tool, .. }
            | Firing::PostToolUse { tool, .. } => Some(tool.as_str()),
            Firing::PreCompact { trigger, .. } | Firing::PostCompact { trigger, .. } => {
                Some(trigger)
            }
            Firing::SessionStart { source, .. } => Some(source),
            Firing::SubagentStart | Firing::SubagentStop { .. } => Some(agent_type),
            Firing::UserPromptSubmit { .. } | Firing::Stop { .. } => None,
        }
    }
}

/// The input as one line of JSON without a newline at the end.
pub fn input_json(context: &HookContext<'_>, firing: &Firing<'_>) -> String {
    let mut line = Line {
        session_id: context.session.as_str(),
        transcript_path: context.transcript_path,
        cwd: context.cwd,
        hook_event_name: firing.event().name(),
        permission_mode: context.mode,
        agent_id: context.agent.map(|(id, _)| id.as_str()),
        agent_type: context.agent.map(|(_, kind)| kind),
        ..Line::default()
    };
    match *firing {
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
            line.duration_ms = Some(duration_ms);
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
        Firing::UserPromptSubmit { prompt } => line.prompt = Some(prompt),
        Firing::SubagentStart => {}
        Firing::SubagentStop { active, last_assistant_message } => {
            line.stop_hook_active = Some(active);
            line.agent_transcript_path = Some(context.transcript_path);
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
            line.is_interrupt = Some(is_interrupt);
            line.duration_ms = Some(duration_ms);
        }
        Firing::Stop { active, last_assistant_message } => {
            line.stop_hook_active = Some(active);
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

#[derive(Default, Serialize)]
struct Line<'a> {
    session_id: &'a str,
    transcript_path: &'a str,
    cwd: &'a str,
    hook_event_name: &'static str,
    permission_mode: PermissionMode,
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
    is_interrupt: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    permission_suggestions: Option<Vec<Value>>,
}

/// A rule that would let a call pass, as an update of permissions.
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
mod tests {
    use super::*;

    #[track_caller]
    fn check(firing: &Firing<'_>, expected: &str) {
        let session = SessionId::from("s");
        let context = HookContext {
            session: &session,
            transcript_path: "/t.jsonl",
            cwd: "/w",
            mode: PermissionMode::AcceptEdits,
            agent: None,
        };
        let common = r#"{"session_id":"s","transcript_path":"/t.jsonl","cwd":"/w","#;
        assert_eq!(input_json(&context, firing), format!("{common}{expected}}}"));
    }

    #[test]
    fn input_names_what_happened() {
        let (id, tool) = (ToolUseId::from("t1"), ToolName::from("Bash"));
        check(
            &Firing::PreToolUse { id: &id, tool: &tool, input: r#"{"command": "ls"}"# },
            r#""hook_event_name":"PreToolUse","permission_mode":"acceptEdits","tool_name":"Bash","tool_input":{"command": "ls"},"tool_use_id":"t1""#,
        );
        check(
            &Firing::PostToolUse {
                id: &id,
                tool: &tool,
                input: "{}",
                response: "no json",
                duration_ms: 7,
            },
            r#""hook_event_name":"PostToolUse","permission_mode":"acceptEdits","tool_name":"Bash","tool_input":{},"tool_use_id":"t1","tool_response":"no json","duration_ms":7"#,
        );
        check(
            &Firing::PreCompact { trigger: "auto", custom_instructions: "" },
            r#""hook_event_name":"PreCompact","permission_mode":"acceptEdits","trigger":"auto","custom_instructions":"""#,
        );
        check(
            &Firing::Stop { active: true, last_assistant_message: "done" },
            r#""hook_event_name":"Stop","permission_mode":"acceptEdits","stop_hook_active":true,"last_assistant_message":"done""#,
        );
    }
}
