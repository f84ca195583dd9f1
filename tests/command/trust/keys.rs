//! The key stays at home: it is in no child process, and no text of a server brings it back.

use std::fs;

use serde_json::{Value, json};

use super::{
    super::Place,
    server::{Bytes, KEY},
};
use crate::support::mcp_server::{entry, n_starts};

/// The real server of the tests, which first writes what is in its environment.
fn server(file: &str) -> Value {
    let real = entry();
    let mut args = vec![
        json!("-c"),
        json!(format!("env > {file}; exec \"$0\" \"$@\"")),
        real["command"].clone(),
    ];
    args.extend(real["args"].as_array().unwrap().iter().cloned());
    json!({"command": "sh", "args": args})
}

// REQ: TOL-8
#[test]
fn keys_and_named_secrets_are_in_no_shell_hook_or_server() {
    let place = Place::new();
    let mut handed = server("env-handed");
    handed["env"] = json!({"OWN": "${MINE}"});
    let servers = json!({"mcpServers": {"plain": server("env-server"), "handed": handed}});
    place.file(".mcp.json", &servers.to_string());
    let hook = json!({"type": "command", "command": "env > env-hook"});
    let settings = json!({
        "hooks": {"PreToolUse": [{"hooks": [hook]}]},
        "env": {"OPENAI_API_KEY": "from-the-settings"},
        "ennead": {"secretEnv": ["MINE"], "serverEnv": {"handed": ["MINE", "ANTHROPIC_API_KEY"]}},
    });
    place.file("../home/.claude/settings.json", &settings.to_string());
    let model = Bytes::running("env > env-shell");
    let mut command = model.command(&place, &["--trust", "--permission-mode", "bypassPermissions"]);
    command.env("MINE", "my-secret").env("COPY", format!("copied {KEY}")).env("PLAIN", "plain");
    let ended: super::super::Ended = command.output().unwrap().into();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(n_starts(&place.work()), 2, "{ended:?}");
    let environment = |name: &str| {
        fs::read_to_string(place.work().join(name)).unwrap_or_else(|it| panic!("{name}: {it}"))
    };
    for name in ["env-shell", "env-hook", "env-server"] {
        let found = environment(name);
        assert!(found.contains("PLAIN=plain"), "{name}: {found}");
        for secret in [KEY, "my-secret", "from-the-settings"] {
            assert!(!found.contains(secret), "{name}: {secret}: {found}");
        }
    }
    let found = environment("env-handed");
    for line in ["OWN=my-secret", "MINE=my-secret", &format!("ANTHROPIC_API_KEY={KEY}")] {
        assert!(found.lines().any(|it| it == line), "{line}: {found}");
    }
    assert!(!found.contains("COPY="), "{found}");
}

// REQ: TOL-8
#[test]
fn a_repository_cannot_hand_a_key_to_its_own_server() {
    let place = Place::new();
    let mut own = server("env-server");
    own["env"] = json!({"A": "${ANTHROPIC_API_KEY}", "B": "x${COPY:-nothing}", "C": "${PLAIN}"});
    place.file(".mcp.json", &json!({"mcpServers": {"s": own}}).to_string());
    let settings = json!({"ennead": {"serverEnv": {"s": ["ANTHROPIC_API_KEY", "COPY"]}}});
    place.file(".claude/settings.json", &settings.to_string());
    let model = Bytes::done();
    let mut command = model.command(&place, &["--trust"]);
    command.env("COPY", KEY).env("PLAIN", "plain");
    let ended: super::super::Ended = command.output().unwrap().into();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let found = fs::read_to_string(place.work().join("env-server")).unwrap();
    assert!(found.contains("B=xnothing") && found.contains("C=plain"), "{found}");
    assert!(!found.contains(KEY), "{found}");
    let told = "`ennead.serverEnv` does not count here";
    assert_eq!(ended.stderr.matches(told).count(), 1, "{}", ended.stderr);
}

// REQ: MDL-6
#[test]
fn key_that_a_server_repeats_comes_to_no_event_transcript_or_terminal() {
    let repeated: [fn() -> Value; 3] = [
        || {
            json!({"type": "error", "error": {"type": "authentication_error",
            "message": format!("no such key: {KEY} (Bearer {KEY})")}})
        },
        // A body that is no error object is shown as far as 300 characters go: half of the key.
        || json!({"page": format!("{}{KEY}{KEY}", "x".repeat(270))}),
        || Value::String(format!("{KEY} is not known")),
    ];
    for body in repeated {
        for status in [401, 400] {
            let place = Place::new();
            let model = Bytes::start(move |_| (status, body()));
            let ended = model.run(&place, &["--output-format", "json"]);
            assert_ne!(ended.code, Some(0), "{ended:?}");
            let transcript = fs::read_to_string(place.transcript(".transcripts")).unwrap();
            for text in [&ended.stdout, &ended.stderr, &transcript] {
                assert!(!text.contains(&KEY[..16]), "{status}: {text}");
            }
            assert!(transcript.contains("[credential]"), "{transcript}");
            assert!(model.requests()[0].contains(KEY), "it is what logs in");
        }
    }
}
