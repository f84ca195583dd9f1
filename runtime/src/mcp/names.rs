//! What a server's tool is called (compat 7.3).

use crate::digest::Digest;

/// Characters of a name that model servers take.
const MAX_NAME: usize = 64;

/// Characters of the hash that stands for what was cut off.
const HASH: usize = 8;

/// Names that a configured server may not have.
const RESERVED: [&str; 5] =
    ["workspace", "claude-in-chrome", "computer-use", "Claude Preview", "Claude Browser"];

/// `mcp__server__tool`, with `_` for every character that may not stand in a name. A name longer
/// than model servers take is cut, and ends with a hash of the whole name as it was configured, so
/// that it is the same in every session.
pub fn tool_name(server: &str, tool: &str) -> String {
    let whole = format!("mcp__{}__{}", tidy(server), tidy(tool));
    if whole.len() <= MAX_NAME {
        return whole;
    }
    let hash = Digest::of(server.as_bytes()).chain(Digest::of(tool.as_bytes())).to_string();
    format!("{}_{}", &whole[..MAX_NAME - HASH - 1], &hash[..HASH])
}

/// Whether a server may be called so: not empty, on one line, and not a name that is taken. Odd
/// characters are fine, since the names of its tools have none of them.
pub fn is_server_name(name: &str) -> bool {
    !name.trim().is_empty() && !name.contains(char::is_control) && !RESERVED.contains(&name)
}

/// ASCII only, so that cutting it falls between characters.
fn tidy(name: &str) -> String {
    let fits = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    name.chars().map(|c| if fits(&c) { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // T7.5
    #[test]
    fn odd_characters_become_underscores() {
        assert_eq!(tool_name("my.srv", "read file"), "mcp__my_srv__read_file");
        assert_eq!(tool_name("a-b", "ü/x"), "mcp__a-b____x");
    }

    #[test]
    fn long_names_are_cut_at_64_and_stay_apart() {
        // `mcp__s__` has 8 characters.
        let fits = "x".repeat(56);
        assert_eq!(tool_name("s", &fits), format!("mcp__s__{fits}"));
        let (one, other) =
            (tool_name("s", &format!("{fits}1")), tool_name("s", &format!("{fits}2")));
        assert_eq!((one.len(), other.len()), (64, 64));
        assert_ne!(one, other);
        assert!(one.starts_with("mcp__s__xxx"));
        assert_eq!(one, tool_name("s", &format!("{fits}1")), "the same in every session");
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
