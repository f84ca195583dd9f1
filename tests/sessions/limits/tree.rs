//! Depth, number, rate, turns and tokens of a tree of agents.

use std::{sync::Arc, time::Duration};

use ennead::{RunEnd, RunOutcome, SessionOptions, tool::CustomTool, transcript};
use serde_json::{Value, json};

use crate::support::scripted::{
    Asked, Reply, SESSION, Scripted, TestDirs, call, calls, model, said, says, text,
};
use crate::support::settings::SettingsJson as _;

/// Runs one prompt. The transcript is in order, sidechains included.
pub(super) async fn run(
    place: &TestDirs,
    model: &Arc<Scripted>,
    options: SessionOptions,
) -> RunOutcome {
    let outcome = place.run(model, options).await;
    verify(place);
    outcome
}

#[track_caller]
pub(super) fn verify(place: &TestDirs) {
    let file = place.path(&format!("transcripts/{SESSION}.jsonl"));
    transcript::verify(&file).unwrap_or_else(|it| panic!("{it}"));
}

pub(super) fn agent(prompt: &str) -> Value {
    json!({"description": "d", "prompt": prompt})
}

/// Calls this many agents in its first answer; agents answer at once.
pub(super) fn parent_of(n: usize) -> Arc<Scripted> {
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
pub(super) fn check_agents(model: &Scripted, answered: usize, refusal: &str) {
    let results = model.last_of_top().results();
    let (found, refused): (Vec<_>, Vec<_>) = results.iter().partition(|it| said(&it.1) == "found");
    assert_eq!(found.len(), answered, "{results:?}");
    assert!(refused.iter().all(|it| it.2 && it.1.contains(refusal)), "{refused:?}");
}

// REQ: AGT-7
#[tokio::test]
async fn limits_of_the_settings_hold_for_the_first_agent() {
    let place = TestDirs::new();
    let model = parent_of(3);
    let options = place.session().own_setting("agents", json!({"max_in_tree": 2}));
    let outcome = run(&place, &model, options).await;
    assert_eq!(outcome.text, "done");
    check_agents(&model, 2, "2");
}

// REQ: AGT-7
#[tokio::test]
async fn fifty_first_agent_of_a_tree_is_refused() {
    let place = TestDirs::new();
    let model = model(|asked: &Asked| -> Reply {
        if asked.is_agent() {
            return text("found");
        }
        let n = asked.n_answers();
        let ids: Vec<String> = (0..17).map(|it| format!("a{n}x{it}")).collect();
        let all: Vec<(&str, &str, Value)> =
            ids.iter().map(|it| (it.as_str(), "Agent", agent(it))).collect();
        if n < 3 { calls(&all) } else { text("done") }
    });
    let outcome = run(&place, &model, place.session()).await;
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
        let place = TestDirs::new();
        let options = place
            .session()
            .own_setting("agents", limits.clone())
            .own_setting("maxOutputTokens", 10.into());
        let outcome = run(&place, &parent_of(1), options).await;
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
            _ => text(&format!("{}+", said(&asked.result("a")))),
        }
    })
}

// REQ: AGT-7, AGT-1
#[tokio::test]
async fn agents_nest_three_deep_and_the_last_is_not_offered_the_tool() {
    let place = TestDirs::new();
    let outcome = run(&place, &nesting(), place.session()).await;
    assert_eq!(outcome.text, "bottom+++");
    assert_eq!(place.sidechains().len(), 3);
}

// REQ: AGT-7
#[tokio::test]
async fn without_depth_the_tool_is_not_offered_at_all() {
    let place = TestDirs::new();
    let options = place.session().own_setting("agents", json!({"max_depth": 0}));
    let outcome = run(&place, &nesting(), options).await;
    assert_eq!(outcome.text, "bottom");
}

/// Moves the clock forward by a minute.
fn minute(place: &TestDirs) -> Arc<CustomTool> {
    use ennead::tool::{Access, ToolOutcome};
    let clock = Arc::clone(&place.clock);
    let tool = CustomTool::raw("minute", "Waits.", r#"{"type":"object"}"#, move |_, _| {
        clock.advance(Duration::from_secs(60));
        async { ToolOutcome::ok("waited") }
    });
    Arc::new(tool.access(Access::Free).build().unwrap())
}

// REQ: AGT-7
#[tokio::test]
async fn third_agent_within_a_minute_is_refused_and_may_be_started_later() {
    let place = TestDirs::new();
    let three = ["a0", "a1", "a2"].map(|it| (it, "Agent", agent(it)));
    let steps = says(vec![
        calls(&three),
        call("m", "minute", json!({})),
        call("a3", "Agent", agent("now")),
    ]);
    let top = Arc::clone(&steps);
    let model = model(move |asked| if asked.is_agent() { text("found") } else { top.say(asked) });
    let options = place.session().own_setting("agents", json!({"maxPerMinute": 2}));
    run(&place, &model, options.tool(minute(&place))).await;
    let results = model.last_of_top().results();
    let texts: Vec<_> = results.iter().map(|it| said(&it.1)).collect();
    assert_eq!([texts[0], texts[1], texts[3], texts[4]], ["found", "found", "waited", "found"]);
    let why = "2 sub-agents were started within a minute";
    assert!(
        results[2].2 && texts[2].contains(why) && texts[2].contains("try again in 60 s"),
        "{texts:?}"
    );
}

// REQ: AGT-7
#[tokio::test]
async fn first_call_of_a_session_is_bounded_as_every_other() {
    for limits in [json!({"maxTreeTokens": 150}), json!({"maxTreeTurns": 0})] {
        let place = TestDirs::new();
        let model = parent_of(0);
        let options = place.session().own_setting("agents", limits.clone());
        let outcome = run(&place, &model, options).await;
        assert_eq!(outcome.end, RunEnd::TreeLimit, "{limits}");
        assert!(model.asked().is_empty(), "{limits}");
    }
}

// REQ: AGT-7
#[tokio::test]
async fn call_that_only_reservations_stand_in_the_way_of_waits_for_them() {
    let place = TestDirs::new();
    // Each answer uses 110 and sets more than 50,000 aside: of two agents one has to wait, none is
    // refused.
    let options = place
        .session()
        .own_setting("agents", json!({"max_tree_tokens": 80_000}))
        .own_setting("maxOutputTokens", 50_000.into());
    let model = parent_of(2);
    let outcome = run(&place, &model, options).await;
    assert_eq!(outcome.end, RunEnd::NoPendingTools, "{:?}", outcome.error);
    check_agents(&model, 2, "");
}
