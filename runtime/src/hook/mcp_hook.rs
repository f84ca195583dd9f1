//! Handlers that call a tool of an MCP server.

use serde_json::{Map, Value};

use super::action::named;
use crate::{ids::ToolName, mcp::names::tool_name};

/// Bytes of all texts that placeholders bring into an input at most: many of them could stand for the whole input of
/// a hook.
const MAX_FILLED: usize = 1 << 20;

/// A call of a tool, with an input that is made from that of the hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpHook {
    /// Name of the server in the configuration.
    pub server: String,
    /// Name of the tool on the server.
    pub tool: String,
    /// The input. `${a.b}` in a text, at any depth, stands for the field `b` of the field `a` of the hook's input.
    pub input: Map<String, Value>,
    /// Bytes of the input as JSON.
    n_bytes: usize,
}

impl McpHook {
    pub(super) fn read(entry: &Value) -> Result<Self, String> {
        let (server, tool) = (named(entry, "server")?, named(entry, "tool")?);
        let input = match entry.get("input") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(input)) => input.clone(),
            Some(_) => return Err("its input is not an object".into()),
        };
        if tool_name(&server, &tool).is_none() {
            return Err("the names of its server and its tool are too long together".into());
        }
        let n_bytes = entry["input"].to_string().len();
        Ok(Self { server, tool, input, n_bytes })
    }

    /// Returns what is shown of it: the server and the tool.
    pub fn shown(&self) -> String {
        format!("{}: {}", self.server, self.tool)
    }

    /// Returns the name that the tool has in a session.
    pub fn tool_name(&self) -> ToolName {
        tool_name(&self.server, &self.tool).unwrap_or_default().into()
    }

    /// Returns the bytes of its own input, before placeholders are filled in.
    pub fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// Returns the input with what its placeholders stand for in the hook's input, which is JSON: a text as it is,
    /// anything else as JSON, and nothing for a field that is not there. Takes time with the bytes of both.
    ///
    /// # Errors
    ///
    /// What is wrong, in words: over a megabyte would be filled in.
    pub fn input_with(&self, hook_input: &str) -> Result<Map<String, Value>, String> {
        let values: Value = serde_json::from_str(hook_input).unwrap_or_default();
        let mut left = MAX_FILLED;
        let mut input = self.input.clone();
        for value in input.values_mut() {
            fill(value, &values, &mut left)?;
        }
        Ok(input)
    }
}

/// Replaces the placeholders in all texts of a value. Its depth is bounded by that of the settings it was read from.
fn fill(value: &mut Value, values: &Value, left: &mut usize) -> Result<(), String> {
    match value {
        Value::String(text) => *text = filled(text, values, left)?,
        Value::Array(list) => list.iter_mut().try_for_each(|it| fill(it, values, left))?,
        Value::Object(map) => map.values_mut().try_for_each(|it| fill(it, values, left))?,
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    Ok(())
}

fn filled(text: &str, values: &Value, left: &mut usize) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        // Without an end to it nothing that follows is a placeholder either.
        let Some((path, behind)) = after.split_once('}') else { break };
        out.push_str(before);
        let value = path.split('.').try_fold(values, |value, name| value.get(name));
        let value = match value {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        *left = left.checked_sub(value.len()).ok_or("its input would be over a megabyte")?;
        out.push_str(&value);
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hook(input: Value) -> McpHook {
        let entry = json!({"type": "mcp_tool", "server": "the db", "tool": "log", "input": input});
        McpHook::read(&entry).unwrap()
    }

    // REQ: HKS-1
    #[test]
    fn input_holds_fields_of_the_hook_where_placeholders_are() {
        let hook = hook(json!({
            "file": "${tool_input.file_path}",
            "all": ["in ${cwd}: ${tool_input}", {"n": "${tool_input.n}", "none": "<${a.b}>"}],
            "open": "$ {x} ${cwd ${", "number": 3,
        }));
        assert_eq!(hook.shown(), "the db: log");
        assert_eq!(hook.tool_name().as_str(), "mcp__the_db__log");
        let input = r#"{"cwd":"/w","tool_input":{"file_path":"a b","n":1}}"#;
        let expected = json!({
            "file": "a b",
            "all": [r#"in /w: {"file_path":"a b","n":1}"#, {"n": "1", "none": "<>"}],
            "open": "$ {x} ${cwd ${", "number": 3,
        });
        assert_eq!(hook.input_with(input).map(Value::Object), Ok(expected));
    }

    // REQ: HKS-1
    #[test]
    fn what_a_placeholder_brings_is_not_looked_through_again_and_is_bounded() {
        let twice = hook(json!({"a": "${x}${x}"}));
        let found = twice.input_with(r#"{"x":"${y}","y":"no"}"#);
        assert_eq!(found.map(Value::Object), Ok(json!({"a": "${y}${y}"})));
        let half = |n: usize| json!({"x": "x".repeat(n)}).to_string();
        assert!(twice.input_with(&half(MAX_FILLED / 2)).is_ok());
        assert!(twice.input_with(&half(MAX_FILLED / 2 + 1)).is_err());
    }

    // REQ: HKS-1
    #[test]
    fn entry_that_names_no_call_is_refused() {
        for (entry, why) in [
            (json!({"tool": "t"}), "it has no server"),
            (json!({"server": "s", "tool": " "}), "it has no tool"),
            (json!({"server": "s", "tool": "t", "input": [1]}), "its input is not an object"),
            (json!({"server": "s".repeat(60), "tool": "t"}), "the names of its server"),
        ] {
            let found = McpHook::read(&entry).unwrap_err();
            assert!(found.starts_with(why), "{found}");
        }
    }
}
