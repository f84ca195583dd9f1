//! A tree of agents that goes on in another process: what was used stays used.

use std::{fs, time::Duration};

use ennead::{RunEnd, RunOutcome, SessionOptions};
use ennead_runtime::catalogue::Money;
use serde_json::{Value, json};

use super::tree::{agent, parent_of, run};
use crate::support::scripted::{SESSION, Scripted, TestDirs, call, model, said, text};
use crate::support::settings::SettingsJson as _;

/// At 300 millionths of a dollar for an answer of the scripted model.
const PRICED: &str = "claude-sonnet-5";

fn session(place: &TestDirs, limits: Value) -> SessionOptions {
    place
        .session()
        .model(PRICED)
        .own_setting("maxOutputTokens", 10.into())
        .own_setting("agents", limits)
}

/// Two turns of the top and one of an agent: 3 answers, 330 tokens, 900 millionths of a dollar. Each
/// answer takes 4 seconds, an agent works within the time of its parent.
async fn first(place: &TestDirs) -> RunOutcome {
    let clock = place.clock.clone();
    let model = model(move |asked| {
        clock.advance(Duration::from_secs(4));
        match (asked.is_agent(), asked.n_answers()) {
            (true, _) => text("found"),
            (false, 0) => call("a", "Agent", agent("look")),
            (false, _) => text("done"),
        }
    });
    let outcome = run(place, &model, session(place, json!({}))).await;
    assert_eq!((outcome.turns, place.sidechains().len()), (2, 1));
    outcome
}

/// Goes on under these limits, with a model that is done at once.
async fn again(place: &TestDirs, limits: Value) -> (RunOutcome, std::sync::Arc<Scripted>) {
    let model = model(|_| text("done again"));
    (run(place, &model, session(place, limits)).await, model)
}

// REQ: AGT-7, SES-4
#[tokio::test]
async fn what_a_tree_used_before_counts_after_a_resume() {
    for (limits, why) in [
        (json!({"maxTreeTurns": 3}), "all 3 turns"),
        (json!({"maxTreeTokens": 400}), "330 of 400 tokens"),
        (json!({"maxTreeMicroUsd": 1_000}), "$0.0009 of $0.0010"),
        (json!({"maxTreeSeconds": 12}), "time of this session"),
    ] {
        let place = TestDirs::new();
        first(&place).await;
        let (outcome, model) = again(&place, limits).await;
        assert_eq!(outcome.end, RunEnd::TreeLimit, "{why}");
        let error = outcome.error.unwrap_or_default();
        assert!(error.contains(why), "{error}");
        assert!(model.asked().is_empty(), "{why}");
    }
}

// REQ: AGT-7, SES-4
#[tokio::test]
async fn what_is_left_can_be_used_after_a_resume() {
    for limits in [
        json!({"maxTreeTurns": 4}),
        json!({"maxTreeTokens": 100_000}),
        json!({"maxTreeMicroUsd": 1_000_000}),
    ] {
        let place = TestDirs::new();
        first(&place).await;
        let (outcome, _) = again(&place, limits.clone()).await;
        assert_eq!(outcome.text, "done again", "{limits}: {:?}", outcome.error);
    }
}

// REQ: AGT-7, SES-4
#[tokio::test]
async fn agents_of_an_earlier_process_are_counted() {
    let place = TestDirs::new();
    first(&place).await;
    let model = model(|asked| {
        if asked.results().iter().any(|it| it.0 == "b") {
            text("done")
        } else {
            call("b", "Agent", agent("look"))
        }
    });
    let outcome = run(&place, &model, session(&place, json!({"maxInTree": 1}))).await;
    assert_eq!((outcome.text.as_str(), place.sidechains().len()), ("done", 1));
    let shown = model.last().result("b");
    assert!(shown.contains("this session has started 1 sub-agents"), "{shown}");
}

// REQ: AGT-7, SES-4
#[tokio::test]
async fn agents_that_an_earlier_process_started_within_a_minute_count_for_the_rate() {
    let place = TestDirs::new();
    // Its agent is started 4 seconds after the beginning, and 8 before the end.
    first(&place).await;
    let clock = place.clock.clone();
    let model = model(move |asked| {
        let shown = |id| asked.results().iter().any(|it| it.0 == id);
        if asked.is_agent() {
            return text("found");
        }
        if shown("b") {
            clock.advance(Duration::from_secs(52));
        }
        match (shown("b"), shown("c")) {
            (false, _) => call("b", "Agent", agent("look")),
            (_, false) => call("c", "Agent", agent("look")),
            _ => text("done"),
        }
    });
    run(&place, &model, session(&place, json!({"maxPerMinute": 1}))).await;
    let shown = model.last_of_top().result("b");
    assert!(shown.contains("try again in 52 s"), "{shown}");
    assert_eq!(said(&model.last_of_top().result("c")), "found");
}

// REQ: AGT-7, SES-4
#[tokio::test]
async fn sums_of_a_session_are_those_of_all_its_processes_and_agents() {
    let place = TestDirs::new();
    let before = first(&place).await;
    let (after, _) = again(&place, json!({})).await;
    assert_eq!(after.session_usage, before.usage + after.usage);
    let total = after.session_cost.tree().total();
    assert_eq!((total.calls, total.usage), (4, after.session_usage));
    assert_eq!(total.known_cost().map(Money::micro_usd), Some(4 * 300));
    let models = after.session_cost.by_model();
    assert_eq!(models.keys().map(|it| &**it).collect::<Vec<_>>(), [PRICED]);
}

// REQ: AGT-7, SES-7
#[tokio::test]
async fn agent_whose_parent_was_killed_is_counted() {
    let place = TestDirs::new();
    first(&place).await;
    // As if the process had died while the agent worked.
    let file = place.path(&format!("transcripts/{SESSION}.jsonl"));
    let whole = fs::read_to_string(&file).unwrap();
    let at = whole.find(r#""kind":"tool_intent""#).unwrap();
    fs::write(&file, &whole[..at + whole[at..].find('\n').unwrap() + 1]).unwrap();
    let _none = fs::remove_file(file.with_extension("checkpoint"));
    for _ in 0..2 {
        let (outcome, _) = again(&place, json!({"maxTreeTurns": 2})).await;
        assert_eq!(outcome.end, RunEnd::TreeLimit);
    }
    let (outcome, _) = again(&place, json!({"maxTreeTurns": 3})).await;
    assert_eq!(outcome.text, "done again", "a turn that was refused is none");
}

// REQ: AGT-7, SES-7
#[tokio::test]
async fn sidechain_that_cannot_be_read_is_reported_and_counts_as_an_agent() {
    let place = TestDirs::new();
    first(&place).await;
    let file = place.sidechains().remove(0);
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    let (_, shown) = place.run_with_events(&parent_of(0), session(&place, json!({}))).await;
    let alerts = crate::support::scripted::alerts(&shown);
    assert!(
        alerts.iter().any(|it| it.contains("what a sub-agent used is not known")),
        "{alerts:?}"
    );
}
