//! The hooks and the MCP servers of a plug-in.
//!
//! They are files of the plug-in or parts of its manifest. Nothing is read that lies outside of its directory.

use std::path::Path;

use ennead_tools::source_file::{ReadError, Root};
use serde_json::{Map, Value};

use super::PLACE;

/// Where a plug-in has its hooks.
const HOOKS: &str = "hooks/hooks.json";

/// Where a plug-in has its servers.
const SERVERS: &str = ".mcp.json";

/// Files of one kind that a manifest may name.
const MAX_FILES: usize = 32;

/// Returns the hooks by event. A handler that names code of the program is left out: a file has no say about that.
pub(super) fn hooks(
    root: &Root,
    named: Option<Value>,
    problems: &mut Vec<String>,
) -> Map<String, Value> {
    let mut hooks: Map<String, Value> = Map::new();
    for mut found in objects(root, HOOKS, named, problems) {
        let own = if found.contains_key("hooks") { found.remove("hooks") } else { None };
        let own = own.map_or(found, |it| object(it).unwrap_or_default());
        for (event, groups) in own {
            let Value::Array(mut groups) = groups else {
                problems.push(format!("its hooks of `{event}` are not a list"));
                continue;
            };
            for group in &mut groups {
                if let Some(handlers) = group.get_mut("hooks").and_then(Value::as_array_mut) {
                    handlers.retain(|it| it["type"] != "in_process");
                }
            }
            match hooks.entry(event).or_insert_with(|| Value::Array(Vec::new())) {
                Value::Array(all) => all.extend(groups),
                _ => continue,
            }
        }
    }
    hooks
}

/// Returns the servers by the names that they have in a session.
pub(super) fn servers(
    root: &Root,
    plugin: &str,
    named: Option<Value>,
    problems: &mut Vec<String>,
) -> Map<String, Value> {
    let mut servers = Map::new();
    for mut found in objects(root, SERVERS, named, problems) {
        let own = if found.contains_key("mcpServers") { found.remove("mcpServers") } else { None };
        let own = own.map_or(found, |it| object(it).unwrap_or_default());
        servers.extend(own.into_iter().map(|(name, it)| (format!("plugin:{plugin}:{name}"), it)));
    }
    servers
}

/// The objects of the usual file, and of what the manifest names, with the directory of the plug-in filled in.
fn objects(
    root: &Root,
    usual: &str,
    named: Option<Value>,
    problems: &mut Vec<String>,
) -> Vec<Map<String, Value>> {
    let mut paths = vec![usual.to_owned()];
    let mut objects = Vec::new();
    match named {
        None => {}
        Some(Value::String(path)) => paths.push(path),
        Some(Value::Object(inline)) => objects.push(inline),
        Some(Value::Array(list)) => {
            let listed = list.iter().filter_map(Value::as_str).map(str::to_owned);
            paths.extend(listed.take(MAX_FILES));
        }
        Some(_) => {
            problems.push(format!("what its plugin.json says in place of {usual} is not a path"))
        }
    }
    let is_usual = |path: &str| path.trim_start_matches("./") == usual;
    let named = paths.iter().skip(1).filter(|it| !is_usual(it));
    let read = paths.iter().take(1).chain(named).filter_map(|path| {
        let read = root.read_text(Path::new(path.trim_start_matches("./")));
        let text = match read {
            Ok(text) => text,
            Err(ReadError::Missing) if is_usual(path) => return None,
            Err(error) => {
                problems.push(format!("{path} of the plug-in is not used: {error}"));
                return None;
            }
        };
        let found = serde_json::from_str::<Value>(&text).ok().and_then(object);
        if found.is_none() {
            problems.push(format!("{path} of the plug-in is not used: it is not a JSON object"));
        }
        found
    });
    let read: Vec<_> = read.collect();
    let place = root.real().to_string_lossy().into_owned();
    let mut all: Vec<_> = read.into_iter().chain(objects).collect();
    for value in all.iter_mut().flat_map(Map::values_mut) {
        fill(value, &place);
    }
    all
}

fn object(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(map) => Some(map),
        _ => None,
    }
}

/// Puts the directory of the plug-in into all texts. JSON that was read is not deep.
fn fill(value: &mut Value, place: &str) {
    match value {
        Value::String(text) => *text = text.replace(PLACE, place),
        Value::Array(list) => list.iter_mut().for_each(|it| fill(it, place)),
        Value::Object(map) => map.values_mut().for_each(|it| fill(it, place)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    struct Kit(tempfile::TempDir);

    impl Kit {
        fn new(files: &[(&str, &str)]) -> Self {
            let place = tempfile::tempdir().unwrap();
            for (name, text) in files {
                let path = place.path().join("kit").join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Self(place)
        }

        fn root(&self) -> Root {
            Root::open(&self.0.path().join("kit")).unwrap()
        }
    }

    // REQ: SUR-3, HKS-1
    #[test]
    fn hooks_of_a_plug_in_are_those_of_its_file_and_of_its_manifest() {
        let handler = r#"{"type":"command","command":"${CLAUDE_PLUGIN_ROOT}/check"}"#;
        let in_program = r#"{"type":"in_process","command":"hook_0"}"#;
        let usual = format!(r#"{{"hooks":{{"Stop":[{{"hooks":[{handler},{in_program}]}}]}}}}"#);
        let kit = Kit::new(&[
            ("hooks/hooks.json", &usual),
            ("more.json", r#"{"Stop":[{"hooks":[]}],"PreToolUse":3}"#),
            ("bad.json", "[]"),
        ]);
        let root = kit.root();
        let mut problems = Vec::new();
        let named = json!(["./more.json", "./hooks/hooks.json", "bad.json", "../out", "none.json"]);
        let found = hooks(&root, Some(named), &mut problems);
        let command = format!("{}/check", root.real().display());
        let expected = json!({"Stop": [
            {"hooks": [{"type": "command", "command": command}]}, {"hooks": []},
        ]});
        assert_eq!(Value::Object(found), expected);
        let told = problems.join("\n");
        assert_eq!(problems.len(), 4, "{told}");
        for part in ["`PreToolUse`", "bad.json", "../out", "none.json"] {
            assert!(told.contains(part), "{part}: {told}");
        }
        let inline = Some(json!({"hooks": {"Stop": [{"hooks": []}]}}));
        assert_eq!(hooks(&Kit::new(&[("a", "")]).root(), inline, &mut problems).len(), 1);
    }

    // REQ: SUR-3, TOL-11
    #[test]
    fn servers_of_a_plug_in_have_its_name_in_theirs() {
        let text = r#"{"mcpServers":{"db":{"command":"${CLAUDE_PLUGIN_ROOT}/db"}}}"#;
        let kit = Kit::new(&[(".mcp.json", text)]);
        let root = kit.root();
        let mut problems = Vec::new();
        let inline = Some(json!({"web": {"type": "http", "url": "https://h"}}));
        let found = servers(&root, "kit", inline, &mut problems);
        let command = format!("{}/db", root.real().display());
        let expected = json!({
            "plugin:kit:db": {"command": command},
            "plugin:kit:web": {"type": "http", "url": "https://h"},
        });
        assert_eq!((Value::Object(found), problems), (expected, Vec::<String>::new()));
    }
}
