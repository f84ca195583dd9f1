//! The built-in types of sub-agents.

use crate::tool::{ToolEffect, ToolSpec};

/// A type of sub-agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentType {
    /// As the model names it.
    pub name: &'static str,
    /// What its system prompt begins with.
    pub system_prompt: &'static str,
    /// Whether it may use tools that change something.
    changes: bool,
}

/// There is no type of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no agent type {0}; there are general-purpose, Explore, Plan and verification")]
pub struct UnknownAgentType(String);

const TYPES: [AgentType; 4] = [
    AgentType {
        name: "general-purpose",
        system_prompt: "You are a sub-agent. Do the task you are given with the tools you have, \
                        then report what you found or did. Only your last message is read.",
        changes: true,
    },
    AgentType {
        name: "Explore",
        system_prompt: "You are a sub-agent that explores. Read and search, change nothing, and \
                        report what you found. Only your last message is read.",
        changes: false,
    },
    AgentType {
        name: "Plan",
        system_prompt: "You are a sub-agent that plans. Read and search, change nothing, and \
                        report a plan of concrete steps. Only your last message is read.",
        changes: false,
    },
    AgentType {
        name: "verification",
        system_prompt: "You are a sub-agent that verifies. Try to show that what you are told is \
                        wrong; report what you tried and what came of it. Only your last message \
                        is read.",
        changes: true,
    },
];

/// The type of this name; without one, `general-purpose`.
///
/// # Errors
///
/// [`UnknownAgentType`] when there is none; its text lists those there are.
pub fn agent_type(name: Option<&str>) -> Result<AgentType, UnknownAgentType> {
    let name = name.unwrap_or("general-purpose");
    let found = TYPES.into_iter().find(|it| it.name == name || it.name.replace('-', "_") == name);
    found.ok_or_else(|| UnknownAgentType(name.to_owned()))
}

impl AgentType {
    /// Whether it is given this tool.
    pub fn may_use(&self, tool: &ToolSpec) -> bool {
        self.changes || tool.effect == ToolEffect::ReadOnly
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: AGT-5
    #[test]
    fn types_are_found_by_name_and_an_unknown_one_is_told_the_others() {
        assert_eq!(agent_type(None).unwrap().name, "general-purpose");
        assert_eq!(agent_type(Some("general_purpose")).unwrap().name, "general-purpose");
        assert_eq!(agent_type(Some("Explore")).unwrap().name, "Explore");
        let error = agent_type(Some("Xplore")).unwrap_err().to_string();
        assert!(error.contains("Xplore") && error.contains("Explore"), "{error}");
    }
}
