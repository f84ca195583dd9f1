//! Commands of hooks that are not waited for, as real processes.

use std::{fs, path::Path, sync::Arc};

use ennead::{Event, RunEnd};
use ennead_runtime::transcript::entry::RecordKind;
use serde_json::{Value, json};

use super::{command, hooks, probed};
use crate::support::{
    host::{interrupted, prompt},
    processes::{fifo, read_to_end},
    record,
    scripted::{Scripted, TestDirs, alerts, call, finish, model, says, text, until_end},
    settings::SettingsJson as _,
    until::{until, within},
};

/// A handler that is not waited for: it says that it has begun, waits to be let go, and then does the rest.
fn held(place: &TestDirs, key: &str, rest: &str) -> Value {
    let begun = place.path("begun");
    let go = place.path("go");
    fifo(&go);
    let line = format!("touch {}; cat {} >/dev/null; {rest}", begun.display(), go.display());
    let mut handler = command(&line);
    handler[key] = true.into();
    handler
}

fn adds(context: &str) -> String {
    let answer = json!({
        "decision": "block", "reason": "too late", "continue": false, "systemMessage": "for you",
        "hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": context},
    });
    format!("echo '{answer}'")
}

/// Lets the handler go.
async fn let_go(place: &TestDirs) {
    let go = place.path("go");
    let opened = tokio::task::spawn_blocking(move || fs::write(go, "x"));
    within("the handler reads", opened).await.unwrap().unwrap();
}

/// Ends of handlers, as they are on record.
fn ends(transcript: &Path) -> Vec<(String, String, bool)> {
    let end = |what: RecordKind| match what {
        RecordKind::Hook { ended, effect, shows, .. } => Some((ended, effect, shows.is_some())),
        _ => None,
    };
    record::records(transcript).into_iter().filter_map(|it| end(it.what)).collect()
}

async fn has_ended(transcript: &Path, n: usize) {
    until("the end of the hook is on record", async || ends(transcript).len() == n).await;
}

// REQ: HKS-1, HKS-2, HKS-4, HKS-5
#[tokio::test]
async fn hook_that_is_not_waited_for_adds_to_the_next_turn_and_decides_nothing() {
    let place = TestDirs::new();
    let handler = held(&place, "async", &adds("from afar"));
    let (options, _) = probed(&place);
    let model = calls_once();
    let ennead = place.start(&model).await;
    let options = options.setting("hooks", hooks("PostToolUse", &[handler]));
    let session = ennead.open(options).await.unwrap();
    let mut events = session.events();
    // The run is over while the handler is at work.
    let first = within("the run", session.prompt("go")).await.unwrap();
    assert_eq!((first.end, first.text.as_str()), (RunEnd::NoPendingTools, "answer 1"));
    let transcript = session.transcript().to_owned();
    assert_eq!(ends(&transcript), [("detached".into(), "none".into(), false)]);
    let_go(&place).await;
    has_ended(&transcript, 2).await;
    assert_eq!(ends(&transcript)[1], ("exited".into(), "context".into(), true));
    assert!(!model.last().user().contains("from afar"));
    session.prompt("more").await.unwrap();
    let asked = model.last().user();
    assert!(asked.contains("A PostToolUse hook adds:\n\nfrom afar"), "{asked}");
    assert!(!asked.contains("too late"), "{asked}");
    session.prompt("still more").await.unwrap();
    assert_eq!(model.last().user().matches("from afar").count(), 1, "it is added once");
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.extend(until_end(&mut events).await);
    }
    let said = seen.iter().filter_map(|it| match it {
        Event::HookMessage { text, .. } => Some(&**text),
        _ => None,
    });
    assert_eq!(said.collect::<Vec<_>>(), ["for you"]);
    assert!(alerts(&seen).is_empty(), "{seen:?}");
    finish(ennead, session).await;
    record::replayed(&transcript, 4);
}

// REQ: HKS-1, SES-4
#[tokio::test]
async fn what_a_hook_adds_is_shown_once_by_the_session_that_is_resumed() {
    let place = TestDirs::new();
    let long = "x".repeat(3_000);
    let handler = held(&place, "async", &adds(&format!("kept {long}")));
    let (options, _) = probed(&place);
    let options = options.setting("hooks", hooks("PostToolUse", &[handler]));
    let first = says(vec![call("t", "probe", json!({"n": 1}))]);
    let ennead = place.start(&first).await;
    let session = ennead.open(options.clone()).await.unwrap();
    session.prompt("go").await.unwrap();
    let transcript = session.transcript().to_owned();
    let_go(&place).await;
    has_ended(&transcript, 2).await;
    finish(ennead, session).await;

    let again = model(|_| text("ok"));
    let ennead = place.start(&again).await;
    let session = ennead.open(options).await.unwrap();
    session.prompt("go on").await.unwrap();
    session.prompt("and on").await.unwrap();
    let asked = again.last().user();
    assert_eq!(asked.matches(&format!("kept {long}")).count(), 1);
    finish(ennead, session).await;
    record::replayed(&transcript, 4);
}

/// Calls `probe` once, and answers from then on.
fn calls_once() -> Arc<Scripted> {
    model(|asked| match asked.n_answers() {
        0 => call("t", "probe", json!({"n": 1})),
        n => text(&format!("answer {n}")),
    })
}

// REQ: HKS-1, HKS-2, HKS-4
#[tokio::test]
async fn first_line_of_an_output_has_its_handler_not_waited_for() {
    let place = TestDirs::new();
    let (go, begun) = (place.text("go"), place.text("begun"));
    fifo(&place.path("go"));
    let line = format!(
        r#"echo '{{"async":true,"asyncTimeout":60000}}'; touch {begun}; cat {go} >/dev/null; {}"#,
        adds("later on").replace("PostToolUse", "PreToolUse"),
    );
    let mut handler = command(&line);
    // From the first line on the other limit holds.
    handler["timeout"] = json!(5);
    let (options, ran) = probed(&place);
    let model = calls_once();
    let ennead = place.start(&model).await;
    let options = options.setting("hooks", hooks("PreToolUse", &[handler]));
    let session = ennead.open(options).await.unwrap();
    within("the run", session.prompt("go")).await.unwrap();
    assert_eq!(ran.lock().unwrap().len(), 1, "it denies nothing");
    let transcript = session.transcript().to_owned();
    let_go(&place).await;
    has_ended(&transcript, 2).await;
    session.prompt("more").await.unwrap();
    assert!(model.last().user().contains("A PreToolUse hook adds:\n\nlater on"));
    finish(ennead, session).await;
    record::replayed(&transcript, 3);
}

// REQ: HKS-1
#[tokio::test]
async fn hook_that_asks_has_a_session_at_rest_go_on() {
    let place = TestDirs::new();
    let handler = held(&place, "asyncRewake", "echo 'the build is broken' >&2; exit 2");
    let (options, _) = probed(&place);
    let model = calls_once();
    let ennead = place.start(&model).await;
    let options = options.setting("hooks", hooks("PostToolUse", &[handler]));
    let session = ennead.open(options).await.unwrap();
    session.prompt("go").await.unwrap();
    let transcript = session.transcript().to_owned();
    let_go(&place).await;
    until("the session has gone on", async || model.asked().len() == 3).await;
    let asked = model.last().user();
    assert!(asked.contains("the build is broken") && asked.contains("asks for attention"));
    session.prompt("more").await.unwrap();
    assert_eq!(model.last().user().matches("the build is broken").count(), 1);
    finish(ennead, session).await;
    record::replayed(&transcript, 4);
}

// REQ: HKS-1, HKS-6
#[tokio::test]
async fn hook_that_asks_at_the_end_of_each_run_that_it_began_is_heard_no_more() {
    let place = TestDirs::new();
    let mut handler = command("echo again >&2; exit 2");
    handler["asyncRewake"] = true.into();
    let model = says(vec![]);
    let ennead = place.start(&model).await;
    let options = place.session().setting("hooks", hooks("Stop", &[handler]));
    let session = ennead.open(options).await.unwrap();
    let mut events = session.events();
    for n_runs in [9, 18] {
        session.prompt("go").await.unwrap();
        loop {
            let event = within("the alert", events.next()).await.unwrap().event;
            if matches!(event, Event::Alert { what } if what.contains("asks for attention once more"))
            {
                break;
            }
        }
        assert_eq!(model.asked().len(), n_runs);
    }
    finish(ennead, session).await;
}

// REQ: HKS-1, TOL-6
#[tokio::test]
async fn no_process_of_a_hook_outlives_its_session() {
    for announces in [false, true] {
        let place = TestDirs::new();
        fifo(&place.path("workspace/alive"));
        let up = "exec 9> alive; echo up >&9; (setsid sleep 1000 &); sleep 1000";
        let mut handler = command(&format!("echo '{{\"async\":true}}'; {up}"));
        if !announces {
            handler = command(up);
            handler["async"] = true.into();
        }
        let (options, _) = probed(&place);
        let model = calls_once();
        let ennead = place.start(&model).await;
        let options = options.setting("hooks", hooks("PostToolUse", &[handler]));
        let session = ennead.open(options).await.unwrap();
        let (is_up, alive) = read_to_end(&place.path("workspace/alive"));
        session.prompt("go").await.unwrap();
        within("it runs", is_up.pass()).await;
        // An interrupt of another run does not end it, nor wait for it.
        model.hold().close();
        let run = prompt(&session, "held: more");
        model.hold().arrived().await;
        session.interrupt();
        interrupted(run).await;
        assert!(!alive.is_finished());
        finish(ennead, session).await;
        within("nothing holds the pipe", alive).await.unwrap();
    }
}

// REQ: HKS-2
#[tokio::test]
async fn hooks_that_are_not_waited_for_are_bounded_in_number() {
    let place = TestDirs::new();
    let handler = |n: usize| {
        let mut handler = command(&format!("sleep 1000; echo {n}"));
        handler["async"] = true.into();
        handler
    };
    let handlers: Vec<_> = (0..17).map(handler).collect();
    let (options, ran) = probed(&place);
    let options = options.setting("hooks", hooks("PreToolUse", &handlers));
    let (_, seen) = place.run_with_events(&calls_once(), options).await;
    assert_eq!(ran.lock().unwrap().len(), 1, "none decides");
    let alerts = alerts(&seen);
    assert_eq!(alerts.len(), 1, "{alerts:?}");
    assert!(alerts[0].contains("16 that are not waited for are at work"), "{alerts:?}");
}
