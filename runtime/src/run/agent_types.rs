//! Types of sub-agents: those that are built in, and those that a session was opened with.

#[doc(hidden)]
pub mod going_on;
mod verifier;

use std::{num::NonZeroU32, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub(crate) use verifier::verifier;

use crate::{
    mcp::names::is_of_server,
    permission::PermissionMode,
    tool::{ASK_USER_QUESTION, Access, ToolEffect, ToolSpec},
};

/// Tools that only the session itself has, whatever a definition lists: they change its mode, which is the user's to
/// see.
const OF_THE_SESSION: [&str; 3] = [ASK_USER_QUESTION, "EnterPlanMode", "ExitPlanMode"];

/// The tool that waits for what is in the background: nobody but the session itself may be kept waiting.
const TASK_OUTPUT: &str = "TaskOutput";

/// The tool that sends messages to sub-agents: those of a session are instructed by it alone.
const SEND_MESSAGE: &str = "SendMessage";

/// The tools by which an agent keeps its notes.
const NOTE_TOOLS: [&str; 3] = ["Read", "Write", "Edit"];

/// Bytes of a name.
const MAX_NAME_BYTES: usize = 128;

/// A type of sub-agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AgentType {
    /// The name by which the model asks for it.
    pub name: Arc<str>,
    /// What it is for, in words for the model.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub description: Arc<str>,
    /// What its system prompt begins with.
    pub system_prompt: Arc<str>,
    /// The tools that it may use: names, `mcp__server`, `mcp__server__*`; `None`: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Arc<str>>>,
    /// The tools that it may not use, whatever it may use otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied_tools: Vec<Arc<str>>,
    /// The model that it asks; `None`: as the call says, else that of its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    /// Turns that it may take; `None`: as many as its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<NonZeroU32>,
    /// The permission mode; does not hold in a parent that asks less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<PermissionMode>,
    /// How much its model thinks; `None`: as its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Arc<str>>,
    /// Skills that it knows from its first turn on. The opening of the session puts their texts into the
    /// system prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<Arc<str>>,
    /// Where it keeps notes from one session to the next; `None`: it keeps none.
    #[doc(hidden)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<AgentMemory>,
    /// Whether it always works in the background.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_background: bool,
    /// Whether it may use tools that change something.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    changes: bool,
    /// Whether it may start agents itself where its tools do not name `Agent`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    nests: bool,
    /// Whether it answers once and is sent no message after that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_one_shot: bool,
}

/// Whose the notes of a type of sub-agent are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AgentMemory {
    /// The user's, for all working directories.
    User,
    /// The project's, to be shared with it.
    Project,
    /// The project's, for this user alone.
    Local,
}

/// Why no sub-agent of a type can be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoAgent {
    /// There is no type of this name.
    #[error("there is no agent type {name}; there are {known}")]
    Unknown {
        /// The name that the model asked for.
        name: String,
        /// Names of the types there are, with commas between them.
        known: String,
    },
    /// None of the tools that it may use is there.
    #[error("the agent {name} has no tools: there is no {tools}")]
    NoTools {
        /// Name of the type.
        name: String,
        /// The tools of its definition, with commas between them.
        tools: String,
    },
}

/// A definition of an agent that cannot be used, in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the agent `{name}` is ignored: {why}")]
#[non_exhaustive]
pub struct BadAgent {
    /// Name of the agent.
    pub name: String,
    /// What is wrong with it.
    pub why: String,
}

/// Name, system prompt and whether it changes something. One that changes nothing answers once.
const BUILT_IN: [(&str, &str, bool); 4] = [
    (
        "general-purpose",
        "You are a sub-agent. Do the task you are given with the tools you have, \
         then report what you found or did. Only your last message is read.",
        true,
    ),
    (
        "Explore",
        "You are a sub-agent that explores. Read and search, change nothing, and \
         report what you found. Only your last message is read.",
        false,
    ),
    (
        "Plan",
        "You are a sub-agent that plans. Read and search, change nothing, and \
         report a plan of concrete steps. Only your last message is read.",
        false,
    ),
    (
        "verification",
        "You are a sub-agent that verifies. Try to show that what you are told is \
         wrong; report what you tried and what came of it. Only your last message \
         is read.",
        true,
    ),
];

/// Returns the built-in types.
pub fn built_in() -> impl Iterator<Item = AgentType> {
    BUILT_IN.into_iter().map(|(name, prompt, changes)| AgentType {
        changes,
        is_one_shot: !changes,
        nests: true,
        ..AgentType::new(name, "", prompt)
    })
}

/// Returns the type of this name, of the session's own or built in; without a name, `general-purpose`.
///
/// # Errors
///
/// [`NoAgent`]; its text lists those there are.
pub fn agent_type(
    name: Option<&str>,
    own: &[AgentType],
    tools: &[Arc<ToolSpec>],
) -> Result<AgentType, NoAgent> {
    let name = name.unwrap_or("general-purpose");
    let all = || own.iter().cloned().chain(built_in());
    let found = all().find(|it| *it.name == *name);
    let found = found.or_else(|| all().find(|it| it.name.replace('-', "_") == name));
    let Some(found) = found else {
        let known = all().map(|it| it.name.to_string()).collect::<Vec<_>>().join(", ");
        return Err(NoAgent::Unknown { name: name.to_owned(), known });
    };
    match &found.tools {
        Some(named) if !named.is_empty() && !tools.iter().any(|it| found.may_use(it)) => {
            Err(NoAgent::NoTools { name: found.name.to_string(), tools: named.join(", ") })
        }
        _ => Ok(found),
    }
}

impl AgentType {
    /// Makes an agent that may use all tools but the one that starts agents.
    pub fn new(name: &str, description: &str, system_prompt: &str) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            system_prompt: system_prompt.into(),
            tools: None,
            denied_tools: Vec::new(),
            model: None,
            max_turns: None,
            mode: None,
            effort: None,
            skills: Vec::new(),
            memory: None,
            in_background: false,
            changes: true,
            nests: false,
            is_one_shot: false,
        }
    }

    /// Reads a definition: `description`, `prompt`, `tools`, `disallowedTools`, `model`, `maxTurns`,
    /// `permissionMode`, `effort`, `skills`, `memory`, `background`. Other fields have no effect.
    ///
    /// # Errors
    ///
    /// [`BadAgent`] when a field is missing or has another shape.
    pub fn read(name: &str, definition: &Value) -> Result<Self, BadAgent> {
        let bad = |why: &str| BadAgent { name: name.to_owned(), why: why.to_owned() };
        let is_named = !name.is_empty() && !name.starts_with('-') && name.len() <= MAX_NAME_BYTES;
        if !is_named || name.chars().any(|it| it.is_control() || it.is_whitespace()) {
            return Err(bad("its name is empty, too long, or has blanks"));
        }
        let fields = definition.as_object().ok_or_else(|| bad("it is not an object"))?;
        let text = |field: &str| match fields.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(_) => Err(bad(&format!("its `{field}` is not a text"))),
        };
        let description = text("description")?.ok_or_else(|| bad("it has no `description`"))?;
        let prompt = text("prompt")?.ok_or_else(|| bad("it has no `prompt`"))?;
        let list = |field: &str| names(fields, field).map_err(|why| bad(&why));
        let max_turns = match fields.get("maxTurns") {
            None | Some(Value::Null) => None,
            Some(number) => {
                let number = number.as_u64().and_then(|it| u32::try_from(it).ok());
                let number = number.and_then(NonZeroU32::new);
                Some(number.ok_or_else(|| bad("its `maxTurns` is not a positive number"))?)
            }
        };
        let mode = match text("permissionMode")? {
            None => None,
            Some(mode) => Some(
                serde_json::from_value(mode.into())
                    .map_err(|_| bad("its `permissionMode` is not known"))?,
            ),
        };
        let memory = match text("memory")? {
            None => None,
            Some(memory) => Some(
                serde_json::from_value(memory.into())
                    .map_err(|_| bad("its `memory` is none of `user`, `project` and `local`"))?,
            ),
        };
        let in_background = match fields.get("background") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(is_background)) => *is_background,
            Some(_) => return Err(bad("its `background` is neither true nor false")),
        };
        Ok(Self {
            in_background,
            memory,
            tools: list("tools")?,
            denied_tools: list("disallowedTools")?.unwrap_or_default(),
            model: text("model")?.filter(|it| !matches!(*it, "" | "inherit")).map(Into::into),
            max_turns,
            mode,
            effort: text("effort")?.map(Into::into),
            skills: list("skills")?.unwrap_or_default(),
            ..Self::new(name, description, prompt)
        })
    }

    /// Returns whether it answers once, so that it cannot be sent a message.
    pub(crate) fn is_one_shot(&self) -> bool {
        self.is_one_shot
    }

    /// Returns whether it is given this tool. It is given none that changes the mode of its session, asks a
    /// person, waits for what is in the background, or sends messages to agents.
    pub fn may_use(&self, tool: &ToolSpec) -> bool {
        // A tool of an embedder that has such a name is another one.
        if tool.access == Access::Person && OF_THE_SESSION.contains(&tool.name.as_str()) {
            return false;
        }
        if tool.access == Access::Free && [TASK_OUTPUT, SEND_MESSAGE].contains(&tool.name.as_str())
        {
            return false;
        }
        let covers = |list: &[Arc<str>]| list.iter().any(|it| covers(it, tool));
        let is_effect_allowed = self.changes || tool.effect == ToolEffect::ReadOnly;
        let is_listed = match &self.tools {
            Some(list) => covers(list) || list.iter().any(|it| &**it == "*"),
            None => self.nests || tool.name.as_str() != "Agent",
        };
        is_effect_allowed && is_listed && !covers(&self.denied_tools)
    }

    /// Returns whether it is given this tool for its notes alone: it keeps some, and its list leaves the tool out.
    pub fn uses_for_notes(&self, tool: &ToolSpec) -> bool {
        let is_of_files = NOTE_TOOLS.contains(&tool.name.as_str())
            && matches!(tool.access, Access::ReadPath { .. } | Access::WritePath { .. });
        let is_denied = self.denied_tools.iter().any(|it| covers(it, tool));
        self.memory.is_some() && is_of_files && !is_denied && !self.may_use(tool)
    }
}

/// Returns the list of the types that a session was opened with, as the model reads it; `None` when there are none.
pub fn listing<'a>(own: impl IntoIterator<Item = &'a AgentType>) -> Option<String> {
    let list: String =
        own.into_iter().map(|it| format!("\n- {}: {}", it.name, it.description)).collect();
    (!list.is_empty()).then(|| format!("\n\nAgents of this session:{list}"))
}

/// Whether an entry of a list of tools is for this tool.
fn covers(entry: &str, tool: &ToolSpec) -> bool {
    let name = tool.name.as_str();
    let entry = entry.split_once('(').map_or(entry, |(name, _)| name).trim();
    let entry = if entry == "Task" { "Agent" } else { entry };
    let server = entry.strip_suffix("__*").or_else(|| entry.strip_suffix('*')).unwrap_or(entry);
    let is_of = |server: &str| name.strip_prefix(server).is_some_and(|it| it.starts_with("__"));
    entry == name
        || is_of_server(&tool.name)
            && (is_of(server) || entry.ends_with('*') && name.starts_with(server))
}

/// A list of names, or names with commas between them.
fn names(fields: &Map<String, Value>, field: &str) -> Result<Option<Vec<Arc<str>>>, String> {
    let trimmed = |it: &str| (!it.trim().is_empty()).then(|| it.trim().into());
    match fields.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.split(',').filter_map(trimmed).collect())),
        Some(Value::Array(list)) => {
            let names: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
            let names = names.ok_or_else(|| format!("its `{field}` are not all texts"))?;
            Ok(Some(names.into_iter().filter_map(trimmed).collect()))
        }
        Some(_) => Err(format!("its `{field}` is not a list")),
    }
}

fn is_empty(text: &Arc<str>) -> bool {
    text.is_empty()
}

fn yes() -> bool {
    true
}

fn is_yes(yes: &bool) -> bool {
    *yes
}

#[cfg(test)]
mod tests;
