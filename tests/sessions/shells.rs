//! Commands that go on in the background: through turns, to the end of their session, and in what the
//! model is told.

use std::{collections::BTreeMap, fs};

use ennead::{Ennead, RunEnd, SessionHandle, SessionOptions, permission::PermissionMode};
use ennead_runtime::ports::shells::ShellState;
use serde_json::{Value, json};

use crate::support::{
    host::{interrupted, prompt},
    processes::{fifo, read_to_end},
    record,
    scripted::{Asked, Reply, TestDirs, call, calls, finish, model, text},
    until::until,
};

/// A session that may run any command.
fn options(place: &TestDirs) -> SessionOptions {
    place.session().mode(PermissionMode::BypassPermissions)
}

fn background(id: &str, command: &str) -> Reply {
    call(id, "Bash", json!({"command": command, "run_in_background": true}))
}

/// Says by prompt and by the number of answers to it: `begun` is the first answer to the last prompt.
fn by_prompt(asked: &Asked, script: &BTreeMap<&str, Vec<Reply>>) -> Reply {
    let user = asked.body["messages"].as_array().unwrap();
    let texts = |it: &Value| match &it["content"] {
        Value::String(text) => vec![text.clone()],
        parts => {
            let parts = parts.as_array().unwrap().iter();
            parts.filter_map(|it| it["text"].as_str().map(str::to_owned)).collect()
        }
    };
    let is_prompt = |it: &Value| texts(it).iter().any(|it| script.contains_key(it.as_str()));
    let last = user.iter().rposition(is_prompt).unwrap();
    let key = texts(&user[last]).into_iter().find(|it| script.contains_key(it.as_str())).unwrap();
    let n_answers = user[last..].iter().filter(|it| it["role"] == "assistant").count();
    script[key.as_str()].get(n_answers).cloned().unwrap_or_else(|| text("done"))
}

async fn open(ennead: &Ennead, place: &TestDirs) -> SessionHandle {
    ennead.open(options(place)).await.unwrap()
}

async fn none_runs(session: &SessionHandle) {
    until("nothing runs", async || session.status().await.unwrap().shells.is_empty()).await;
}

// REQ: TOL-6, TOL-8
#[tokio::test]
async fn background_command_survives_its_run_is_listed_and_its_end_is_told_once() {
    let place = TestDirs::new();
    fifo(&place.path("workspace/gate"));
    let script = BTreeMap::from([
        ("begin", vec![background("a", "read line < gate; echo over; exit 3")]),
        ("look", vec![call("b", "BashOutput", json!({"bash_id": "bash_1"}))]),
        ("again", vec![]),
    ]);
    let model = model(move |asked| by_prompt(asked, &script));
    let ennead = place.start(&model).await;
    let session = open(&ennead, &place).await;
    session.prompt("begin").await.unwrap();
    let result = model.last().result("a");
    assert!(result.contains("runs in the background as bash_1"), "{result}");
    let shells = session.status().await.unwrap().shells;
    assert_eq!((shells.len(), shells[0].state), (1, ShellState::Running));
    assert_eq!(&*shells[0].command, "read line < gate; echo over; exit 3");
    let gate = place.path("workspace/gate");
    tokio::task::spawn_blocking(move || fs::write(gate, "\n")).await.unwrap().unwrap();
    none_runs(&session).await;
    let outcome = session.prompt("look").await.unwrap();
    assert_eq!(outcome.end, RunEnd::NoPendingTools);
    let reminder = "<system-reminder>\nThe background command bash_1 (`read line";
    assert_eq!(model.last().user().matches(reminder).count(), 1, "{}", model.last().user());
    assert!(model.last().user().contains("ended with exit code 3"));
    assert!(model.last().result("b").ends_with("ended with exit code 3.\nover"));
    session.prompt("again").await.unwrap();
    assert_eq!(model.last().user().matches(reminder).count(), 1, "it is told once");
    let states = record::shells(session.transcript());
    assert_eq!(states, [("bash_1".into(), "running".into()), ("bash_1".into(), "exited".into())]);
    finish(ennead, session.clone()).await;
    record::replayed(session.transcript(), 5);
}

// REQ: TOL-6, TOL-8
#[tokio::test]
async fn killed_command_is_not_told_again() {
    let place = TestDirs::new();
    let script = BTreeMap::from([
        (
            "begin",
            vec![
                background("a", "exec sleep 1000"),
                call("b", "KillShell", json!({"shell_id": "bash_1"})),
            ],
        ),
        ("again", vec![]),
    ]);
    let model = model(move |asked| by_prompt(asked, &script));
    let ennead = place.start(&model).await;
    let session = open(&ennead, &place).await;
    session.prompt("begin").await.unwrap();
    assert!(model.last().result("b").contains("was killed"), "{}", model.last().result("b"));
    assert_eq!(session.status().await.unwrap().shells, []);
    session.prompt("again").await.unwrap();
    assert!(!model.last().user().contains("The background command"));
    let states = record::shells(session.transcript());
    assert_eq!(states, [("bash_1".into(), "running".into()), ("bash_1".into(), "killed".into())]);
    finish(ennead, session.clone()).await;
    record::replayed(session.transcript(), 4);
}

// REQ: TOL-8, TRN-2
#[tokio::test]
async fn interrupt_ends_the_commands_of_its_turn_and_no_other() {
    let place = TestDirs::new();
    for name in ["gate", "alive", "other"] {
        fifo(&place.path(&format!("workspace/{name}")));
    }
    let script = BTreeMap::from([
        ("begin", vec![background("a", "echo up > alive; read line < gate")]),
        (
            "wait",
            vec![call("b", "Bash", json!({"command": "exec 9> other; echo x >&9; sleep 1000"}))],
        ),
    ]);
    let model = model(move |asked| by_prompt(asked, &script));
    let ennead = place.start(&model).await;
    let session = open(&ennead, &place).await;
    let (up, alive) = read_to_end(&place.path("workspace/alive"));
    session.prompt("begin").await.unwrap();
    up.pass().await;
    let (up, other) = read_to_end(&place.path("workspace/other"));
    let run = prompt(&session, "wait");
    up.pass().await;
    session.interrupt();
    interrupted(run).await;
    other.await.unwrap();
    assert_eq!(session.status().await.unwrap().shells.len(), 1);
    let gate = place.path("workspace/gate");
    tokio::task::spawn_blocking(move || fs::write(gate, "\n")).await.unwrap().unwrap();
    none_runs(&session).await;
    alive.await.unwrap();
    finish(ennead, session.clone()).await;
    record::replayed(session.transcript(), 3);
}

/// A command that says that it runs, and then holds the pipe `alive` open.
const HELD: &str = "exec 9> alive; echo up >&9; (setsid sleep 1000 &); sleep 1000";

// REQ: TOL-8, SES-4
#[tokio::test]
async fn session_that_is_closed_ends_its_commands_and_the_next_one_says_what_became_of_all() {
    let place = TestDirs::new();
    fifo(&place.path("workspace/alive"));
    let script = BTreeMap::from([
        ("begin", vec![background("a", HELD), background("z", "exit 3")]),
        (
            "look",
            vec![calls(&[
                ("b", "BashOutput", json!({"bash_id": "bash_1"})),
                ("c", "Bash", json!({"command": "true", "run_in_background": true})),
            ])],
        ),
    ]);
    let model = model(move |asked| by_prompt(asked, &script));
    let ennead = place.start(&model).await;
    let session = open(&ennead, &place).await;
    let (up, alive) = read_to_end(&place.path("workspace/alive"));
    session.prompt("begin").await.unwrap();
    up.pass().await;
    until("one has ended", async || session.status().await.unwrap().shells.len() == 1).await;
    session.close().await;
    assert!(alive.is_finished() || alive.await.is_ok(), "nothing holds the pipe");
    let session = open(&ennead, &place).await;
    session.prompt("look").await.unwrap();
    let user = model.last().user();
    assert!(user.contains("bash_1 (`exec 9> alive;"), "{user}");
    assert!(user.contains("is gone"), "{user}");
    assert!(user.contains("bash_2 (`exit 3`) ended with exit code 3"), "{user}");
    assert!(model.last().result("b").contains("no command bash_1"));
    assert!(model.last().result("c").contains("bash_3"), "names are not given twice");
    finish(ennead, session.clone()).await;
    record::replayed(session.transcript(), 5);
}

// REQ: TOL-8, AGT-3
#[tokio::test]
async fn commands_of_a_sub_agent_end_with_it() {
    let place = TestDirs::new();
    fifo(&place.path("workspace/alive"));
    fifo(&place.path("workspace/begun"));
    let model = model(|asked| match (asked.is_agent(), asked.n_answers()) {
        (false, 0) => call("a", "Agent", json!({"description": "d", "prompt": "p"})),
        (true, 0) => background("b", &HELD.replacen("&9;", "&9; echo begun > begun;", 1)),
        // The agent ends when its command is under way, and not before.
        (true, 1) => call("c", "Bash", json!({"command": "read line < begun"})),
        _ => text("done"),
    });
    let ennead = place.start(&model).await;
    let session = open(&ennead, &place).await;
    let (up, alive) = read_to_end(&place.path("workspace/alive"));
    session.prompt("go").await.unwrap();
    up.pass().await;
    alive.await.unwrap();
    assert_eq!(session.status().await.unwrap().shells, []);
    finish(ennead, session.clone()).await;
    record::verified(session.transcript());
}

// REQ: TOL-8
#[tokio::test]
async fn deny_rule_for_a_command_holds_in_the_background() {
    let place = TestDirs::new();
    let model = model(|asked| match asked.n_answers() {
        0 => background("a", "touch made"),
        _ => text("done"),
    });
    let denied = options(&place).deny("Bash(touch *)").unwrap();
    place.run(&model, denied).await;
    assert!(!place.has("workspace/made"));
    assert!(model.last().results()[0].2, "it is an error");
}

// REQ: TOL-6, PRM-1
#[tokio::test]
async fn looking_and_killing_need_no_permission_and_rules_deny_them_by_old_and_new_names() {
    let place = TestDirs::new();
    let script = || {
        model(|asked| match asked.n_answers() {
            0 => background("a", "exec sleep 1000"),
            1 => calls(&[
                ("b", "BashOutput", json!({"bash_id": "bash_1"})),
                ("c", "KillShell", json!({"shell_id": "bash_1"})),
            ]),
            _ => text("done"),
        })
    };
    let model = script();
    place.run(&model, place.session().allow("Bash").unwrap()).await;
    let failed: Vec<bool> = model.last().results().iter().map(|it| it.2).collect();
    assert_eq!(failed, [false, false, false], "{:?}", model.last().results());
    let model = script();
    let other = place.session().allow("Bash").unwrap().deny("TaskOutput").unwrap();
    let mut other = other.deny("KillShell").unwrap();
    other.id = None;
    place.run(&model, other).await;
    let tools = model.last().tools();
    assert!(tools.iter().any(|it| it == "Bash"));
    assert!(!tools.iter().any(|it| it == "BashOutput" || it == "KillShell"), "{tools:?}");
}
