//! Hooks after all calls of an answer.

use std::fs;

use ennead::{Event, RunEnd};
use serde_json::{Value, json};

use super::{RanInputs, answers, command, hooks, probed};
use crate::support::{
    record,
    scripted::{TestDirs, alerts, call, finish, model, text, until_end},
    settings::SettingsJson as _,
};

/// Has three calls made by one answer, one of which fails, under these handlers.
struct BatchRun {
    ran: RanInputs,
    end: RunEnd,
    error: String,
    asked: Vec<crate::support::scripted::Asked>,
    seen: Vec<Event>,
}

async fn three_calls(place: &TestDirs, handlers: &[Value]) -> BatchRun {
    let (options, ran) = probed(place);
    let model = model(|asked| match asked.n_answers() {
        0 => crate::support::scripted::calls(&[
            ("a", "probe", json!({"n": 1})),
            ("b", "probe", json!({"n": "two"})),
            ("c", "probe", json!({"n": 3})),
        ]),
        1 => call("d", "probe", json!({"n": 4})),
        _ => text("done"),
    });
    let ennead = place.start(&model).await;
    let options = options.setting("hooks", hooks("PostToolBatch", handlers));
    let session = ennead.open(options).await.unwrap();
    let mut events = session.events();
    let outcome = session.prompt("go").await.unwrap();
    let seen = until_end(&mut events).await;
    let transcript = session.transcript().to_owned();
    finish(ennead, session).await;
    let n_turns = if outcome.end == RunEnd::HookStopped { 1 } else { 3 };
    record::replayed(&transcript, n_turns);
    let (end, error) = (outcome.end, outcome.error.unwrap_or_default());
    BatchRun { ran, end, error, asked: model.asked(), seen }
}

// REQ: HKS-1, HKS-4, HKS-5
#[tokio::test]
async fn hook_is_fired_once_for_all_calls_of_an_answer_and_adds_what_the_model_reads() {
    let place = TestDirs::new();
    let log = place.text("log");
    let adds = json!({"hookSpecificOutput": {"hookEventName": "PostToolBatch", "additionalContext": "mind the gap"}});
    let handler = command(&format!("cat >> {log}; echo >> {log}; echo '{adds}'"));
    let came = three_calls(&place, &[handler]).await;
    assert_eq!((came.end, came.ran.lock().unwrap().len()), (RunEnd::NoPendingTools, 3));
    let log = fs::read_to_string(&log).unwrap();
    let inputs: Vec<Value> = log.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    assert_eq!(inputs.len(), 2, "once for each answer");
    let calls = inputs[0]["tool_calls"].as_array().unwrap();
    let shown = |it: &Value| (it["tool_use_id"].clone(), it["tool_input"].clone());
    let expected = [
        (json!("a"), json!({"n": 1})),
        (json!("b"), json!({"n": "two"})),
        (json!("c"), json!({"n": 3})),
    ];
    assert_eq!(calls.iter().map(shown).collect::<Vec<_>>(), expected);
    assert!(calls.iter().all(|it| it["tool_name"] == "probe"));
    assert_eq!(
        (&calls[0]["tool_response"], &calls[2]["tool_response"]),
        (&json!("probed"), &json!("probed"))
    );
    assert!(calls[1]["tool_response"].as_str().unwrap().contains("InputValidationError"));
    let asked = came.asked[1].user();
    assert!(asked.contains("A PostToolBatch hook adds:\n\nmind the gap"), "{asked}");
    assert_eq!(came.asked[1].result("a"), "probed", "results stay as they are");
    assert!(alerts(&came.seen).is_empty(), "{:?}", came.seen);
}

// REQ: HKS-1, HKS-4
#[tokio::test]
async fn hook_ends_the_run_before_the_model_is_asked_again_and_undoes_nothing() {
    let block = json!({"decision": "block", "reason": "look at this first"});
    let stop = json!({"continue": false, "stopReason": "look at this first"});
    for handler in [
        answers(2, &json!(""), "look at this first"),
        answers(0, &block, ""),
        answers(0, &stop, ""),
    ] {
        let came = three_calls(&TestDirs::new(), &[handler]).await;
        assert_eq!((came.end, &*came.error), (RunEnd::HookStopped, "look at this first"));
        assert_eq!((came.ran.lock().unwrap().len(), came.asked.len()), (2, 1));
    }
    // One that fails decides nothing.
    let came = three_calls(&TestDirs::new(), &[command("exit 1")]).await;
    assert_eq!((came.end, came.asked.len()), (RunEnd::NoPendingTools, 3));
    assert!(alerts(&came.seen).join("\n").contains("PostToolBatch hook failed"));
}

// REQ: HKS-1, PRM-2
#[tokio::test]
async fn hook_of_a_repository_that_is_not_trusted_is_not_fired() {
    let own = json!({ "hooks": hooks("PostToolBatch", &[command("touch fired; exit 2")]) });
    for (trust, end) in [
        (ennead::permission::Trust::Untrusted, RunEnd::NoPendingTools),
        (ennead::permission::Trust::Trusted, RunEnd::HookStopped),
    ] {
        let place = TestDirs::new();
        place.write("workspace/.claude/settings.json", &own.to_string());
        let (options, _) = probed(&place);
        let model = crate::support::scripted::says(vec![call("t", "probe", json!({"n": 1}))]);
        let options = options.trust(trust).reads_settings(true);
        let outcome = place.run(&model, options).await;
        assert_eq!((outcome.end, place.has("workspace/fired")), (end, end == RunEnd::HookStopped));
    }
}

// REQ: HKS-1
#[tokio::test]
async fn model_is_asked_about_all_calls_and_can_end_the_run() {
    let place = TestDirs::new();
    let (options, ran) = probed(&place);
    let model = model(|asked| match asked.system().contains("you judge one event") {
        true => {
            assert!(asked.user().contains("tool_calls") && asked.user().contains("probed"));
            text(r#"{"ok":false,"reason":"too far"}"#)
        }
        false => call("t", "probe", json!({"n": 1})),
    });
    let handler = json!({"type": "prompt", "prompt": "Is this right? $ARGUMENTS"});
    let options = options.setting("hooks", hooks("PostToolBatch", &[handler]));
    let ennead = place.start(&model).await;
    let session = ennead.open(options).await.unwrap();
    let outcome = session.prompt("go").await.unwrap();
    assert_eq!((outcome.end, outcome.error.as_deref()), (RunEnd::HookStopped, Some("too far")));
    assert_eq!((ran.lock().unwrap().len(), model.asked().len()), (1, 2));
    let transcript = session.transcript().to_owned();
    finish(ennead, session).await;
    record::replayed(&transcript, 1);
}
