//! The key stays at home: it is in no child process, and no text of a server brings it back.

use std::{fs, process::Command};

use serde_json::{Value, json};

use super::{
    super::CommandDirs,
    server::{Bytes, KEY},
};
use crate::support::{
    mcp_server::{entry, n_starts},
    model_server::Reply,
};

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
    let place = CommandDirs::new();
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

/// `ennead` with all its copies of the key, as it is started by whom this returns.
fn with_copies(mut command: Command) -> Command {
    command.env("COPY", format!("copied {KEY}")).env("PLAIN", "plain");
    command
}

// REQ: TOL-8
#[test]
fn no_ancestor_of_a_command_shows_a_key_also_to_root() {
    let place = CommandDirs::new();
    let model = Bytes::running(
        "p=$PPID; while [ \"$p\" -gt 1 ]; do echo \"== $(cat /proc/$p/comm)\"; \
         tr '\\0' '\\n' < /proc/$p/environ; \
         p=$(awk '/^PPid:/ { print $2 }' /proc/$p/status); done > ancestors 2>&1",
    );
    let command = model.command(&place, &["--permission-mode", "bypassPermissions"]);
    let ended: super::super::Ended = with_copies(command).output().unwrap().into();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    // What it is for has arrived all the same.
    assert!(model.requests()[0].contains(KEY), "{:?}", model.requests());
    let found = fs::read_to_string(place.work().join("ancestors")).unwrap();
    assert!(found.contains("== ennead\n") && found.contains("PLAIN=plain"), "{found}");
    assert!(!found.contains(KEY), "{found}");
}

// REQ: TOL-8
#[test]
fn memory_and_files_of_the_command_are_hidden_from_other_processes_of_its_user() {
    let place = CommandDirs::new();
    let model = Bytes::running(
        "p=$(awk '/^PPid:/ { print $2 }' /proc/$PPID/status); { cat /proc/$p/comm; \
         for it in environ maps; do cat /proc/$p/$it > /dev/null && echo \"read $it\"; done; \
         readlink /proc/$p/fd/0 && echo 'read fd'; : <> /proc/$p/mem && echo 'opened mem'; \
         } > looks 2> refusals",
    );
    let plain = model.command(&place, &["--permission-mode", "bypassPermissions"]);
    let command = match rustix::process::geteuid().is_root() {
        // Without the capabilities that let root look everywhere, as it is in most containers.
        true => {
            let mut command = Command::new("setpriv");
            let dropped = "-sys_ptrace,-perfmon,-sys_admin";
            command.args(["--bounding-set", dropped, "--inh-caps", dropped, "--"]);
            command.arg(plain.get_program()).args(plain.get_args()).current_dir(place.work());
            for (name, value) in plain.get_envs() {
                match value {
                    Some(value) => command.env(name, value),
                    None => command.env_remove(name),
                };
            }
            command
        }
        false => plain,
    };
    let ended: super::super::Ended = with_copies(command).output().unwrap().into();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let look = |name: &str| fs::read_to_string(place.work().join(name)).unwrap();
    assert_eq!(look("looks"), "ennead\n", "{}", look("refusals"));
    assert!(3 <= look("refusals").matches("ermission denied").count(), "{}", look("refusals"));
}

// REQ: TOL-8
#[test]
fn a_repository_cannot_hand_a_key_to_its_own_server() {
    let place = CommandDirs::new();
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
    let expected = "`ennead.serverEnv` does not count here";
    assert_eq!(ended.stderr.matches(expected).count(), 1, "{}", ended.stderr);
}

// REQ: MDL-6
#[test]
fn key_that_a_server_repeats_comes_to_no_event_transcript_or_terminal() {
    let repeated: [fn() -> Value; 3] = [
        || {
            json!({"type": "error", "error": {"type": "authentication_error",
            "message": format!("no such key: {KEY} (Bearer {KEY})")}})
        },
        // A body that is not an error object is shown as far as 300 characters go: half of the key.
        || json!({"page": format!("{}{KEY}{KEY}", "x".repeat(270))}),
        || Value::String(format!("{KEY} is not known")),
    ];
    for body in repeated {
        for status in [401, 400] {
            let place = CommandDirs::new();
            let model = Bytes::start(vec![Reply::body(status, &body().to_string())]);
            let ended = model.run(&place, &["--output-format", "json"]);
            assert_ne!(ended.code, Some(0), "{ended:?}");
            let transcript = fs::read_to_string(place.transcript(".transcripts")).unwrap();
            for text in [&ended.stdout, &ended.stderr, &transcript] {
                assert!(!text.contains(&KEY[..16]), "{status}: {text}");
            }
            assert!(transcript.contains("[secret:variable:1]"), "{transcript}");
            assert!(model.requests()[0].contains(KEY), "it is what logs in");
        }
    }
}
