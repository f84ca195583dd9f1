//! Retries, and models to turn to, through whole sessions over a real socket.

mod in_process;
mod models;

use ennead::{Event, RunEnd, SessionHandle};
use ennead_runtime::{transcript::entry::RecordKind, turn::effect::FallbackUsed};
use serde_json::{Value, json};

use crate::support::clocked::ClockedSessions;
use crate::support::settings::SettingsJson as _;
use crate::support::{model_server::Reply, record, scripted::Asked};
use models::{Model, verify};

/// `(attempt, max_retries, delay_ms, status, error)` of what listeners were told of retries.
fn retries(seen: &[Event]) -> Vec<(u32, u32, u64, Option<u16>, &'static str)> {
    let retry = |event: &Event| match event {
        Event::ModelRetry { attempt, max_retries, delay_ms, status, error, .. } => {
            Some((*attempt, *max_retries, *delay_ms, *status, *error))
        }
        _ => None,
    };
    seen.iter().filter_map(retry).collect()
}

/// `(cause, model, outcome)` of the attempts on record, and when they were over.
fn attempts(session: &SessionHandle) -> Vec<(Option<String>, Option<String>, String, u64)> {
    let records = record::records(session.transcript()).into_iter();
    let attempt = |record: ennead_runtime::transcript::entry::Record| match record.what {
        RecordKind::ModelAttempt { cause, model, outcome, .. } => {
            Some((cause, model, outcome, record.at.0))
        }
        _ => None,
    };
    records.filter_map(attempt).collect()
}

fn overloaded() -> Reply {
    Reply::error(529, "overloaded_error", "Overloaded")
}

fn rate_limited() -> Reply {
    Reply::error(429, "rate_limit_error", "slow down")
}

fn thought(signature: &str, text: &str) -> Reply {
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": signature});
    Reply::message(vec![thinking, json!({"type": "text", "text": text})], "end_turn")
}

fn used(provider: &str, model: &str) -> Option<FallbackUsed> {
    Some(FallbackUsed::new(provider, model))
}

// REQ: MDL-10, MDL-13
#[tokio::test]
async fn bad_request_wrong_key_and_open_bill_are_surfaced_and_asked_of_nobody_else() {
    for (status, kind) in
        [(400, "invalid_request_error"), (401, "authentication_error"), (402, "billing_error")]
    {
        let (model, other) = (
            Model::says(vec![Reply::error(status, kind, "no good")]).await,
            Model::says(vec![Reply::text("hello")]).await,
        );
        let world = ClockedSessions::start().await;
        let (outcome, seen, _) = world.run(world.session(&[&model, &other])).await;
        assert_eq!(outcome.end, RunEnd::Error);
        assert!(outcome.error.unwrap().contains("no good"));
        assert_eq!((model.asked().len(), other.asked().len()), (1, 0));
        assert_eq!((retries(&seen), outcome.fallback), (vec![], None));
    }
}

// REQ: MDL-8
#[tokio::test]
async fn open_bill_is_told_to_everybody_at_once_in_the_words_of_the_provider() {
    let model = Model::says(vec![Reply::error(402, "billing_error", "credit is gone, pay")]).await;
    let other = Model::says(vec![Reply::text("from there")]).await;
    let world = ClockedSessions::start().await;
    for _ in 0..3 {
        let (outcome, seen, _) = world.run(world.session(&[&model, &other])).await;
        let error = outcome.error.unwrap();
        assert!(error.starts_with("billing: ") && error.contains("HTTP 402: credit is gone, pay"));
        assert!(!seen.iter().any(|it| matches!(it, Event::Parked { .. })), "{seen:?}");
    }
    assert_eq!((model.asked().len(), other.asked().len()), (1, 0));
}

// REQ: MDL-7, MDL-10
#[tokio::test]
async fn connection_that_ends_before_an_answer_is_asked_for_a_stream_again() {
    let unread = Reply::error(400, "invalid_request_error", "prompt is too long").cut();
    let model = Model::says(vec![Reply::hung_up(), unread, Reply::text("hello")]).await;
    let world = ClockedSessions::start().await;
    let (outcome, _, session) = world.run(world.session(&[&model])).await;
    assert_eq!(outcome.text, "hello");
    assert!(model.asked().iter().all(Asked::streamed));
    let classes: Vec<String> = attempts(&session).into_iter().map(|it| it.2).collect();
    assert_eq!(classes, ["network", "network", "ok"]);
}

// REQ: MDL-10
#[tokio::test]
async fn what_had_to_be_changed_for_a_model_is_told_once_for_each() {
    let model = Model::start(|ask| match ask.model() {
        "claude-haiku-4-5" => overloaded(),
        _ => Reply::text("hello"),
    })
    .await;
    let world = ClockedSessions::start().await;
    let options = world
        .session(&[&model])
        .model("claude-haiku-4-5")
        .setting("fallbackModel", json!(["claude-sonnet-4-5"]))
        .setting("effortLevel", json!("low"));
    let (outcome, seen, _) = world.run(options).await;
    assert_eq!((outcome.text.as_str(), model.asked().len()), ("hello", 4));
    let alerts: Vec<String> = seen
        .iter()
        .filter_map(|it| match it {
            Event::Alert { what } => Some(what.to_string()),
            _ => None,
        })
        .collect();
    let of = |model: &str| format!("{model}: the model takes no effort");
    assert_eq!(alerts, [of("claude-haiku-4-5"), of("claude-sonnet-4-5")]);
}

// REQ: MDL-6, MDL-10
#[tokio::test]
async fn wait_that_the_server_names_is_waited() {
    let model =
        Model::says(vec![rate_limited().header("retry-after", "3"), Reply::text("hello")]).await;
    let world = ClockedSessions::start().await;
    let (outcome, seen, session) = world.run(world.session(&[&model])).await;
    assert_eq!(outcome.text, "hello");
    let retries = retries(&seen);
    let [(1, 10, delay_ms, Some(429), "rate_limit")] = retries[..] else {
        panic!("{retries:?}");
    };
    assert!((3_000..=3_300).contains(&delay_ms), "{delay_ms}");
    let attempts = attempts(&session);
    assert!(attempts[0].3 + 3_000 <= attempts[1].3, "{attempts:?}");
    assert_eq!(attempts[1].0.as_deref(), Some("rate_limit"));
}

// REQ: MDL-6, MDL-10
#[tokio::test]
async fn rate_limit_without_a_wait_is_asked_again_as_often_as_the_settings_say() {
    let model = Model::says(vec![rate_limited()]).await;
    let world = ClockedSessions::start().await;
    let options = world.session(&[&model]).own_setting("maxRetries", 2.into());
    let (outcome, seen, _) = world.run(options).await;
    assert_eq!(outcome.end, RunEnd::Error);
    assert_eq!(model.asked().len(), 3);
    let seen = retries(&seen);
    assert_eq!(seen.iter().map(|it| (it.0, it.1)).collect::<Vec<_>>(), [(1, 2), (2, 2)]);
}

// REQ: MDL-8, MDL-10
#[tokio::test]
async fn rate_limit_of_one_provider_moves_on_to_another_after_its_retries() {
    let model = Model::says(vec![rate_limited()]).await;
    let other = Model::says(vec![Reply::text("from there")]).await;
    let world = ClockedSessions::start().await;
    let options = world.session(&[&model, &other]).own_setting("maxRetries", 2.into());
    let (outcome, seen, session) = world.run(options).await;
    assert_eq!((outcome.text.as_str(), outcome.fallback), ("from there", used("there", "first")));
    assert_eq!((model.asked().len(), other.asked().len()), (3, 1));
    let switch = Event::RecoveryTaken {
        cause: "rate_limit",
        remedy: "model_fallback",
        model: Some("first".into()),
    };
    assert!(seen.contains(&switch), "{seen:?}");
    let last = attempts(&session).pop().unwrap();
    assert_eq!(last.1.as_deref(), Some("first"));
}

// REQ: MDL-8, MDL-13
#[tokio::test]
async fn used_up_account_is_not_waited_for() {
    let model = Model::says(vec![rate_limited().header("retry-after", "3600")]).await;
    let other = Model::says(vec![Reply::text("from there")]).await;
    let world = ClockedSessions::start().await;
    let (outcome, seen, session) = world.run(world.session(&[&model, &other])).await;
    assert_eq!(outcome.fallback, used("there", "first"));
    assert_eq!((model.asked().len(), retries(&seen)), (1, vec![]));
    assert_eq!(attempts(&session)[0].2, "quota");
}

// REQ: MDL-6, MDL-10
#[tokio::test]
async fn two_overloads_are_two_retries() {
    let model = Model::says(vec![overloaded(), overloaded(), Reply::text("hello")]).await;
    let world = ClockedSessions::start().await;
    let options = world.session(&[&model]).setting("fallbackModel", json!(["second"]));
    let (outcome, seen, _) = world.run(options).await;
    assert_eq!((outcome.text.as_str(), outcome.fallback), ("hello", None));
    assert_eq!(model.models(), ["first", "first", "first"]);
    let seen = retries(&seen);
    assert_eq!(
        seen.iter().map(|it| (it.0, it.3)).collect::<Vec<_>>(),
        [(1, Some(529)), (2, Some(529))]
    );
}

/// Signatures of reasoning in a request.
fn signatures(ask: &Asked) -> Vec<String> {
    let body = &ask.body;
    let blocks = body["messages"].as_array().unwrap().iter();
    let blocks = blocks.flat_map(|it| it["content"].as_array().cloned().unwrap_or_default());
    blocks.filter_map(|it| it["signature"].as_str().map(str::to_owned)).collect()
}

// REQ: MDL-8
#[tokio::test]
async fn next_model_is_sent_no_foreign_reasoning_and_the_next_turn_begins_with_the_first() {
    let model = Model::start(|ask| match (ask.model(), ask.number) {
        ("first", 1) => thought("of the first", "one"),
        ("first", 2..5) => overloaded(),
        ("second", _) => thought("of the second", "two"),
        _ => thought("of the first", "three"),
    })
    .await;
    let world = ClockedSessions::start().await;
    let options = world.session(&[&model]).setting("fallbackModel", json!(["second"]));
    let session = world.ennead.open(options.clone()).await.unwrap();
    for (prompt, text, fallback) in
        [("a", "one", None), ("b", "two", used("here", "second")), ("c", "three", None)]
    {
        let outcome = session.prompt(prompt).await.unwrap();
        assert_eq!((outcome.text.as_str(), outcome.fallback), (text, fallback));
    }
    let all = ["first", "first", "first", "first", "second", "first"];
    assert_eq!(model.models(), all);
    let asked = model.asked();
    assert_eq!(signatures(&asked[3]), ["of the first"]);
    assert_eq!(signatures(&asked[4]), [""; 0]);
    assert_eq!(signatures(&asked[5]), ["of the first"]);
    session.close().await;
    verify(&session);
    // Whoever goes on with the session knows whose reasoning it was.
    let again = options.id(session.id().clone());
    let session = world.ennead.open(again).await.unwrap();
    session.prompt("d").await.unwrap();
    assert_eq!(signatures(model.asked().last().unwrap()), ["of the first", "of the first"]);
    session.close().await;
    verify(&session);
}

// REQ: MDL-10
#[tokio::test]
async fn server_that_answers_with_a_page_is_left_after_a_few_tries() {
    let model = Model::says(vec![Reply::body(200, "<html>Please log in</html>")]).await;
    let world = ClockedSessions::start().await;
    let (outcome, seen, session) = world.run(world.session(&[&model])).await;
    assert_eq!(outcome.end, RunEnd::Error);
    let outcomes: Vec<_> = attempts(&session).into_iter().map(|it| it.2).collect();
    assert_eq!(outcomes, ["bad_answer"; 3]);
    let waited: u64 = retries(&seen).iter().map(|it| it.2).sum();
    assert!(waited < 4_000, "{waited} ms");
}

// REQ: MDL-7
#[tokio::test]
async fn finished_call_of_a_stream_that_broke_is_asked_for_again_and_runs_once() {
    let call = || json!({"type": "tool_use", "id": "t", "name": "Touch", "input": {"a": 1}});
    let model = Model::start(move |ask| match ask.number {
        // The call is whole, the text after it is not.
        1 => {
            let text = json!({"type": "text", "text": "and then ".repeat(200)});
            Reply::message(vec![call(), text], "tool_use").cut()
        }
        2 => Reply::message(vec![call()], "tool_use"),
        _ => Reply::text("done"),
    })
    .await;
    let world = ClockedSessions::start().await;
    let (outcome, _, _) = world.run(world.session(&[&model])).await;
    assert_eq!((outcome.text.as_str(), *world.touched.lock().unwrap()), ("done", 1));
    let asked: Vec<_> = model.asked().iter().map(Asked::streamed).collect();
    assert_eq!(asked, [true, false, true]);
}

// REQ: MDL-4
#[tokio::test]
async fn call_that_the_output_ceiling_cut_does_not_run_and_more_is_asked_for() {
    let half = json!({"type": "tool_use", "id": "t", "name": "Touch", "input": "{\"a\":"});
    let model =
        Model::says(vec![Reply::message(vec![half], "max_tokens"), Reply::text("done")]).await;
    let world = ClockedSessions::start().await;
    let (outcome, _, _) = world.run(world.session(&[&model])).await;
    assert_eq!((outcome.text.as_str(), *world.touched.lock().unwrap()), ("done", 0));
    let ceilings: Vec<Value> =
        model.asked().iter().map(|it| it.body["max_tokens"].clone()).collect();
    assert_eq!(ceilings, [32_000, 64_000]);
}

// REQ: MDL-10
#[tokio::test]
async fn paused_answer_goes_back_as_it_came() {
    let text = |text: &str| vec![json!({"type": "text", "text": text})];
    let model =
        Model::says(vec![Reply::message(text("one"), "pause_turn"), Reply::text("two")]).await;
    let world = ClockedSessions::start().await;
    let (outcome, _, _) = world.run(world.session(&[&model])).await;
    assert_eq!(outcome.text, "one\ntwo");
    let body = model.asked()[1].body.clone();
    let last = body["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(*last, json!({"role": "assistant", "content": text("one")}));
}

// REQ: MDL-8, MDL-10
#[tokio::test]
async fn another_model_does_not_go_on_with_a_paused_answer() {
    let model = Model::start(|ask| match (ask.model(), ask.number) {
        ("first", 1) => Reply::message(vec![json!({"type": "text", "text": "one"})], "pause_turn"),
        ("first", _) => overloaded(),
        _ => Reply::text("two"),
    })
    .await;
    let world = ClockedSessions::start().await;
    let options = world.session(&[&model]).setting("fallbackModel", json!("second"));
    let (outcome, seen, _) = world.run(options).await;
    assert_eq!((outcome.text.as_str(), outcome.fallback), ("two", used("here", "second")));
    let last = model.asked().pop().unwrap();
    assert!(!last.text.contains("one\""), "{}", last.text);
    for attempt in 1..5 {
        let n = seen.iter().filter(|it| **it == Event::Withdrawn { attempt }).count();
        assert_eq!(n, 1, "{attempt}: {seen:?}");
    }
}

// REQ: MDL-10
#[tokio::test]
async fn answer_of_reasoning_alone_is_asked_for_again_once() {
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    let silent = || Reply::message(vec![thinking.clone()], "end_turn");
    for (replies, text, n) in [
        (vec![silent(), Reply::text("hello")], "hello", 2),
        (vec![silent()], "", 2),
        (vec![Reply::message(vec![], "end_turn")], "", 2),
    ] {
        let model = Model::says(replies).await;
        let world = ClockedSessions::start().await;
        let (outcome, _, _) = world.run(world.session(&[&model])).await;
        assert_eq!((outcome.end, outcome.text.as_str()), (RunEnd::NoPendingTools, text));
        assert_eq!(model.asked().len(), n);
    }
}

// REQ: MDL-8, SHP-7
#[tokio::test]
async fn summary_is_asked_of_the_next_model_when_the_first_is_overloaded() {
    let is_summary = |ask: &Asked| ask.text.contains("is about to be replaced by a summary");
    let model = Model::start(move |ask| match ask.model() {
        "first" if is_summary(ask) => overloaded(),
        _ if is_summary(ask) => Reply::text("A summary."),
        _ if ask.text.contains("now it is too long") && !ask.text.contains("A summary.") => {
            Reply::error(400, "invalid_request_error", "prompt is too long: 2 tokens > 1 maximum")
        }
        _ => Reply::text("hello"),
    })
    .await;
    let world = ClockedSessions::start().await;
    let options = world.session(&[&model]).setting("fallbackModel", json!(["second"]));
    let session = world.ennead.open(options).await.unwrap();
    for _ in 0..4 {
        session.prompt("word ".repeat(300)).await.unwrap();
    }
    let outcome = session.prompt("now it is too long").await.unwrap();
    assert_eq!((outcome.text.as_str(), outcome.compactions.len()), ("hello", 1));
    let asked = model.models().split_off(5);
    assert_eq!(asked, ["first", "first", "first", "second", "second"]);
    session.close().await;
    verify(&session);
}

// REQ: MDL-5, MDL-10
#[tokio::test]
async fn request_that_is_too_large_with_nothing_to_leave_out_fails_once_and_clearly() {
    let model = Model::says(vec![Reply::error(413, "request_too_large", "over 32 MB")]).await;
    let world = ClockedSessions::start().await;
    let (outcome, _, _) = world.run(world.session(&[&model])).await;
    assert_eq!((outcome.end, model.asked().len()), (RunEnd::PromptTooLong, 1));
    assert!(outcome.error.unwrap().contains("over 32 MB"));
}
