//! Hooks as real processes, through whole sessions.

use std::{
    process::Command,
    sync::{Arc, Mutex},
};

use ennead::{
    Event, RunEnd, SessionOptions,
    tool::{Access, CustomTool, ToolOutcome},
};
use serde_json::{Value, json};

use crate::support::scripted::{TestDirs, alerts, call, model, says, text};
use crate::support::settings::SettingsJson as _;

mod agents;
mod batches;
mod config;
mod detached;
mod exports;
mod files;
mod first_words;
mod limits;
mod prompts;
mod servers;
mod titles;
mod tools;

/// The inputs that a tool ran with.
type RanInputs = Arc<Mutex<Vec<String>>>;

/// A session with a tool `probe` that notes its inputs and needs no permission.
fn probed(place: &TestDirs) -> (SessionOptions, RanInputs) {
    let ran = RanInputs::default();
    let notes = Arc::clone(&ran);
    let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#;
    let probe = CustomTool::raw("probe", "", schema, move |input, _| {
        notes.lock().unwrap().push(input.to_string());
        async { ToolOutcome::ok("probed") }
    });
    let probe = probe.access(Access::Free).build().unwrap();
    (place.session().tool(Arc::new(probe)), ran)
}

fn command(command: &str) -> Value {
    json!({"type": "command", "command": command})
}

/// Settings with handlers for one event and every subject.
fn hooks(event: &str, handlers: &[Value]) -> Value {
    json!({ event: [{"hooks": handlers}] })
}

/// A command that says this and exits with this code.
fn answers(code: i32, stdout: &Value, stderr: &str) -> Value {
    command(&format!("echo '{stdout}'; echo '{stderr}' >&2; exit {code}"))
}

fn decides(decision: &str, reason: &str) -> Value {
    json!({"hookSpecificOutput": {
        "hookEventName": "PreToolUse", "permissionDecision": decision,
        "permissionDecisionReason": reason,
    }})
}

/// What came of a call of `probe` with `{"n": 1}` under these settings.
struct Came {
    inputs: Vec<String>,
    result: String,
    end: RunEnd,
    events_seen: Vec<Event>,
    text: String,
    asked: Vec<crate::support::scripted::Asked>,
}

async fn probe_under(settings: Value) -> Came {
    let place = TestDirs::new();
    let (options, ran) = probed(&place);
    came_of(&place, options.setting("hooks", settings), &ran).await
}

async fn came_of(place: &TestDirs, options: SessionOptions, ran: &RanInputs) -> Came {
    let model = says(vec![call("t", "probe", json!({"n": 1}))]);
    let (outcome, events_seen) = place.run_with_events(&model, options).await;
    let results = outcome.messages.iter().flat_map(|it| &it.blocks);
    let result = results.filter_map(|it| it.as_tool_result()).map(|it| it.1.to_owned()).next();
    Came {
        inputs: ran.lock().unwrap().clone(),
        result: result.unwrap_or_default(),
        end: outcome.end,
        text: outcome.error.unwrap_or(outcome.text),
        events_seen,
        asked: model.asked(),
    }
}

// REQ: HKS-4, PRM-1
#[tokio::test]
async fn answers_of_pre_tool_use_hooks_decide() {
    let no_name = json!({"hookSpecificOutput": {"permissionDecision": "deny"}});
    let block = |it: Value| {
        let mut it = it;
        it["onFailure"] = "block".into();
        it
    };
    let cases: Vec<(&str, Vec<Value>, Result<&str, &str>)> = vec![
        ("failing", vec![answers(1, &json!(""), "broken")], Ok("exit code 1: broken")),
        ("failing, saying deny", vec![answers(1, &decides("deny", "r"), "")], Err("r")),
        ("two beats allow", vec![answers(2, &decides("allow", ""), "no")], Err("no")),
        (
            "deny beats allow",
            vec![answers(0, &decides("allow", ""), ""), answers(0, &decides("deny", "d"), "")],
            Err("d"),
        ),
        (
            "ask beats allow; nobody is there",
            vec![answers(0, &decides("allow", ""), ""), answers(0, &decides("ask", "q"), "")],
            Err("q"),
        ),
        ("no event name", vec![answers(0, &no_name, "")], Ok("not valid")),
        ("failing that blocks", vec![block(answers(1, &json!(""), "x"))], Err("failing denies")),
        (
            "no such program",
            vec![json!({"type": "command", "command": "/no/such", "args": []})],
            Ok("crashed"),
        ),
        ("silent", vec![command("true")], Ok("")),
        ("much output", vec![command("head -c 5000000 /dev/zero | tr '\\0' x")], Ok("")),
    ];
    for (name, handlers, expected) in cases {
        let came = probe_under(hooks("PreToolUse", &handlers)).await;
        let alerts = alerts(&came.events_seen).join("\n");
        match expected {
            Ok(alert) => {
                assert_eq!(came.result, "probed", "{name}");
                assert!(alerts.contains(alert), "{name}: {alerts}");
            }
            Err(reason) => {
                assert_eq!(came.inputs.len(), 0, "{name}");
                assert!(came.result.starts_with("Permission denied: "), "{name}: {}", came.result);
                assert!(came.result.contains(reason), "{name}: {}", came.result);
            }
        }
        assert_eq!(came.end, RunEnd::NoPendingTools, "{name}");
    }
}

// REQ: HKS-4
#[tokio::test]
async fn fail_closed_makes_every_failing_hook_a_deny() {
    let mut settings = hooks("PreToolUse", &[command("exit 1")]);
    settings["fail_closed"] = true.into();
    let came = probe_under(settings).await;
    assert!(came.inputs.is_empty());
    assert!(came.result.contains("failing denies"), "{}", came.result);
}

// REQ: HKS-4, TOL-1
#[tokio::test]
async fn input_of_a_hook_replaces_the_call_and_must_fit_the_schema() {
    let updates = |input: Value| json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": input}});
    let came = probe_under(hooks("PreToolUse", &[answers(0, &updates(json!({"n": 2})), "")])).await;
    assert_eq!(came.inputs, [r#"{"n":2}"#]);
    let bad = answers(0, &updates(json!({"n": "two"})), "");
    let came = probe_under(hooks("PreToolUse", &[bad])).await;
    assert_eq!(came.inputs, [""; 0]);
    assert!(came.result.contains("PreToolUse hook"), "{}", came.result);
}

// REQ: HKS-4, PRM-2
#[tokio::test]
async fn replaced_input_goes_through_the_rules() {
    let updates = json!({"hookSpecificOutput": {
        "hookEventName": "PreToolUse", "updatedInput": {"command": "echo replaced"},
    }});
    for (rule, runs) in [("allow", true), ("deny", false)] {
        let place = TestDirs::new();
        let options =
            place.session().setting("hooks", hooks("PreToolUse", &[answers(0, &updates, "")]));
        let options = match rule {
            "allow" => options.allow("Bash(echo replaced)").unwrap(),
            _ => options.allow("Bash(true)").unwrap().deny("Bash(echo *)").unwrap(),
        };
        let model = says(vec![call("b", "Bash", json!({"command": "true"}))]);
        place.run(&model, options).await;
        assert_eq!(model.last().result("b").contains("replaced"), runs, "{rule}");
    }
}

// REQ: HKS-4, PRM-2
#[tokio::test]
async fn allow_of_a_hook_never_beats_a_rule() {
    for (rule, runs) in [(None, true), (Some("Bash(touch *)"), false)] {
        let place = TestDirs::new();
        let allow = hooks("PreToolUse", &[answers(0, &decides("allow", ""), "")]);
        let mut options = place.session().setting("hooks", allow);
        if let Some(rule) = rule {
            options = options.deny(rule).unwrap();
        }
        let model = says(vec![call("b", "Bash", json!({"command": "touch made"}))]);
        place.run(&model, options).await;
        assert_eq!(place.has("workspace/made"), runs);
    }
}

// REQ: HKS-4
#[tokio::test]
async fn post_tool_use_adds_context_and_undoes_nothing() {
    let context = json!({"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "mind the gap"}});
    let block = json!({"decision": "block", "reason": "that was wrong"});
    let stop = json!({"continue": false, "stopReason": "enough"});
    let cases: Vec<(Vec<Value>, &str, RunEnd)> = vec![
        (vec![answers(0, &context, "")], "mind the gap", RunEnd::NoPendingTools),
        (vec![answers(0, &block, "")], "that was wrong", RunEnd::NoPendingTools),
        (vec![answers(2, &json!(""), "from stderr")], "from stderr", RunEnd::NoPendingTools),
        (
            vec![answers(0, &stop, ""), answers(0, &context, "")],
            "mind the gap",
            RunEnd::HookStopped,
        ),
    ];
    for (handlers, added, end) in cases {
        let came = probe_under(hooks("PostToolUse", &handlers)).await;
        assert_eq!((came.inputs.len(), came.end), (1, end), "{added}");
        assert!(came.result.starts_with("probed\n\n<system-reminder>"), "{}", came.result);
        assert!(came.result.contains(added), "{}", came.result);
        if end == RunEnd::HookStopped {
            assert_eq!(came.text, "enough");
        }
    }
    let came = probe_under(hooks("PostToolUse", &[command("echo plain")])).await;
    assert_eq!(came.result, "probed");
}

// REQ: HKS-4
#[tokio::test]
async fn context_of_a_pre_hook_is_read_after_the_result() {
    let context = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "additionalContext": "beforehand"}});
    let came = probe_under(hooks("PreToolUse", &[answers(0, &context, "")])).await;
    assert_eq!(came.result, "probed");
    assert!(came.asked[1].user().contains("beforehand"));
}

// REQ: HKS-5
#[tokio::test]
async fn handlers_get_json_their_place_and_their_environment() {
    let place = TestDirs::new();
    let (options, ran) = probed(&place);
    let seen = place.text("outside/seen");
    let script = place.script(
        "outside/hook.sh",
        &format!(
            "cat > {seen}; echo >> {seen}; pwd >> {seen}; echo $CLAUDE_PROJECT_DIR $EXTRA >> {seen}"
        ),
    );
    let options = options
        .setting("hooks", hooks("PreToolUse", &[command(&script)]))
        .setting("env", json!({"EXTRA": "more"}));
    came_of(&place, options, &ran).await;
    let seen = place.read("outside/seen");
    let lines: Vec<&str> = seen.lines().collect();
    let input: Value = serde_json::from_str(lines[0]).unwrap();
    let workspace = place.text("workspace");
    for (key, value) in [
        ("hook_event_name", json!("PreToolUse")),
        ("tool_name", json!("probe")),
        ("tool_input", json!({"n": 1})),
        ("tool_use_id", json!("t")),
        ("cwd", json!(workspace)),
        ("permission_mode", json!("default")),
        ("session_id", json!(crate::support::scripted::SESSION)),
    ] {
        assert_eq!(input[key], value, "{key}");
    }
    let transcript = input["transcript_path"].as_str().unwrap();
    assert!(std::path::Path::new(transcript).exists());
    assert_eq!(lines[1..], [workspace.clone(), format!("{workspace} more")]);
    let hook = place.lines().into_iter().find(|it| it["kind"] == "hook").unwrap();
    assert_eq!((hook["event"].as_str(), hook["exit"].as_i64()), (Some("PreToolUse"), Some(0)));
}

// REQ: HKS-2
#[tokio::test]
async fn handlers_of_one_event_run_side_by_side() {
    let place = TestDirs::new();
    let (options, ran) = probed(&place);
    let pipe = place.text("outside/pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // Neither end of the pipe opens without the other.
    let both = [command(&format!("echo x > {pipe}")), command(&format!("cat {pipe}; exit 2"))];
    let came = came_of(&place, options.setting("hooks", hooks("PreToolUse", &both)), &ran).await;
    assert!(came.result.starts_with("Permission denied"), "{}", came.result);
}

// REQ: HKS-2
#[tokio::test]
async fn same_command_of_two_layers_runs_once() {
    let place = TestDirs::new();
    let (options, ran) = probed(&place);
    let once =
        hooks("PreToolUse", &[command(&format!("echo x >> {}", place.text("outside/count")))]);
    place.write("home/.claude/settings.json", &json!({"hooks": once}).to_string());
    came_of(&place, options.setting("hooks", once), &ran).await;
    assert_eq!(place.read("outside/count"), "x\n");
}

// REQ: HKS-2
#[tokio::test]
async fn handler_need_not_read_its_input() {
    let place = TestDirs::new();
    let (options, ran) = probed(&place);
    let large = "x".repeat(1 << 20);
    let model = model(move |asked| match asked.n_answers() {
        0 => call("t", "probe", json!({"text": large})),
        _ => text("done"),
    });
    let options = options.setting("hooks", hooks("PreToolUse", &[command("exit 0")]));
    let outcome = place.run(&model, options).await;
    assert_eq!((outcome.text.as_str(), ran.lock().unwrap().len()), ("done", 1));
}

// REQ: HKS-3
#[tokio::test]
async fn hook_is_not_run_by_what_it_started_itself() {
    let place = TestDirs::new();
    let (options, ran) = probed(&place);
    let chain = place.text("outside/chain");
    let tell = hooks("PreToolUse", &[command(&format!("echo $ENNEAD_HOOK_CHAIN >> {chain}"))]);
    let options = options.setting("hooks", tell);
    came_of(&place, options.clone(), &ran).await;
    // What an ennead that the hook starts is given.
    let chain = place.read("outside/chain").trim().to_owned();
    assert_eq!(chain.split(':').count(), 1);
    let model = says(vec![call("t", "probe", json!({"n": 1}))]);
    let inner = place.options(&model).hook_chain(vec![chain.clone()]);
    let ennead = ennead::Ennead::start(inner).await.unwrap();
    let session = ennead
        .open({
            let mut it = options;
            it.id = None;
            it
        })
        .await
        .unwrap();
    let mut events = session.events();
    session.prompt("go").await.unwrap();
    let events_seen = crate::support::scripted::until_end(&mut events).await;
    crate::support::scripted::finish(ennead, session).await;
    assert_eq!(place.read("outside/chain").lines().count(), 1, "it did not run again");
    assert!(alerts(&events_seen).join("").contains("not run again"), "{events_seen:?}");
    assert_eq!(model.last().result("t"), "probed");
}
