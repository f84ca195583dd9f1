//! Built under `#[cfg(test)]` only.

use serde_json::json;

use super::*;

fn environment(name: &str) -> Option<String> {
    (name == "HOME").then(|| "/home/me".to_owned())
}

#[track_caller]
fn configured(servers: Value) -> Configured {
    read(&json!({ "mcpServers": servers }).to_string(), &environment).unwrap()
}

/// The only entry is skipped, and this is the warning.
#[track_caller]
fn check_skipped(name: &str, entry: Value, expected: &str) {
    let found = configured(json!({ name: entry }));
    let problems: Vec<String> = found.problems.iter().map(ToString::to_string).collect();
    assert_eq!(found.servers, [], "{problems:?}");
    assert_eq!(problems, [expected]);
}

fn http(name: &str, url: &str) -> ServerConfig {
    let address = Address { url: url.into(), headers: BTreeMap::new() };
    ServerConfig { name: name.into(), reach: ServerTransport::Http(address), timeout_ms: None }
}
#[test]
fn address_without_a_type_is_skipped_and_with_one_it_is_http() {
    check_skipped(
        "a",
        json!({"url": "https://x"}),
        "MCP server `a` is skipped: an entry with `url` needs a `type`, such as \"http\"",
    );
    for kind in ["http", "streamable-http"] {
        let found = configured(json!({"a": {"type": kind, "url": "https://x"}}));
        assert_eq!(found.servers, [http("a", "https://x")]);
        assert_eq!(found.problems, []);
    }
    let found = configured(json!({"a": {"type": "sse", "url": "https://x"}}));
    let ServerTransport::Sse(address) = &found.servers[0].reach else { panic!("{found:?}") };
    assert_eq!(address.url, "https://x");
}
#[test]
fn the_entry_of_the_stronger_scope_wins_as_a_whole() {
    let scope = |env: Value| configured(json!({"a": {"command": "x", "env": env}})).servers;
    let project = scope(json!({"P": "1"}));
    let mut user = scope(json!({"U": "1"}));
    user.extend(configured(json!({"b": {"command": "y"}})).servers);
    let found = strongest([project.clone(), user.clone()]);
    assert_eq!(found, [project[0].clone(), user[1].clone()]);
}
#[test]
fn variables_are_expanded_in_every_text_and_what_is_unset_is_told() {
    let found = configured(json!({
        "a": {"type": "http", "url": "${B:-https://d}/mcp", "headers": {"x": "${HOME}"}},
        "b": {"type": "http", "url": "${C}/mcp"},
        "c": {"command": "${HOME}/run", "args": ["${HOME}", "${D:-d}"], "env": {"E": "${HOME}"}},
    }));
    let ServerTransport::Http(a) = &found.servers[0].reach else { panic!("{found:?}") };
    assert_eq!((a.url.as_str(), a.headers["x"].as_str()), ("https://d/mcp", "/home/me"));
    assert_eq!(found.servers[1], http("b", "${C}/mcp"));
    let ServerTransport::Stdio(c) = &found.servers[2].reach else { panic!("{found:?}") };
    assert_eq!((c.command.as_str(), c.env["E"].as_str()), ("/home/me/run", "/home/me"));
    assert_eq!(c.args, ["/home/me", "d"]);
    assert_eq!(found.problems, [Problem::Unset { server: "b".into(), variable: "C".into() }]);
}

#[test]
fn what_cannot_be_spoken_to_is_skipped_and_named() {
    for kind in ["ws", "sdk", "carrier-pigeon"] {
        check_skipped(
            "a",
            json!({"type": kind, "url": "https://x"}),
            &format!("MCP server `a` is skipped: the type \"{kind}\" is not supported"),
        );
    }
}

#[test]
fn entries_that_cannot_be_used_are_skipped_with_the_field_that_is_wrong() {
    for (entry, field, wanted) in [
        (json!(1), "entry", "an object"),
        (json!({}), "command", "a text"),
        (json!({"command": ""}), "command", "a text"),
        (json!({"command": "x", "args": "y"}), "args", "a list of texts"),
        (json!({"command": "x", "args": [1]}), "args", "a list of texts"),
        (json!({"command": "x", "env": {"A": 1}}), "env", "an object of texts"),
        (
            json!({"command": "x", "timeout": 999}),
            "timeout",
            "a number of milliseconds, 1000 or more",
        ),
        (json!({"command": "x", "type": 1}), "type", "a text"),
        (json!({"type": "http"}), "url", "an address"),
    ] {
        let expected = format!("MCP server `a` is skipped: `{field}` must be {wanted}");
        check_skipped("a", entry, &expected);
    }
    check_skipped(
        "workspace",
        json!({"command": "x"}),
        "MCP server `workspace` is skipped: the name is reserved or cannot be a name",
    );
}

#[test]
fn the_others_stay_when_one_is_skipped() {
    let found = configured(json!({
        "z": {"command": "x", "timeout": 1000}, "b": {"type": "ws", "url": "u"}, "a": {"command": "y"},
    }));
    let names: Vec<_> = found.servers.iter().map(|it| (&*it.name, it.timeout_ms)).collect();
    assert_eq!(names, [("a", None), ("z", Some(1000))]);
    assert_eq!(found.problems.len(), 1);
}

#[test]
fn text_that_is_no_configuration_is_an_error() {
    for text in ["", "{", "[]", "{}", r#"{"mcpServers":[]}"#] {
        assert!(read(text, &environment).is_err(), "{text}");
    }
}
