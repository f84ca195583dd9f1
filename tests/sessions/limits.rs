//! Limits on what a run and a tree of agents may use, each met through a whole session.

mod tree;
mod tree_calls;
mod tree_cut;
mod tree_money;
mod tree_resume;
mod tree_time;

use std::num::NonZeroU32;

use std::sync::Arc;

use ennead::{RunEnd, tool::CustomTool};
use serde_json::{Value, json};

use crate::support::scripted::{Asked, Scripted, TestDirs, alerts, call, calls, model, says};
use crate::support::settings::SettingsJson as _;

/// A tool that is always allowed and counts how often it ran.
fn echo() -> Arc<CustomTool> {
    use ennead::tool::{Access, Concurrency, ToolOutcome};
    let tool = CustomTool::raw("echo", "Echoes.", r#"{"type":"object"}"#, |input, _| async move {
        ToolOutcome::ok(&*input)
    });
    let tool = tool.access(Access::Free).concurrency(Concurrency::Together { max: 10 });
    Arc::new(tool.build().unwrap())
}

/// Calls the echo in each turn, each time with another input.
fn endless() -> Arc<Scripted> {
    model(|asked| {
        let n = asked.n_answers();
        call(&format!("c{n}"), "echo", json!({ "n": n }))
    })
}

// REQ: TRN-7
#[tokio::test]
async fn run_ends_at_max_turns_and_alerts_once_at_four_fifths() {
    let place = TestDirs::new();
    let options = place.session().max_turns(NonZeroU32::new(5).unwrap()).tool(echo());
    let (outcome, seen) = place.run_with_events(&endless(), options).await;
    assert_eq!((outcome.end, outcome.turns), (RunEnd::MaxTurns, 5));
    assert_eq!(alerts(&seen), ["4 of 5 turns are used"]);
}

// REQ: TRN-7
#[tokio::test]
async fn run_ends_when_its_tokens_are_used() {
    let place = TestDirs::new();
    // 110 tokens a turn, as reported: the third turn passes 300.
    let options = place.session().own_setting("runTokenBudget", 300.into()).tool(echo());
    let (outcome, _) = place.run_with_events(&endless(), options).await;
    assert_eq!((outcome.end, outcome.turns), (RunEnd::BudgetExceeded, 3));
}

// REQ: TOL-3
#[tokio::test]
async fn twenty_sixth_call_of_a_turn_is_refused_and_the_turn_goes_on() {
    let place = TestDirs::new();
    let ids: Vec<String> = (0..26).map(|it| format!("c{it}")).collect();
    let many: Vec<(&str, &str, Value)> =
        ids.iter().map(|it| (it.as_str(), "echo", json!({ "id": it }))).collect();
    let model = says(vec![calls(&many)]);
    let outcome = place.run(&model, place.session().tool(echo())).await;
    assert_eq!(outcome.text, "done");
    let results = model.last().results();
    assert_eq!(results.len(), 26);
    assert!(results[..25].iter().all(|it| !it.2), "{results:?}");
    assert!(results[25].2 && results[25].1.contains("25"), "{:?}", results[25]);
}

// REQ: TRN-12
#[tokio::test]
async fn same_call_with_the_same_result_is_pointed_out_and_then_ends_the_run() {
    let place = TestDirs::new();
    let model = model(|asked| call(&format!("c{}", asked.n_answers()), "echo", json!({})));
    let outcome = place.run(&model, place.session().tool(echo())).await;
    assert_eq!((outcome.end, outcome.turns), (RunEnd::NoProgress, 5));
    let asked = model.asked();
    let seen = |it: &Asked| it.user().contains("has now been called 3 times");
    assert_eq!(asked.iter().map(seen).collect::<Vec<_>>(), [false, false, false, true, true]);
}

// REQ: PRM-7
#[tokio::test]
async fn equal_denials_in_a_row_end_the_run() {
    let place = TestDirs::new();
    let model = model(|asked| {
        call(&format!("c{}", asked.n_answers()), "Bash", json!({"command": "touch x"}))
    });
    let outcome = place.run(&model, place.session()).await;
    assert_eq!((outcome.end, outcome.turns), (RunEnd::TooManyDenials, 3));
    assert_eq!(outcome.denials.len(), 3);
    assert!(model.last().result("c0").starts_with("Permission denied: "));
}
