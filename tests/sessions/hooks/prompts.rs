//! Hooks that ask a model, on the session's own way to it.

use std::{fs, sync::Arc};

use ennead::{Event, RunEnd, permission::PermissionMode};
use ennead_runtime::transcript::entry::{Record, RecordKind};
use serde_json::{Value, json};

use super::{command, hooks, probed};
use crate::support::{
    host::{interrupted, prompt},
    record,
    scripted::{
        Asked, Reply, SESSION, Scripted, TestDirs, alerts, call, finish, model, refusal, silence,
        text, until_end,
    },
    settings::SettingsJson as _,
    until::until,
};

fn handler(prompt: &str) -> Value {
    json!({"type": "prompt", "prompt": prompt})
}

fn objects() -> Reply {
    text(r#"{"ok":false,"reason":"not so"}"#)
}

fn is_judge(asked: &Asked) -> bool {
    asked.system().contains("You are a hook of a coding agent")
}

/// Calls `probe` once, then answers; a hook is answered by `judge`, which is given the number of its answer.
fn judged(judge: impl Fn(usize) -> Reply + Send + Sync + 'static) -> Arc<Scripted> {
    let n_judged = std::sync::atomic::AtomicUsize::new(0);
    model(move |asked| match (is_judge(asked), asked.n_answers()) {
        (true, _) => judge(n_judged.fetch_add(1, std::sync::atomic::Ordering::SeqCst)),
        (false, 0) => call("t", "probe", json!({"n": 1})),
        (false, n) => text(&format!("answer {n}")),
    })
}

struct JudgedRun {
    end: RunEnd,
    /// How often `probe` ran.
    n_ran: usize,
    seen: Vec<Event>,
    model: Arc<Scripted>,
    error: String,
}

impl JudgedRun {
    /// What the model read that works, at last.
    fn read(&self) -> String {
        let asked = self.model.asked();
        let last = asked.iter().rfind(|it| !is_judge(it));
        last.map(|it| it.text.clone()).unwrap_or_default()
    }

    fn judged(&self) -> Vec<Asked> {
        self.model.asked().into_iter().filter(is_judge).collect()
    }
}

/// Runs one prompt under this hook. Its record is in order, and a walk of it needs no model.
async fn under(event: &str, handlers: &[Value], model: Arc<Scripted>, n_turns: u64) -> JudgedRun {
    let place = TestDirs::new();
    let (options, ran) = probed(&place);
    let ennead = place.start(&model).await;
    let options = options.setting("hooks", hooks(event, handlers));
    let session = ennead.open(options).await.unwrap();
    let mut events = session.events();
    let outcome = session.prompt("do it").await.unwrap();
    let seen = until_end(&mut events).await;
    let transcript = place.path(&format!("transcripts/{SESSION}.jsonl"));
    finish(ennead, session).await;
    record::replayed(&transcript, n_turns);
    let is_for_hook = |it: &RecordKind| matches!(it, RecordKind::ModelAttempt { purpose, .. } if purpose == "hook");
    let records = record::records(&transcript);
    let n_recorded = records.iter().filter(|it| is_for_hook(&it.what)).count();
    let n_judged = model.asked().iter().filter(|it| is_judge(it)).count();
    assert_eq!(n_recorded, n_judged, "each call is on record");
    let counted = outcome.cost.tree().classifications.calls;
    assert_eq!(counted, n_judged as u64, "each call is counted");
    let n_ran = ran.lock().unwrap().len();
    JudgedRun { end: outcome.end, n_ran, seen, model, error: outcome.error.unwrap_or_default() }
}

// REQ: HKS-1, HKS-4, HKS-5
#[tokio::test]
async fn objection_of_a_model_denies_a_call_and_ends_the_run_unless_it_may_go_on() {
    let asks = handler("Is $ARGUMENTS harmless?");
    let came = under("PreToolUse", std::slice::from_ref(&asks), judged(|_| objects()), 1).await;
    assert_eq!((came.end, came.n_ran), (RunEnd::HookStopped, 0));
    assert!(came.error.contains("not so"), "{}", came.error);
    let asked = came.judged().remove(0).user();
    assert!(asked.starts_with("Is {") && asked.ends_with("} harmless?"), "{asked}");
    assert!(asked.contains(r#""hook_event_name":"PreToolUse""#) && asked.contains(r#""n":1"#));

    let mut goes_on = asks.clone();
    goes_on["continueOnBlock"] = true.into();
    let came = under("PreToolUse", &[goes_on], judged(|_| objects()), 2).await;
    assert_eq!((came.end, came.n_ran), (RunEnd::NoPendingTools, 0));
    assert!(came.read().contains("not so"));

    let fine = || judged(|_| text("```json\n{\"ok\":true}\n```"));
    // Commands run next to it, and one objection is enough.
    let came = under("PreToolUse", &[command("true"), asks.clone()], fine(), 2).await;
    assert_eq!((came.end, came.n_ran), (RunEnd::NoPendingTools, 1));
    let second = judged(|n| if n == 0 { text(r#"{"ok":true}"#) } else { objects() });
    let came = under("PreToolUse", &[asks, handler("And this?")], second, 1).await;
    assert_eq!((came.end, came.n_ran, came.judged().len()), (RunEnd::HookStopped, 0, 2));
}

// REQ: HKS-1, HKS-4
#[tokio::test]
async fn objection_after_a_call_before_a_prompt_and_before_the_end_does_what_it_is_to_do() {
    let came = under("PostToolUse", &[handler("Good?")], judged(|_| objects()), 1).await;
    assert_eq!((came.end, came.n_ran), (RunEnd::HookStopped, 1));

    let mut goes_on = handler("Good?");
    goes_on["continueOnBlock"] = true.into();
    let came = under("PostToolUse", &[goes_on], judged(|_| objects()), 2).await;
    assert_eq!(came.end, RunEnd::NoPendingTools);
    assert!(came.read().contains("not so"));

    let came = under("UserPromptSubmit", &[handler("Fit?")], judged(|_| objects()), 1).await;
    assert_eq!((came.end, came.n_ran, came.read()), (RunEnd::HookStopped, 0, String::new()));
    let came =
        under("UserPromptSubmit", &[handler("Fit?")], judged(|_| text(r#"{"ok":true}"#)), 2).await;
    assert_eq!((came.end, came.n_ran), (RunEnd::NoPendingTools, 1));

    let twice = judged(|n| if n < 2 { objects() } else { text(r#"{"ok":true}"#) });
    let came = under("Stop", &[handler("Done?")], twice, 4).await;
    assert_eq!((came.end, came.judged().len()), (RunEnd::NoPendingTools, 3));
    assert!(came.read().contains("not so"));

    let never = judged(|_| text(r#"{"ok":false,"reason":"no way","impossible":true}"#));
    let came = under("Stop", &[handler("Done?")], never, 2).await;
    assert_eq!((came.end, came.judged().len()), (RunEnd::NoPendingTools, 1));
}

// REQ: HKS-1, HKS-2, HKS-4
#[tokio::test]
async fn model_without_a_usable_answer_decides_nothing_unless_its_failing_denies() {
    let cases = [
        (text("I think so"), "cannot be read"),
        (refusal(400), "did not answer"),
        (silence(), "was stopped after"),
    ];
    for (answer, told) in cases {
        let mut asks = handler("Harmless?");
        asks["timeout"] = json!(0.05);
        let came = under(
            "PreToolUse",
            std::slice::from_ref(&asks),
            judged({
                let answer = answer.clone();
                move |_| answer.clone()
            }),
            2,
        )
        .await;
        assert_eq!((came.end, came.n_ran), (RunEnd::NoPendingTools, 1), "{told}");
        let alerts = alerts(&came.seen).join("\n");
        assert!(alerts.contains(told), "{told}: {alerts}");
        asks["onFailure"] = "block".into();
        let came = under("PreToolUse", &[asks], judged(move |_| answer.clone()), 2).await;
        assert_eq!((came.end, came.n_ran), (RunEnd::NoPendingTools, 0), "{told}");
    }
}

// REQ: PRM-4, SES-4, HKS-1
#[tokio::test]
async fn mode_that_is_set_while_the_second_of_two_handlers_waits_holds_after_an_interrupt() {
    let fine = || text(r#"{"ok":true}"#);
    let model = judged(move |_| fine());
    let place = TestDirs::new();
    let (options, ran) = probed(&place);
    let ennead = place.start(&model).await;
    let asks = [handler("Is it fine?"), handler("Is it held, too?")];
    let session = ennead.open(options.setting("hooks", hooks("PreToolUse", &asks))).await.unwrap();
    let hold = model.hold();
    hold.close();
    let run = prompt(&session, "do it");
    hold.arrived().await;
    session.set_mode(PermissionMode::Plan).await.unwrap();
    let transcript = place.path(&format!("transcripts/{SESSION}.jsonl"));
    let is_mode_recorded =
        async || fs::read_to_string(&transcript).is_ok_and(|it| it.contains(r#""kind":"mode""#));
    until("the mode is recorded", is_mode_recorded).await;
    session.interrupt();
    interrupted(run).await;
    hold.open();
    session.prompt("and now?").await.unwrap();
    finish(ennead, session).await;
    assert_eq!(ran.lock().unwrap().len(), 0);
    let records = record::records(&transcript);
    let is_closed = |it: &[Record]| {
        let [asked, mode, end] = it else { return false };
        matches!(asked.what, RecordKind::ModelAttempt { .. })
            && matches!(mode.what, RecordKind::Mode(_))
            && matches!(end.what, RecordKind::ToolEnd { .. })
    };
    assert!(records.windows(3).any(is_closed));
    record::replayed(&transcript, 2);
}
