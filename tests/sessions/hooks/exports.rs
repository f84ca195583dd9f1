//! Hooks that change the environment of later commands by `CLAUDE_ENV_FILE`.

use std::{fs, path::Path};

use ennead::{SessionOptions, permission::PermissionMode};
use serde_json::{Value, json};

use super::{command, hooks};
use crate::support::{
    record,
    scripted::{Asked, TestDirs, alerts, call, finish, model, text, until_end},
    settings::SettingsJson as _,
};

fn bash(id: &str, command: &str) -> crate::support::scripted::Reply {
    call(id, "Bash", json!({ "command": command }))
}

fn session(place: &TestDirs, table: Value) -> SessionOptions {
    place.session().setting("hooks", table).mode(PermissionMode::BypassPermissions)
}

/// Files of the session that hooks were given.
fn left(transcript: &Path) -> Vec<String> {
    let directory = fs::read_dir(transcript.with_extension("")).into_iter().flatten();
    let names = directory.map(|it| it.unwrap().file_name().into_string().unwrap());
    names.filter(|it| it.starts_with("hook-env")).collect()
}

// REQ: HKS-1, HKS-4, TOL-8
#[tokio::test]
async fn commands_begin_with_what_hooks_have_written_for_them() {
    let place = TestDirs::new();
    place.write("workspace/sub/f", "");
    let seen = place.text("outside/seen");
    let start = format!(
        "cat \"$CLAUDE_ENV_FILE\" >> {seen}; stat -c %a \"$CLAUDE_ENV_FILE\" >> {seen}; \
         dirname \"$CLAUDE_ENV_FILE\" >> {seen}; \
         printf 'export A=one\\nexport PATH=\"$PATH:/of-hook\"\\n' >> \"$CLAUDE_ENV_FILE\""
    );
    let moved = "echo \"export A=$(basename \"$PWD\")\" > \"$CLAUDE_ENV_FILE\"";
    let before = format!("echo \"${{CLAUDE_ENV_FILE-none}}\" >> {}", place.text("outside/before"));
    let mut table = hooks("SessionStart", &[command(&start)]);
    table["CwdChanged"] = json!([{"hooks": [command(moved)]}]);
    table["PreToolUse"] = json!([{"hooks": [command(&before)]}]);
    let options = session(&place, table);
    let show = "echo \"$A ${PATH##*:} ${ENNEAD_EXPORTS-gone}\"";
    let of_agent = json!({"description": "d", "prompt": "p"});
    let model = model(move |asked: &Asked| match (asked.is_agent(), asked.n_answers() % 5) {
        (true, 0) => bash("of-agent", show),
        (true, _) => text(&asked.result("of-agent")),
        (false, 0) => bash("first", show),
        (false, 1) => bash("moves", "cd sub"),
        (false, 2) => bash("second", show),
        (false, 3) => call("agent", "Agent", of_agent.clone()),
        (false, _) => text("done"),
    });
    let mut directory = String::new();
    // In the second process, the session is resumed; it begins where the first has moved.
    for n_runs in 1..=2 {
        let ennead = place.start(&model).await;
        let session = ennead.open(options.clone()).await.unwrap();
        session.prompt("go").await.unwrap();
        let transcript = session.transcript().to_owned();
        finish(ennead, session).await;
        let asked = model.last_of_top();
        assert_eq!(asked.result("first"), "one /of-hook gone");
        if n_runs == 1 {
            assert_eq!(asked.result("second"), "sub /of-hook gone");
            assert!(asked.result("agent").contains("sub /of-hook gone"));
        }
        assert_eq!(left(&transcript), [""; 0], "the file is there only as long as a hook runs");
        directory = transcript.with_extension("").to_str().unwrap().to_owned();
        record::replayed(&transcript, 5 * n_runs);
    }
    // It is made anew by the second process, for its owner alone.
    assert_eq!(place.read("outside/seen"), format!("600\n{directory}\n").repeat(2));
    assert_eq!(place.read("outside/before").lines().next(), Some("none"));
}

// REQ: HKS-1, HKS-4
#[tokio::test]
async fn what_cannot_be_taken_is_reported_and_commands_run_without_it() {
    let cases = [
        ("head -c 70000 /dev/zero | tr '\\0' ' ' > \"$CLAUDE_ENV_FILE\"", "over 65536 bytes"),
        ("printf 'A=\\0' > \"$CLAUDE_ENV_FILE\"", "is not text"),
        ("rm \"$CLAUDE_ENV_FILE\"; mkfifo \"$CLAUDE_ENV_FILE\"", "cannot be read"),
        ("rm \"$CLAUDE_ENV_FILE\"", "cannot be read"),
        // The shell says what is wrong.
        ("echo 'if bad(' > \"$CLAUDE_ENV_FILE\"", ""),
    ];
    for (handler, alert) in cases {
        let place = TestDirs::new();
        let options = session(&place, hooks("SessionStart", &[command(handler)]));
        let model = model(|asked| match asked.n_answers() {
            0 => bash("b", "echo it ran"),
            _ => text("done"),
        });
        let ennead = place.start(&model).await;
        let session = ennead.open(options).await.unwrap();
        let mut events = session.events();
        session.prompt("go").await.unwrap();
        let alerts = alerts(&until_end(&mut events).await).join("\n");
        let transcript = session.transcript().to_owned();
        finish(ennead, session).await;
        assert!(alerts.contains(alert), "{handler}: {alerts}");
        let result = model.last().result("b");
        assert!(result.ends_with("it ran"), "{handler}: {result}");
        assert_eq!(result.contains("syntax error"), alert.is_empty(), "{handler}: {result}");
        assert_eq!(left(&transcript), [""; 0], "{handler}");
    }
}
