//! What works in the sandbox, what runs unasked, and what else is in it.

use std::fs;

use serde_json::json;

use super::{Cell, Ended, at_each_level, is_refused, text};
use crate::support::mcp_server::{entry, n_starts};

// REQ: TOL-10
#[test]
fn ordinary_work_goes_on_in_the_sandbox() {
    at_each_level("ordinary work", |level| {
        let cell = Cell::at(level);
        let ended = cell.run_confined(
            "mkdir -p a/b && echo one > a/b/f && mv a/b/f g && ln g h && cat g | tr o 0 && \
         t=$(mktemp) && echo $t && cat <(echo sub) && ls /usr/bin | grep -c . && ls && exit 3",
        );
        for part in ["0ne", text(&cell.dir("tmp")), "sub", "exit code 3"] {
            let found = ended.stdout.to_lowercase().contains(&part.to_lowercase());
            assert!(found, "{part}: {ended:?}");
        }
        assert_eq!(fs::read_to_string(cell.place.work().join("h")).unwrap(), "one\n");
    });
}

// REQ: TOL-10
#[test]
fn home_and_temporary_directory_are_those_of_the_settings() {
    at_each_level("own HOME and TMPDIR", |level| {
        let cell = Cell::at(level);
        let own = cell.dir("own-home");
        let settings = cell.settings(&json!({ "home": text(&own) }));
        let ended = cell.run(
            "cd; pwd; echo x > made && echo $TMPDIR",
            &["--permission-mode", "bypassPermissions", "--settings", &settings],
        );
        assert!(ended.stdout.contains(text(&own)), "{ended:?}");
        assert!(ended.stdout.contains(text(&cell.dir("tmp"))), "{ended:?}");
        assert!(own.join("made").exists());
    });
}

// REQ: TOL-10, PRM-4
#[test]
fn confined_commands_run_unasked_and_excluded_ones_do_not() {
    at_each_level("commands that run unasked", |level| {
        let cell = Cell::at(level);
        cell.place.file("script", "echo it ran\n");
        let ran = |more: serde_json::Value, flags: &[&str]| {
            let settings = cell.settings(&more);
            let ended = cell.run("sh script", &[&["--settings", &settings], flags].concat());
            assert_eq!(ended.code, Some(0), "{ended:?}");
            ended.stdout.contains("it ran")
        };
        assert!(ran(json!({}), &[]));
        assert!(!ran(json!({"autoAllow": false}), &[]));
        assert!(!ran(json!({"enabled": false}), &[]));
        assert!(!ran(json!({"excludedCommands": ["sh *"]}), &[]));
        assert!(!ran(json!({}), &["--disallowedTools", "Bash(sh *)"]));
        assert!(!ran(json!({}), &["--permission-mode", "plan"]));
        // The one that is allowed by a rule and excluded is not confined.
        let settings = cell.settings(&json!({"excludedCommands": ["touch *"]}));
        let free = cell.dir("outside/free");
        let touch = format!("touch {}", text(&free));
        let ended =
            cell.run(&touch, &["--settings", &settings, "--permission-mode", "bypassPermissions"]);
        assert!(free.exists(), "{ended:?}");
    });
}

// REQ: TOL-10
#[test]
fn command_leaves_the_sandbox_only_where_rules_and_settings_let_it() {
    at_each_level("commands that ask to leave the sandbox", |level| {
        let cell = Cell::at(level);
        let left = |more: serde_json::Value, flags: &[&str]| {
            let new = cell.dir("outside/new");
            let settings = cell.settings(&more);
            let prompt = format!("outside: touch {}", text(&new));
            let all = [&["--settings", &settings], flags].concat();
            let ended: Ended = cell.command(&prompt, &all).output().unwrap().into();
            assert_eq!(ended.code, Some(0), "{ended:?}");
            (fs::remove_file(&new).is_ok(), ended.stdout)
        };
        let (is_made, said) = left(json!({}), &[]);
        assert!(!is_made && said.contains("it asks to run outside the sandbox"), "{said}");
        assert!(left(json!({}), &["--allowedTools", "Bash(touch *)"]).0);
        let closed = json!({"allowUnsandboxedCommands": false});
        for flags in [&[][..], &["--allowedTools", "Bash(touch *)"]] {
            let (is_made, said) = left(closed.clone(), flags);
            assert!(!is_made && is_refused(&said), "{said}");
            assert!(!said.contains("asks to run outside"), "{said}");
        }
    });
}

// REQ: TOL-10
#[test]
fn settings_of_a_repository_do_not_switch_the_sandbox_off() {
    at_each_level("settings of a repository", |level| {
        let cell = Cell::at(level);
        cell.place
            .file(".claude/settings.json", r#"{"sandbox": {"enabled": false, "network": "open"}}"#);
        let settings = cell.settings(&json!({}));
        let command = format!("echo x > {}", text(&cell.dir("outside/new")));
        let flags = ["--trust", "--permission-mode", "bypassPermissions", "--settings", &settings];
        let ended = cell.run(&command, &flags);
        assert!(is_refused(&ended.stdout), "{ended:?}");
        assert!(!cell.dir("outside/new").exists());
    });
}

// REQ: TOL-10
#[test]
fn hooks_of_a_repository_are_confined_and_those_of_the_user_are_not() {
    at_each_level("hooks", |level| {
        let cell = Cell::at(level);
        let hook = |name: &str| {
            let file = cell.dir("outside").join(name);
            let command = format!("echo x > {}; echo x > {name}", text(&file));
            json!({"Stop": [{"hooks": [{"type": "command", "command": command}]}]})
        };
        let of_repository = json!({ "hooks": hook("of-repository") }).to_string();
        cell.place.file(".claude/settings.json", &of_repository);
        let of_user = json!({ "hooks": hook("of-user") }).to_string();
        cell.place.file("../home/.claude/settings.json", &of_user);
        let ended = cell.run("true", &["--trust", "--settings", &cell.settings(&json!({}))]);
        let exists = |path: &str| cell.place.work().join(path).exists();
        assert!(exists("of-repository") && exists("of-user"), "both ran: {ended:?}");
        assert!(!exists("../outside/of-repository"), "{ended:?}");
        assert!(exists("../outside/of-user"), "{ended:?}");
    });
}

// REQ: TOL-10, HKS-1
#[test]
fn lines_that_a_repositorys_hook_writes_for_commands_are_confined_like_it() {
    at_each_level("lines for commands", |level| {
        let cell = Cell::at(level);
        let hook = |name: &str| {
            let command = format!("echo 'export {name}=set' >> \"$CLAUDE_ENV_FILE\"");
            let table =
                json!({"SessionStart": [{"hooks": [{"type": "command", "command": command}]}]});
            json!({ "hooks": table }).to_string()
        };
        cell.place.file(".claude/settings.json", &hook("OF_REPOSITORY"));
        cell.place.file("../home/.claude/settings.json", &hook("OF_USER"));
        let settings = cell.settings(&json!({}));
        let said = |prompt: &str| {
            let flags = ["--trust", "--settings", &settings, "--allowedTools", "Bash(echo *)"];
            let prompt = format!("{prompt}: echo \"${{OF_REPOSITORY-none}} ${{OF_USER-none}}\"");
            let ended: Ended = cell.command(&prompt, &flags).output().unwrap().into();
            ended.stdout
        };
        assert!(said("run").contains("set set"));
        assert!(said("outside").contains("none set"));
    });
}

// REQ: TOL-10
#[test]
fn servers_of_a_repository_are_confined() {
    at_each_level("servers", |level| {
        let cell = Cell::at(level);
        let started = |flags: &[&str]| {
            let _old = fs::remove_file(cell.dir("outside/server"));
            let server = json!({ "command": "sh", "args": ["-c", format!(
            "echo x > {}; echo x > started", text(&cell.dir("outside/server")))] });
            cell.place.file(".mcp.json", &json!({ "mcpServers": { "srv": server } }).to_string());
            cell.run("true", &[&["--trust"], flags].concat());
            assert!(cell.place.work().join("started").exists());
            cell.dir("outside/server").exists()
        };
        assert!(started(&[]), "without a sandbox");
        assert!(!started(&["--settings", &cell.settings(&json!({}))]));
    });
}

// REQ: TOL-10
#[test]
fn server_of_a_repository_serves_from_the_sandbox() {
    at_each_level("a server that serves", |level| {
        let cell = Cell::at(level);
        // The program is in the workspace: where it was built may be the home directory of this user,
        // which is hidden from a sandbox whose own home is elsewhere.
        let mut server = entry();
        let program = cell.place.work().join("server");
        fs::copy(server["command"].as_str().unwrap(), &program).unwrap();
        server["command"] = text(&program).into();
        cell.place.file(".mcp.json", &json!({ "mcpServers": { "srv": server } }).to_string());
        let ended = cell.run("true", &["--trust", "--settings", &cell.settings(&json!({}))]);
        assert_eq!(n_starts(&cell.place.work()), 1, "{ended:?}");
        assert!(!ended.stderr.contains("failed"), "{ended:?}");
    });
}
