//! What the model is shown of the mode `plan`.
//!
//! Built under `#[cfg(test)]` only.

use std::sync::Arc;

use serde_json::json;

use super::{
    caching::bodies,
    play::Play,
    script::{calls, text},
    world::World,
};
use crate::{permission::PermissionMode, tool::ToolSpec};

const PLAN: &str = "/h/plans/5f1c0000-0000-4000-8000-000000000001.md";

fn planning(settings: serde_json::Value) -> World {
    let mut world = World::with(settings, Vec::new());
    Arc::make_mut(&mut world.facts).plans = Some("/h/plans".into());
    world
}

fn run(play: &mut Play, run: &str, answers: usize) -> Vec<String> {
    let n_before = bodies(play).len();
    for i in 1..answers {
        play.world.answers.push_back(calls(&[&format!("{run}{i}:Note:x")]));
    }
    play.world.answers.push_back(text("done"));
    play.run(run);
    bodies(play).split_off(n_before)
}

fn count(body: &str, words: &str) -> usize {
    body.matches(words).count()
}

// REQ: PRM-4, CTX-2
#[test]
fn model_is_shown_its_plan_file_once_and_that_the_mode_is_over() {
    let mut play = Play::new(planning(json!({"permissions": {"defaultMode": "plan"}})));
    for body in run(&mut play, "a", 3) {
        assert_eq!(count(&body, PLAN), 1, "{body}");
        assert_eq!(count(&body, "ExitPlanMode"), 0, "there is no such tool");
    }
    play.conversation.memory.overrides.mode = Some(PermissionMode::Default);
    for body in run(&mut play, "b", 3) {
        assert_eq!((count(&body, PLAN), count(&body, "Plan mode is over")), (1, 1));
    }
    play.conversation.memory.overrides.mode = Some(PermissionMode::Plan);
    let last = run(&mut play, "c", 2);
    assert_eq!((count(&last[1], PLAN), count(&last[1], "Plan mode is over")), (2, 1));
}

// REQ: PRM-4
#[test]
fn plans_lie_where_settings_say() {
    for (written, path) in [("~/p", "/h/p"), ("docs/../plans", "/w/plans"), ("/x/y/", "/x/y")] {
        let settings = json!({
            "permissions": {"defaultMode": "plan"}, "plansDirectory": written,
        });
        let mut world = planning(settings);
        let facts = Arc::make_mut(&mut world.facts);
        let note = facts.tools.iter().find(|it| it.name.as_str() == "Note").unwrap();
        let exit = ToolSpec { name: "ExitPlanMode".into(), ..ToolSpec::clone(note) };
        facts.tools.push(Arc::new(exit));
        let body = run(&mut Play::new(world), "a", 1).remove(0);
        let file = PLAN.replace("/h/plans", path);
        assert_eq!(count(&body, &file), 1, "{written}: {body}");
        assert_eq!(count(&body, "call ExitPlanMode"), 1);
    }
}

#[test]
fn session_that_has_no_plan_file_is_shown_nothing_of_the_mode() {
    let world = World::with(json!({"permissions": {"defaultMode": "plan"}}), Vec::new());
    let body = run(&mut Play::new(world), "a", 1).remove(0);
    assert_eq!(count(&body, "Plan mode"), 0);
}
