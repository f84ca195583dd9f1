//! Types of sub-agents: those that are built in, and those that a session was opened with.

use std::{num::NonZeroU32, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    mcp::names::is_of_server,
    permission::PermissionMode,
    tool::{Access, ToolEffect, ToolSpec},
};

/// Tools that only the session itself has, whatever a definition lists: they change its mode, which is the user's to
/// see.
const OF_THE_SESSION: [&str; 3] = ["AskUserQuestion", "EnterPlanMode", "ExitPlanMode"];

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
    /// Whether it always works in the background.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_background: bool,
    /// Whether it may use tools that change something.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    changes: bool,
    /// Whether it may start agents itself where its tools do not name `Agent`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    nests: bool,
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

/// Name, system prompt and whether it changes something.
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
            in_background: false,
            changes: true,
            nests: false,
        }
    }

    /// Reads a definition: `description`, `prompt`, `tools`, `disallowedTools`, `model`, `maxTurns`,
    /// `permissionMode`, `effort`, `skills`, `background`. Other fields have no effect.
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
        let fields = definition.as_object().ok_or_else(|| bad("it is no object"))?;
        let text = |field: &str| match fields.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(_) => Err(bad(&format!("its `{field}` is no text"))),
        };
        let description = text("description")?.ok_or_else(|| bad("it has no `description`"))?;
        let prompt = text("prompt")?.ok_or_else(|| bad("it has no `prompt`"))?;
        let list = |field: &str| names(fields, field).map_err(|why| bad(&why));
        let max_turns = match fields.get("maxTurns") {
            None | Some(Value::Null) => None,
            Some(number) => {
                let number = number.as_u64().and_then(|it| u32::try_from(it).ok());
                let number = number.and_then(NonZeroU32::new);
                Some(number.ok_or_else(|| bad("its `maxTurns` is no positive number"))?)
            }
        };
        let mode = match text("permissionMode")? {
            None => None,
            Some(mode) => Some(
                serde_json::from_value(mode.into())
                    .map_err(|_| bad("its `permissionMode` is not known"))?,
            ),
        };
        let in_background = match fields.get("background") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(is_background)) => *is_background,
            Some(_) => return Err(bad("its `background` is neither true nor false")),
        };
        Ok(Self {
            in_background,
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

    /// Returns whether it is given this tool. It is given none that changes the mode of its session or
    /// asks a person.
    pub fn may_use(&self, tool: &ToolSpec) -> bool {
        // A tool of an embedder that has such a name is another one.
        if tool.access == Access::Person && OF_THE_SESSION.contains(&tool.name.as_str()) {
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
}

/// Returns the list of the types that a session was opened with, as the model reads it; `None` when there are none.
pub fn listing(own: &[AgentType]) -> Option<String> {
    let list = own.iter().map(|it| format!("\n- {}: {}", it.name, it.description));
    (!own.is_empty()).then(|| format!("\n\nAgents of this session:{}", list.collect::<String>()))
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
        Some(_) => Err(format!("its `{field}` is no list")),
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
mod tests {
    use serde_json::json;

    use super::*;
    use crate::turn::tests::script::tools;

    fn found(name: Option<&str>, own: &[AgentType]) -> Result<String, String> {
        let found = agent_type(name, own, &tools());
        found.map(|it| it.name.to_string()).map_err(|it| it.to_string())
    }

    // REQ: AGT-5
    #[test]
    fn types_are_found_by_name_and_an_unknown_one_is_told_the_others() {
        assert_eq!(found(None, &[]).unwrap(), "general-purpose");
        assert_eq!(found(Some("general_purpose"), &[]).unwrap(), "general-purpose");
        assert_eq!(found(Some("Explore"), &[]).unwrap(), "Explore");
        let own = [AgentType::new("poet", "writes", "Write.")];
        assert_eq!(found(Some("poet"), &own).unwrap(), "poet");
        let error = found(Some("Xplore"), &own).unwrap_err();
        assert!(error.contains("Xplore") && error.contains("Explore, Plan"), "{error}");
        assert!(error.contains("poet"), "{error}");
    }

    // REQ: AGT-4
    #[test]
    fn definition_says_which_tools_an_agent_has() {
        let read = |definition: Value| AgentType::read("a", &definition).unwrap();
        let used = |definition: Value| {
            let kind = read(definition);
            let tools = tools();
            let tools = tools.iter().filter(|it| kind.may_use(it));
            tools.map(|it| it.name.to_string()).collect::<Vec<_>>().join(" ")
        };
        let base = |more: Value| {
            let mut all = json!({"description": "d", "prompt": "p"});
            all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            all
        };
        assert_eq!(used(base(json!({}))), "Bash Edit Fetch Note Poll Read");
        assert_eq!(used(base(json!({"tools": ["Read", "Nope"]}))), "Read");
        assert_eq!(used(base(json!({"tools": "Read, Bash(git *)"}))), "Bash Read");
        let both = json!({"tools": ["Read", "Bash"], "disallowedTools": ["Bash"]});
        assert_eq!(used(base(both)), "Read");
        let own = [read(base(json!({"tools": ["Reed"]})))];
        let error = agent_type(Some("a"), &own, &tools()).unwrap_err();
        assert!(error.to_string().contains("Reed"), "{error}");
    }

    // REQ: AGT-4, PRM-4
    #[test]
    fn no_agent_changes_the_mode_of_its_session_or_asks_a_person() {
        let poll = tools().iter().find(|it| it.name.as_str() == "Poll").cloned().unwrap();
        for name in OF_THE_SESSION {
            let spec = |access| ToolSpec { name: name.into(), access, ..ToolSpec::clone(&poll) };
            let definition = json!({"description": "d", "prompt": "p", "tools": [name]});
            for kind in [AgentType::new("a", "d", "p"), AgentType::read("a", &definition).unwrap()]
            {
                assert!(!kind.may_use(&spec(Access::Person)));
                assert!(kind.may_use(&spec(Access::Ask)), "an embedder's own tool of this name");
            }
        }
    }

    // REQ: AGT-4
    #[test]
    fn definition_that_cannot_be_used_says_why() {
        for (name, definition, why) in [
            ("a", json!([]), "no object"),
            ("a", json!({"prompt": "p"}), "description"),
            ("a", json!({"description": "d"}), "prompt"),
            ("", json!({"description": "d", "prompt": "p"}), "name"),
            ("a", json!({"description": "d", "prompt": "p", "maxTurns": 0}), "maxTurns"),
            ("a", json!({"description": "d", "prompt": "p", "tools": [1]}), "tools"),
            ("a", json!({"description": "d", "prompt": "p", "permissionMode": "x"}), "Mode"),
        ] {
            let error = AgentType::read(name, &definition).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        let definition = json!({"description": "d", "prompt": "p", "model": "inherit"});
        assert_eq!(AgentType::read("a", &definition).unwrap().model, None);
    }

    // REQ: AGT-4, SES-4
    #[test]
    fn definition_reads_back_as_it_was_recorded() {
        let definition =
            json!({"description": "d", "prompt": "p", "tools": ["Read"], "maxTurns": 3});
        let kind = AgentType::read("a", &definition).unwrap();
        let text = serde_json::to_string(&kind).unwrap();
        assert_eq!(serde_json::from_str::<AgentType>(&text).unwrap(), kind);
    }
}
