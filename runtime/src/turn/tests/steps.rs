//! Nine steps, once each and in order, on every path.
//!
//! Built under `#[cfg(test)]` only.

use serde_json::json;

use super::{
    play::{Play, play},
    script::{calls, failure, hook, text},
    world::World,
};
use crate::{
    step5_model_call::FailureClass,
    transcript::entry::{RecordKind, StepDetail},
};

#[track_caller]
fn check(world: World, log: &str) -> Play {
    let play = play(world);
    assert_eq!(play.log(), log);
    let mut steps = Vec::new();
    for record in play.records() {
        if let RecordKind::TurnStep { number, step, .. } = &record.what {
            assert_eq!(step.number(), *number);
            steps.push((record.turn, *number));
        }
    }
    let turns = steps.last().unwrap().0;
    let all: Vec<_> = (1..=turns).flat_map(|turn| (1..=9).map(move |it| (turn, it))).collect();
    assert_eq!(steps, all);
    play
}

// REQ: TRN-1
#[test]
fn a_turn_walks_nine_steps_and_the_run_goes_on_while_tools_are_called() {
    check(
        World::new(vec![calls(&["x:Read:a.rs"]), text("done")]),
        "1 2 3 4 5 answer 6 7 8 result:x 9 go on 1 2 3 4 5 answer 6 7 8 9 no_pending_tools",
    );
}

// REQ: TRN-1
#[test]
fn steps_with_nothing_to_do_say_so() {
    let play = check(World::new(vec![text("done")]), "1 2 3 4 5 answer 6 7 8 9 no_pending_tools");
    let idle = |what: &RecordKind| match what {
        RecordKind::TurnStep { number, detail: StepDetail::Nothing { .. }, .. } => Some(*number),
        _ => None,
    };
    let idle: Vec<u8> = play.records().filter_map(|it| idle(&it.what)).collect();
    assert_eq!(idle, [6, 7, 8]);
}

// REQ: TRN-1
#[test]
fn a_failure_leaves_steps_6_to_8_idle_and_step_9_reads_the_error() {
    let play = check(
        World::new(vec![failure(FailureClass::Auth)]),
        "1 2 3 4 5 mark withdrawn surface 9 error",
    );
    let end = play.ends[0].1.clone().unwrap();
    assert_eq!(end, "auth: provider said auth");
}

// REQ: TRN-1
#[test]
fn a_stop_request_is_written_down_before_the_stop_check_reads_it() {
    let mut world = World::new(vec![calls(&["x:Note:x"])]);
    world.stop_at = Some(9);
    check(world, "1 2 3 4 5 answer 6 7 8 result:x 9 mark explicit_stop");
}

// REQ: TRN-6
#[test]
fn a_stop_request_counts_for_more_than_an_error() {
    let mut world = World::new(vec![failure(FailureClass::Auth)]);
    world.stop_at = Some(3);
    check(world, "1 2 3 4 5 mark withdrawn surface 9 mark explicit_stop");
}

// REQ: TRN-1, HKS-6
#[test]
fn a_stop_request_while_stop_hooks_run_is_not_lost() {
    let hooks = hook("Stop", "", &["2 go on"]);
    let first = play(World::with(hooks.clone(), vec![text("done")]));
    assert!(first.log().starts_with("1 2 3 4 5 answer 6 7 8 9 hook:Stop note go on 1"));
    let mut found = false;
    for at in 1..30 {
        let mut world = World::with(hooks.clone(), vec![text("done")]);
        world.stop_at = Some(at);
        let log = play(world).log();
        assert!(log.ends_with("mark explicit_stop") || 28 < at, "{at}: {log}");
        found |= log == "1 2 3 4 5 answer 6 7 8 9 hook:Stop mark explicit_stop";
    }
    assert!(found, "asked while the hooks ran");
}

// REQ: TRN-4, TRN-5
#[test]
fn settings_are_read_in_every_turn_and_nothing_else_outlives_one() {
    let cut = super::script::answer("max_tokens", Vec::new());
    let mut world = World::new(vec![cut, calls(&["x:Note:x"]), text("done")]);
    let changed = super::script::allowing(json!({ "model": "m2" }));
    world.layers.push_back(vec![changed]);
    world.facts = std::sync::Arc::new(crate::run::facts::SessionFacts {
        layers: Vec::new(),
        ..super::script::facts(crate::step7_permission_gate::Handler::None)
    });
    let play = play(world);
    let sent: Vec<_> = play
        .requests
        .iter()
        .map(|it| {
            let body: serde_json::Value =
                serde_json::from_slice(&it.request.body.to_bytes()).unwrap();
            (it.attempt, body["model"].clone(), body["max_tokens"].clone())
        })
        .collect();
    // The ceiling that was raised in the first turn is not kept for the second.
    let (first, second) = ("claude-sonnet-5", "m2");
    assert_eq!(
        sent,
        [
            (1, json!(first), json!(32_000)),
            (2, json!(first), json!(64_000)),
            (1, json!(second), json!(32_000)),
        ]
    );
}
