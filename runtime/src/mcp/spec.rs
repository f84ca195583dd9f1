//! What a server's tool is to a session.
//!
//! A server's hints give no right: every call needs a rule or an answer, whatever the server says of
//! it. That a tool only reads is believed for the rest: such calls run at the same time, nothing is
//! forced to disk before them, and after a crash they are taken to have changed nothing.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Map, Value};

use super::{config::ServerConfig, names::tool_name, schema::normalized};
use crate::{
    ids::ToolName,
    tool::{Access, Concurrency, ToolEffect, ToolSpec},
};

/// Bytes of a description that are sent.
const MAX_DESCRIPTION: usize = 2048;

/// Characters of a result by default: 25,000 tokens of about four.
const MAX_RESULT: u32 = 100_000;

/// Characters that a tool may ask for.
const MOST_RESULT: u64 = 500_000;

/// Calls of one reading tool at once.
const READS_AT_ONCE: u32 = 10;

/// A tool as its server lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The tool's name on the server.
    pub name: String,
    /// The description that the model reads.
    pub description: String,
    /// JSON schema of its input.
    pub input_schema: Map<String, Value>,
    /// The server says that it changes nothing.
    pub read_only: bool,
    /// It can only be called as a task: it answers at once and is asked for its result later.
    pub needs_task: bool,
    /// `_meta`, empty if there was none.
    pub meta: Map<String, Value>,
}

/// Why a listed tool is not offered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotOffered {
    /// Its schema is not one of an object, or no schema.
    #[error("{tool} of MCP server `{server}` is not offered: its input schema cannot be used")]
    Schema {
        /// Name of the MCP server that offers the tool.
        server: Arc<str>,
        /// Name of the tool, as the server gives it.
        tool: String,
    },
    /// A person must answer each call, and no rule may. That cannot be promised here.
    #[error("{tool} of MCP server `{server}` is not offered: it wants a person at each call")]
    WantsPerson {
        /// Name of the MCP server that offers the tool.
        server: Arc<str>,
        /// Name of the tool, as the server gives it.
        tool: String,
    },
    /// It runs only as a task, which is not spoken here.
    #[error(
        "{tool} of MCP server `{server}` is not offered: it runs only as a task, which is not supported"
    )]
    NeedsTask {
        /// Name of the MCP server that offers the tool.
        server: Arc<str>,
        /// Name of the tool, as the server gives it.
        tool: String,
    },
    /// Rules could not name it, nor a model call it.
    #[error("{tool} of MCP server `{server}` is not offered: its full name has over 64 characters")]
    NameTooLong {
        /// Name of the MCP server that offers the tool.
        server: Arc<str>,
        /// Name of the tool, as the server gives it.
        tool: String,
    },
    /// Another tool has the name.
    #[error("{tool} of MCP server `{server}` is not offered: there is a tool of that name")]
    NameTaken {
        /// Name of the MCP server that offers the tool.
        server: Arc<str>,
        /// Name of the tool, as the server gives it.
        tool: String,
    },
}

/// Limits that the environment sets for all servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallLimits {
    /// Milliseconds of a call, where its server says nothing (`MCP_TOOL_TIMEOUT`).
    pub timeout_ms: Option<u64>,
    /// Characters of a result (`MAX_MCP_OUTPUT_TOKENS`, four to a token).
    pub result_chars: u32,
}

impl CallLimits {
    /// Sets how long a call may take, in milliseconds, and how many characters its result may have.
    pub fn new(timeout_ms: Option<u64>, result_chars: u32) -> Self {
        Self { timeout_ms, result_chars }
    }
}

impl Default for CallLimits {
    fn default() -> Self {
        Self { timeout_ms: None, result_chars: MAX_RESULT }
    }
}

/// Returns the tools that a session is offered, in the server's order, each with its name on the server; and the tools
/// that are not offered.
pub fn offered(
    server: &ServerConfig,
    listed: &[Listed],
    limits: CallLimits,
) -> (Vec<(String, ToolSpec)>, Vec<NotOffered>) {
    let (mut tools, mut left_out, mut names) = (Vec::new(), Vec::new(), BTreeSet::new());
    for tool in listed {
        let (of, name) = (server.name.clone(), tool.name.clone());
        if is_set(&tool.meta, "anthropic/requiresUserInteraction") {
            left_out.push(NotOffered::WantsPerson { server: of, tool: name });
            continue;
        }
        if tool.needs_task {
            left_out.push(NotOffered::NeedsTask { server: of, tool: name });
            continue;
        }
        let Some(full_name) = tool_name(&server.name, &tool.name) else {
            left_out.push(NotOffered::NameTooLong { server: of, tool: name });
            continue;
        };
        let Some(schema) = normalized(&tool.input_schema) else {
            left_out.push(NotOffered::Schema { server: of, tool: name });
            continue;
        };
        let spec = spec(full_name.as_str().into(), server, tool, schema, limits);
        if names.insert(spec.name.clone()) {
            tools.push((name, spec));
        } else {
            left_out.push(NotOffered::NameTaken { server: of, tool: name });
        }
    }
    (tools, left_out)
}

fn spec(
    name: ToolName,
    server: &ServerConfig,
    tool: &Listed,
    schema: Map<String, Value>,
    limits: CallLimits,
) -> ToolSpec {
    let asked = tool.meta.get("anthropic/maxResultSizeChars").and_then(Value::as_u64);
    let asked = asked.and_then(|it| u32::try_from(it.min(MOST_RESULT)).ok());
    let (effect, concurrency) = if tool.read_only {
        (ToolEffect::ReadOnly, Concurrency::Together { max: READS_AT_ONCE })
    } else {
        (ToolEffect::SideEffects, Concurrency::Alone)
    };
    ToolSpec {
        name,
        description: cut(&tool.description).into(),
        input_schema: Value::Object(schema).to_string().into(),
        effect,
        concurrency,
        access: Access::Ask,
        output_cap: Some(asked.map_or(limits.result_chars, |it| it.max(limits.result_chars))),
        timeout_ms: server.timeout_ms.or(limits.timeout_ms),
        polls: false,
    }
}

fn is_set(meta: &Map<String, Value>, key: &str) -> bool {
    meta.get(key) == Some(&Value::Bool(true))
}

fn cut(description: &str) -> &str {
    &description[..description.floor_char_boundary(MAX_DESCRIPTION)]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn listed(name: &str) -> Listed {
        Listed {
            name: name.into(),
            description: "d".into(),
            input_schema: Map::new(),
            read_only: false,
            needs_task: false,
            meta: Map::new(),
        }
    }

    fn server() -> ServerConfig {
        ServerConfig::stdio("my.srv", "x", &[])
    }

    #[track_caller]
    fn only(tool: Listed, limits: CallLimits) -> ToolSpec {
        let (tools, left_out) = offered(&server(), &[tool], limits);
        assert_eq!((tools.len(), left_out.len()), (1, 0), "{left_out:?}");
        tools[0].1.clone()
    }
    #[test]
    fn a_tool_is_careful_unless_its_server_says_that_it_only_reads() {
        let spec = only(listed("read file"), CallLimits::default());
        assert_eq!(spec.name.as_str(), "mcp__my_srv__read_file");
        assert_eq!((spec.effect, spec.concurrency), (ToolEffect::SideEffects, Concurrency::Alone));
        assert_eq!((spec.access, spec.output_cap), (Access::Ask, Some(100_000)));
        assert_eq!(&*spec.input_schema, r#"{"properties":{},"type":"object"}"#);
        let spec = only(Listed { read_only: true, ..listed("r") }, CallLimits::default());
        assert_eq!(spec.effect, ToolEffect::ReadOnly);
        assert_eq!(spec.concurrency, Concurrency::Together { max: 10 });
        assert_eq!(spec.access, Access::Ask, "a hint gives no right");
    }

    #[test]
    fn descriptions_are_cut_at_2_kb_between_characters() {
        let of = |text: String| Listed { description: text, ..listed("t") };
        let spec = only(of("x".repeat(2048)), CallLimits::default());
        assert_eq!(spec.description.len(), 2048);
        let spec = only(of(format!("{}äää", "x".repeat(2047))), CallLimits::default());
        assert_eq!(&*spec.description, "x".repeat(2047));
    }

    #[test]
    fn limits_come_from_the_server_then_from_the_environment() {
        let limits = CallLimits { timeout_ms: Some(9), result_chars: 50 };
        let spec = only(listed("t"), limits);
        assert_eq!((spec.timeout_ms, spec.output_cap), (Some(9), Some(50)));
        let own = ServerConfig { timeout_ms: Some(1000), ..server() };
        let (tools, _) = offered(&own, &[listed("t")], limits);
        assert_eq!(tools[0].1.timeout_ms, Some(1000));
        for (asked, cap) in [(300_000_u64, 300_000_u32), (900_000, 500_000), (1, 100_000)] {
            let meta = json!({"anthropic/maxResultSizeChars": asked});
            let meta = meta.as_object().unwrap().clone();
            let spec = only(Listed { meta, ..listed("t") }, CallLimits::default());
            assert_eq!(spec.output_cap, Some(cap), "{asked}");
        }
    }
    #[test]
    fn what_cannot_be_offered_is_told_and_the_others_stay() {
        let meta = json!({"anthropic/requiresUserInteraction": true});
        let bad = json!({"type": "string"});
        let tools = [
            Listed { meta: meta.as_object().unwrap().clone(), ..listed("person") },
            Listed { input_schema: bad.as_object().unwrap().clone(), ..listed("schema") },
            Listed { needs_task: true, ..listed("slow") },
            listed("a b"),
            listed("a.b"),
            // `mcp__my_srv__` has 13 characters.
            listed(&"x".repeat(52)),
            listed(&"y".repeat(51)),
        ];
        let (found, left_out) = offered(&server(), &tools, CallLimits::default());
        let names: Vec<&str> = found.iter().map(|it| it.0.as_str()).collect();
        assert_eq!(names, ["a b", &"y".repeat(51)]);
        let too_long = format!(
            "{} of MCP server `my.srv` is not offered: its full name has over 64 characters",
            "x".repeat(52)
        );
        let reasons: Vec<String> = left_out.iter().map(ToString::to_string).collect();
        assert_eq!(
            reasons,
            [
                "person of MCP server `my.srv` is not offered: it wants a person at each call",
                "schema of MCP server `my.srv` is not offered: its input schema cannot be used",
                "slow of MCP server `my.srv` is not offered: it runs only as a task, which is not \
                 supported",
                "a.b of MCP server `my.srv` is not offered: there is a tool of that name",
                &too_long,
            ]
        );
    }
}
