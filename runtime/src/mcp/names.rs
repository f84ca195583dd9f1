//! What a server's tool is called.

use crate::ids::ToolName;

/// Characters of a name that model servers take.
const MAX_NAME: usize = 64;

/// Names that a configured server may not have.
const RESERVED: [&str; 5] =
    ["workspace", "claude-in-chrome", "computer-use", "Claude Preview", "Claude Browser"];

/// Returns `mcp__server__tool`, with `_` for every character that may not be in a name; `None` if it is longer than
/// model servers take. It is not cut, as a rule about the name as it is configured, above all one that denies, would
/// not match what is left.
pub(crate) fn tool_name(server: &str, tool: &str) -> Option<String> {
    let whole = prefix(server) + &tidy(tool);
    (whole.len() <= MAX_NAME).then_some(whole)
}

/// Returns the prefix of the names of all tools of this server.
pub fn prefix(server: &str) -> String {
    format!("mcp__{}__", tidy(server))
}

/// Returns the rule that covers all tools of this server.
pub fn rule_for_all(server: &str) -> String {
    prefix(server) + "*"
}

/// Returns whether a tool of this name is one of a server.
pub(crate) fn is_of_server(tool: &ToolName) -> bool {
    tool.as_str().starts_with("mcp__")
}

/// Returns whether a server may have this name: not empty, on one line, and not a name that is taken. Odd characters
/// are fine, since the names of its tools have none of them.
pub(crate) fn is_server_name(name: &str) -> bool {
    !name.trim().is_empty() && !name.contains(char::is_control) && !RESERVED.contains(&name)
}

fn tidy(name: &str) -> String {
    let fits = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    name.chars().map(|c| if fits(&c) { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn odd_characters_become_underscores() {
        assert_eq!(tool_name("my.srv", "read file").unwrap(), "mcp__my_srv__read_file");
        assert_eq!(tool_name("a-b", "ü/x").unwrap(), "mcp__a-b____x");
    }

    #[test]
    fn name_over_64_characters_is_none_since_no_rule_would_match_it() {
        // `mcp__s__` has 8 characters.
        let fits = "x".repeat(56);
        assert_eq!(tool_name("s", &fits), Some(format!("mcp__s__{fits}")));
        assert_eq!(tool_name("s", &format!("{fits}1")), None);
    }

    #[test]
    fn reserved_and_empty_names_are_no_names() {
        for (name, may) in
            [("gh", true), ("my.srv", true), ("", false), (" ", false), ("workspace", false)]
        {
            assert_eq!(is_server_name(name), may, "{name:?}");
        }
    }
}
