//! The line that ends a run, and the first line of one.

use std::collections::{BTreeMap, BTreeSet};

use ennead::{
    Event, RunEnd, RunOutcome, SessionHandle, permission::PermissionMode, tool::AgentType,
};
use ennead_runtime::{
    catalogue::Catalogue,
    ids::{AgentId, ToolUseId},
    mcp::names::prefix,
};
use serde_json::{Value, json};

use super::{frames::Frame, skills::Skills, structured::Structured};
use crate::print::{ModelRecord, UNKNOWN_MODEL, describe_model, result_object, why};

/// What the result of a run is made of, in addition to its outcome.
#[derive(Clone, Debug, Default)]
pub struct RunNotes {
    /// The name that the program gave the prompt.
    pub prompt: Option<String>,
    /// Whether the program marked the prompt as written by a person.
    pub is_human: bool,
    /// Whether the session began the run by itself, since an agent in the background has ended.
    pub is_woken: bool,
    /// Whether a call was at work when the last event came.
    pub in_call: bool,
    /// Calls of sub-agents that were denied, oldest first, as results name them.
    pub denied_below: Vec<Value>,
    /// Calls of sub-agents, by agent and id, as results name them.
    asked_below: BTreeMap<(AgentId, ToolUseId), Value>,
}

impl RunNotes {
    /// Makes the notes of a prompt. `prompt` is its name in the program; `is_human` is whether a person wrote it.
    pub(crate) fn of_prompt(prompt: Option<String>, is_human: bool) -> Self {
        Self { prompt, is_human, ..Self::default() }
    }

    /// Makes the notes of a run that the session began by itself.
    pub(crate) fn woken() -> Self {
        Self { is_woken: true, ..Self::default() }
    }

    /// Takes note of an event of the run.
    pub fn observe(&mut self, event: &Event) {
        match event {
            Event::ToolStarted { .. } | Event::PermissionAsked { .. } => self.in_call = true,
            Event::TurnStarted { .. } => self.in_call = false,
            Event::Agent { agent, event } => self.observe_below(agent, event),
            _ => {}
        }
    }

    fn observe_below(&mut self, agent: &AgentId, event: &Event) {
        match event {
            Event::Agent { agent, event } => self.observe_below(agent, event),
            Event::MessageRecorded { message } => {
                for (id, tool, input) in message.message.tool_uses() {
                    let input: Value = serde_json::from_str(input).unwrap_or_default();
                    let call = json!({"tool_name": tool, "tool_use_id": id, "tool_input": input});
                    self.asked_below.insert((agent.clone(), id.clone()), call);
                }
            }
            Event::PermissionDecided { call, allowed, .. } => {
                let asked = self.asked_below.remove(&(agent.clone(), call.clone()));
                self.denied_below.extend(asked.filter(|_| !allowed));
            }
            _ => {}
        }
    }
}

/// Makes the lines that end a run: for a failure of the model first a message that names it.
pub(crate) fn of_outcome(
    frame: &mut Frame,
    session: &SessionHandle,
    outcome: &RunOutcome,
    record: &ModelRecord,
    notes: &RunNotes,
    structured: Option<&Structured>,
    model: &str,
) -> Vec<Value> {
    let mut result = result_object(outcome, session.id(), record, &session.output());
    result["uuid"] = frame.uuid().into();
    result["terminal_reason"] = terminal_reason(outcome.end, record, notes).into();
    if let Some(denials) = result["permission_denials"].as_array_mut() {
        denials.extend(notes.denied_below.iter().cloned());
    }
    if let Some(models) = result["modelUsage"].as_object_mut()
        && let Some(mut used) = models.remove(UNKNOWN_MODEL)
    {
        // Its settings were not read, and the model is the one that was chosen.
        describe_model(&mut used, Catalogue::built_in().find(model));
        models.insert(model.to_owned(), used);
    }
    let mut lines = Vec::new();
    if let (true, "success", Some(failure)) =
        (!outcome.end.is_success(), result["subtype"].as_str().unwrap_or_default(), &record.failure)
    {
        let text = format!("API Error: {}", why(outcome));
        lines.push(frame.synthetic(&text, category(&failure.class)));
        result["result"] = text.into();
    }
    if outcome.end == RunEnd::Compacted {
        // Why there is no summary, if there is none.
        result["result"] = outcome.error.clone().unwrap_or_default().into();
    } else if let Some(structured) = structured {
        structured.finish(outcome.end, &mut result);
    }
    note_prompt(&mut result, notes);
    lines.push(result);
    lines
}

/// Returns the line that ends a command which no model was asked about, and which did what it is for.
pub fn of_command(frame: &mut Frame, notes: &RunNotes) -> Value {
    let mut result = of_error(frame, "", notes);
    super::frames::merge(
        &mut result,
        json!({"subtype": "success", "is_error": false, "result": "", "terminal_reason": "completed"}),
    );
    if let Some(fields) = result.as_object_mut() {
        fields.remove("errors");
    }
    result
}

/// Returns the line that ends a run which left no outcome, or a session that could not be opened.
pub fn of_error(frame: &mut Frame, error: &str, notes: &RunNotes) -> Value {
    let mut result = json!({
        "type": "result",
        "subtype": "error_during_execution",
        "is_error": true,
        "duration_ms": 0,
        "duration_api_ms": 0,
        "num_turns": 0,
        "session_id": frame.session(),
        "uuid": frame.uuid(),
        "total_cost_usd": 0.0,
        "usage": super::frames::usage(&Default::default()),
        "modelUsage": {},
        "permission_denials": [],
        "stop_reason": null,
        "errors": [error],
    });
    note_prompt(&mut result, notes);
    result
}

fn note_prompt(result: &mut Value, notes: &RunNotes) {
    if let Some(prompt) = &notes.prompt {
        result["user_message_uuid"] = prompt.as_str().into();
        result["user_message_uuids"] = json!([prompt]);
    }
    if notes.is_woken {
        result["origin"] = json!({"kind": "task-notification"});
    }
    if notes.is_human {
        result["origin"] = json!({"kind": "human"});
    }
}

fn terminal_reason(end: RunEnd, record: &ModelRecord, notes: &RunNotes) -> &'static str {
    match end {
        RunEnd::NoPendingTools | RunEnd::ExplicitStop | RunEnd::Compacted => "completed",
        RunEnd::CostLimit => "max_budget_usd",
        RunEnd::Interrupted if notes.in_call => "aborted_tools",
        RunEnd::Interrupted => "aborted_streaming",
        RunEnd::Error if record.failure.is_some() => "api_error",
        end => end.code(),
    }
}

/// What SDKs call a failure of the model's server.
fn category(class: &str) -> &'static str {
    match class {
        "auth" => "authentication_failed",
        "billing" => "billing_error",
        "rate_limit" | "quota" => "rate_limit",
        "invalid_request" | "context_overflow" | "output_overflow" => "invalid_request",
        "overloaded" | "internal" | "unreachable" | "bad_answer" => "server_error",
        _ => "unknown",
    }
}

/// What is known of a session before its run begins.
#[derive(Clone, Debug)]
pub struct SessionFacts {
    /// The working directory.
    pub cwd: String,
    /// The model that is asked.
    pub model: String,
    /// The permission mode.
    pub mode: PermissionMode,
    /// Where the key of the model server comes from.
    pub key_source: &'static str,
    /// Tools that rules deny as a whole, so that no model is offered them.
    pub denied: Vec<String>,
    /// Names of the tools that the model is offered, unless their servers are disabled.
    pub tools: Vec<String>,
    /// The MCP servers that the program has switched off.
    pub disabled_servers: BTreeSet<String>,
    /// The MCP servers that run in the program, and their states.
    pub servers: Vec<Value>,
    /// Names of beta features that requests carry.
    pub betas: Vec<String>,
    /// Names and descriptions of the agent types.
    pub agents: Vec<(String, String)>,
    /// Plug-ins, with where they lie.
    pub plugins: Vec<Value>,
    /// Directories that hold no plug-in, and why.
    pub plugin_errors: Vec<Value>,
}

impl SessionFacts {
    /// Adds types of sub-agents; those that are known stay as they are.
    pub fn add_agents(&mut self, agents: &[AgentType]) {
        for agent in agents {
            let name = agent.name.to_string();
            self.agents.retain(|(known, _)| *known != name);
            self.agents.push((name, agent.description.to_string()));
        }
    }

    /// Returns the types of sub-agents, each with what it is for.
    pub(crate) fn described_agents(&self) -> Vec<Value> {
        let described = |(name, description): &(String, String)| json!({"name": name, "description": description});
        self.agents.iter().map(described).collect()
    }

    /// Returns the names of the tools that the model is offered.
    pub fn offered_tools(&self) -> Vec<&str> {
        let withheld: Vec<String> = self.disabled_servers.iter().map(|it| prefix(it)).collect();
        let is_offered = |tool: &&str| !withheld.iter().any(|it| tool.starts_with(it.as_str()));
        self.tools.iter().map(String::as_str).filter(is_offered).collect()
    }

    /// Returns the first line of a run, with the states of all MCP servers.
    pub(crate) fn init(&self, frame: &mut Frame, servers: &[Value], skills: &Skills) -> Value {
        let mut fields = json!({
            "cwd": self.cwd,
            "tools": self.offered_tools(),
            "mcp_servers": servers,
            "model": self.model,
            "permissionMode": self.mode,
            "slash_commands": skills.commands(),
            "apiKeySource": self.key_source,
            "claude_code_version": super::COMPATIBLE_VERSION,
            "ennead_version": env!("CARGO_PKG_VERSION"),
            "output_style": "default",
            "agents": self.agents.iter().map(|(name, _)| name).collect::<Vec<_>>(),
            "skills": skills.names(),
            "plugins": self.plugins,
        });
        if !self.betas.is_empty() {
            fields["betas"] = self.betas.as_slice().into();
        }
        if !self.plugin_errors.is_empty() {
            fields["plugin_errors"] = self.plugin_errors.as_slice().into();
        }
        frame.system("init", fields)
    }
}
