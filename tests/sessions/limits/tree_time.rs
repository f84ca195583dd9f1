//! Time of a tree of agents. A timer that a test holds says when it is over.

use std::{sync::Arc, time::Duration};

use ennead::{
    RunEnd, RunOutcome, SessionOptions,
    tool::{Access, CustomTool, ToolOutcome},
};
use serde_json::{Value, json};

use super::tree::{agent, verify};
use crate::support::settings::SettingsJson as _;
use crate::support::{
    barrier::Barrier,
    held_timer::HeldTimer,
    scripted::{Scripted, TestDirs, call, finish, model, text},
};

/// Moves the clock forward by this many seconds, then waits at the barrier.
fn work(place: &TestDirs, barrier: &Barrier) -> Arc<CustomTool> {
    let (clock, barrier) = (Arc::clone(&place.clock), barrier.clone());
    let tool = CustomTool::raw("work", "Works.", r#"{"type":"object"}"#, move |input, _| {
        let input: Value = serde_json::from_str(&input).unwrap();
        clock.advance(Duration::from_secs(input["seconds"].as_u64().unwrap()));
        let barrier = barrier.clone();
        async move {
            barrier.pass().await;
            ToolOutcome::ok("worked")
        }
    });
    Arc::new(tool.access(Access::Free).build().unwrap())
}

/// The answer to a prompt is work; an agent does it where `delegates`.
fn worker(delegates: bool, seconds: u64) -> Arc<Scripted> {
    model(move |asked| match (asked.is_agent() || !delegates, asked.n_answers() % 2) {
        (true, 0) => call(&format!("w{}", asked.n_answers()), "work", json!({"seconds": seconds})),
        (false, 0) => call("a", "Agent", agent("work")),
        _ => text("done"),
    })
}

/// Runs prompts in one session, each to its end.
async fn run(
    place: &TestDirs,
    timer: &HeldTimer,
    model: &Arc<Scripted>,
    options: SessionOptions,
    prompts: usize,
) -> Vec<RunOutcome> {
    let host = place.options(model).timer(Arc::new(timer.clone()));
    let ennead = ennead::Ennead::start(host).await.unwrap();
    let session = ennead.open(options).await.unwrap();
    let mut outcomes = Vec::new();
    for _ in 0..prompts {
        outcomes.push(session.prompt("go").await.unwrap());
    }
    finish(ennead, session).await;
    verify(place);
    outcomes
}

// REQ: AGT-7
#[tokio::test]
async fn run_ends_when_the_time_of_its_tree_is_over() {
    for delegates in [false, true] {
        let (place, timer, hold) =
            (TestDirs::new(), HeldTimer::at(&Barrier::closed()), Barrier::closed());
        let options = place.session().own_setting("agents", json!({"maxTreeSeconds": 60}));
        let options = options.tool(work(&place, &hold));
        let model = worker(delegates, 5);
        let ends = async {
            // Somebody works and the timer runs, that of an agent, too.
            hold.arrived().await;
            for _ in 0..=usize::from(delegates) {
                timer.barrier.arrived().await;
            }
            timer.barrier.open();
        };
        let (outcomes, ()) = tokio::join!(run(&place, &timer, &model, options, 1), ends);
        assert_eq!(outcomes[0].end, RunEnd::TreeLimit);
        let why = outcomes[0].error.clone().unwrap_or_default();
        assert!(why.contains("time of this session"), "{why}");
        assert_eq!(timer.seconds(), vec![60; 1 + usize::from(delegates)]);
    }
}

// REQ: AGT-7
#[tokio::test]
async fn agent_ends_when_its_own_time_is_over_and_its_parent_goes_on() {
    let (place, timer, hold) =
        (TestDirs::new(), HeldTimer::at(&Barrier::closed()), Barrier::closed());
    let limits = json!({"maxAgentSeconds": 30});
    let options = place.session().own_setting("agents", limits).tool(work(&place, &hold));
    let model = worker(true, 5);
    let ends = async {
        hold.arrived().await;
        timer.barrier.arrived().await;
        timer.barrier.open();
    };
    let (outcomes, ()) = tokio::join!(run(&place, &timer, &model, options, 1), ends);
    assert_eq!((outcomes[0].end, outcomes[0].text.as_str()), (RunEnd::NoPendingTools, "done"));
    let shown = model.last_of_top().result("a");
    assert!(shown.contains("reached a limit") && shown.contains("time of this session"), "{shown}");
    assert_eq!(timer.seconds(), [30]);
}

// REQ: AGT-7
#[tokio::test]
async fn agent_has_no_more_time_than_its_tree_has_left() {
    let (place, timer, open) =
        (TestDirs::new(), HeldTimer::at(&Barrier::closed()), Barrier::default());
    let limits = json!({"maxTreeSeconds": 60, "maxAgentSeconds": 50});
    let options = place.session().own_setting("agents", limits).tool(work(&place, &open));
    // The parent works for 20 seconds before it starts an agent.
    let model = model(|asked| match (asked.is_agent(), asked.n_answers()) {
        (false, 0) => call("w", "work", json!({"seconds": 20})),
        (false, 1) => call("a", "Agent", agent("look")),
        _ => text("done"),
    });
    run(&place, &timer, &model, options, 1).await;
    assert_eq!(timer.seconds(), [60, 40]);
}

// REQ: AGT-7
#[tokio::test]
async fn time_of_all_runs_is_one_sum() {
    let (place, timer, open) =
        (TestDirs::new(), HeldTimer::at(&Barrier::closed()), Barrier::default());
    let options = place.session().own_setting("agents", json!({"maxTreeSeconds": 60}));
    let options = options.tool(work(&place, &open));
    let model = worker(false, 40);
    let outcomes = run(&place, &timer, &model, options, 3).await;
    let ends: Vec<_> = outcomes.iter().map(|it| it.end).collect();
    // Nothing but the timer ends a run that has begun; the next one asks nobody.
    assert_eq!(ends, [RunEnd::NoPendingTools, RunEnd::NoPendingTools, RunEnd::TreeLimit]);
    assert_eq!(model.asked().len(), 4);
    // The third has no time at all.
    assert_eq!(timer.seconds(), [60, 20, 0]);
}

// REQ: AGT-7, TRN-4
#[tokio::test]
async fn limit_that_is_moved_within_a_run_moves_its_end() {
    for (moved, seconds) in [(100, vec![60, 80]), (30, vec![60, 10])] {
        let (place, timer, open) =
            (TestDirs::new(), HeldTimer::at(&Barrier::closed()), Barrier::default());
        let limits = |n: u64| json!({"ennead": {"agents": {"maxTreeSeconds": n}}}).to_string();
        let file = place.write("home/.claude/settings.json", &limits(60));
        let tool = CustomTool::raw("move", "Moves.", r#"{"type":"object"}"#, move |_, _| {
            std::fs::write(&file, limits(moved)).unwrap();
            async { ToolOutcome::ok("moved") }
        });
        let tool = Arc::new(tool.access(Access::Free).build().unwrap());
        let model = model(|asked| match asked.n_answers() {
            0 => call("w", "work", json!({"seconds": 20})),
            1 => call("m", "move", json!({})),
            _ => text("done"),
        });
        let options = place.session().tool(work(&place, &open)).tool(tool);
        let outcomes = run(&place, &timer, &model, options, 1).await;
        assert_eq!(outcomes[0].text, "done");
        assert_eq!(timer.seconds(), seconds);
    }
}
