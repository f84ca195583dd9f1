//! Limits on what a run and a tree of agents may use, each met through a whole session.

use std::sync::Arc;

use ennead::{runtime::run::RunEnd, tools::custom::CustomTool};
use serde_json::{Value, json};

use crate::support::scripted::{
    Asked, Place, Say, Scripted, alerts, call, calls, model, says, text,
};

/// A tool that is always allowed and counts how often it ran.
fn echo() -> Arc<CustomTool> {
    use ennead::runtime::tool::{Access, Concurrency, ToolOutcome};
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
    let place = Place::new();
    let options = place.session().max_turns(5).tool(echo());
    let (outcome, told) = place.run_with_events(&endless(), options).await;
    assert_eq!((outcome.end, outcome.turns), (RunEnd::MaxTurns, 5));
    assert_eq!(alerts(&told), ["4 of 5 turns are used"]);
}

// REQ: TRN-7
#[tokio::test]
async fn run_ends_when_its_tokens_are_used() {
    let place = Place::new();
    // 110 tokens a turn, as reported: the third turn passes 300.
    let options = place.session().own_setting("runTokenBudget", 300.into()).tool(echo());
    let (outcome, _) = place.run_with_events(&endless(), options).await;
    assert_eq!((outcome.end, outcome.turns), (RunEnd::BudgetExceeded, 3));
}

// REQ: TOL-3
#[tokio::test]
async fn twenty_sixth_call_of_a_turn_is_refused_and_the_turn_goes_on() {
    let place = Place::new();
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
    let place = Place::new();
    let model = model(|asked| call(&format!("c{}", asked.n_answers()), "echo", json!({})));
    let outcome = place.run(&model, place.session().tool(echo())).await;
    assert_eq!((outcome.end, outcome.turns), (RunEnd::NoProgress, 5));
    let asked = model.asked();
    let told = |it: &Asked| it.user().contains("has now been called 3 times");
    assert_eq!(asked.iter().map(told).collect::<Vec<_>>(), [false, false, false, true, true]);
}

// REQ: PRM-7
#[tokio::test]
async fn equal_denials_in_a_row_end_the_run() {
    let place = Place::new();
    let model = model(|asked| {
        call(&format!("c{}", asked.n_answers()), "Bash", json!({"command": "touch x"}))
    });
    let outcome = place.run(&model, place.session()).await;
    assert_eq!((outcome.end, outcome.turns), (RunEnd::TooManyDenials, 3));
    assert_eq!(outcome.denials.len(), 3);
    assert!(model.last().result("c0").starts_with("Permission denied: "));
}

fn agent(prompt: &str) -> Value {
    json!({"description": "d", "prompt": prompt})
}

/// Calls so many agents in its first answer; agents answer at once.
fn parent_of(n: usize) -> Arc<Scripted> {
    model(move |asked| {
        if asked.is_agent() {
            return text("found");
        }
        let ids: Vec<String> = (0..n).map(|it| format!("a{it}")).collect();
        let all: Vec<(&str, &str, Value)> =
            ids.iter().map(|it| (it.as_str(), "Agent", agent("look"))).collect();
        if asked.n_answers() == 0 { calls(&all) } else { text("done") }
    })
}

/// How many of the results of the top session are answers of agents, and what the others say.
#[track_caller]
fn check_agents(model: &Scripted, answered: usize, refusal: &str) {
    let results = model.last_of_top().results();
    let (found, refused): (Vec<_>, Vec<_>) = results.iter().partition(|it| it.1 == "found");
    assert_eq!(found.len(), answered, "{results:?}");
    assert!(refused.iter().all(|it| it.2 && it.1.contains(refusal)), "{refused:?}");
}

// REQ: AGT-7
#[tokio::test]
async fn limits_of_the_settings_hold_for_the_first_agent() {
    let place = Place::new();
    let model = parent_of(3);
    let options = place.session().own_setting("agents", json!({"max_in_tree": 2}));
    let outcome = place.run(&model, options).await;
    assert_eq!(outcome.text, "done");
    check_agents(&model, 2, "2");
}

// REQ: AGT-7
#[tokio::test]
async fn fifty_first_agent_of_a_tree_is_refused() {
    let place = Place::new();
    let model = model(|asked: &Asked| -> Say {
        if asked.is_agent() {
            return text("found");
        }
        let n = asked.n_answers();
        let ids: Vec<String> = (0..17).map(|it| format!("a{n}x{it}")).collect();
        let all: Vec<(&str, &str, Value)> =
            ids.iter().map(|it| (it.as_str(), "Agent", agent(it))).collect();
        if n < 3 { calls(&all) } else { text("done") }
    });
    let outcome = place.run(&model, place.session()).await;
    assert_eq!(outcome.text, "done");
    check_agents(&model, 50, "50");
    assert_eq!(place.sidechains().len(), 50);
}

// REQ: AGT-7
#[tokio::test]
async fn tokens_and_turns_of_a_tree_are_one_sum() {
    for (limits, end) in [
        // Top, agent, top: the fourth turn is refused.
        (json!({"max_tree_turns": 3}), RunEnd::NoPendingTools),
        (json!({"max_tree_turns": 2}), RunEnd::TreeLimit),
        (json!({"max_tree_tokens": 150}), RunEnd::TreeLimit),
    ] {
        let place = Place::new();
        let options = place
            .session()
            .own_setting("agents", limits.clone())
            .own_setting("maxOutputTokens", 10.into());
        let outcome = place.run(&parent_of(1), options).await;
        assert_eq!(outcome.end, end, "{limits}: {:?}", outcome.error);
    }
}

/// Every agent starts another one, as long as it is offered the tool.
fn nesting() -> Arc<Scripted> {
    model(|asked| {
        let offered = asked.tools().contains(&"Agent".to_owned());
        match (asked.n_answers(), offered) {
            (0, true) => call("a", "Agent", agent("deeper")),
            (0, false) => text("bottom"),
            _ => text(&format!("{}+", asked.result("a"))),
        }
    })
}

// REQ: AGT-7, AGT-1
#[tokio::test]
async fn agents_nest_three_deep_and_the_last_is_not_offered_the_tool() {
    let place = Place::new();
    let outcome = place.run(&nesting(), place.session()).await;
    assert_eq!(outcome.text, "bottom+++");
    assert_eq!(place.sidechains().len(), 3);
}

// REQ: AGT-7
#[tokio::test]
async fn without_depth_the_tool_is_not_offered_at_all() {
    let place = Place::new();
    let options = place.session().own_setting("agents", json!({"max_depth": 0}));
    let outcome = place.run(&nesting(), options).await;
    assert_eq!(outcome.text, "bottom");
}

// REQ: AGT-7
#[tokio::test]
async fn call_that_only_reservations_stand_in_the_way_of_waits_for_them() {
    let place = Place::new();
    // Each answer uses 110 and sets 1,000 aside: of two agents one has to wait, none is refused.
    let options = place
        .session()
        .own_setting("agents", json!({"max_tree_tokens": 1_500}))
        .own_setting("maxOutputTokens", 1_000.into());
    let model = parent_of(2);
    let outcome = place.run(&model, options).await;
    assert_eq!(outcome.end, RunEnd::NoPendingTools, "{:?}", outcome.error);
    check_agents(&model, 2, "");
}
