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
use crate::{
    approval::PermissionAnswer,
    permission::PermissionMode,
    tool::{Access, ToolSpec},
    transcript::entry::RecordKind,
};

const PLAN: &str = "/h/plans/5f1c0000-0000-4000-8000-000000000001.md";

fn planning(settings: serde_json::Value) -> World {
    let mut world = World::with(settings, Vec::new());
    Arc::make_mut(&mut world.facts).plans = Some("/h/plans".into());
    world
}

/// Adds a plan file, what it holds, and the tools about the mode.
pub(super) fn plan_tools(world: &mut World) {
    let facts = Arc::make_mut(&mut world.facts);
    facts.plans = Some("/h/plans".into());
    let note = facts.tools.iter().find(|it| it.name.as_str() == "Note").unwrap().clone();
    for name in ["EnterPlanMode", "ExitPlanMode"] {
        let spec = ToolSpec { name: name.into(), access: Access::Person, ..ToolSpec::clone(&note) };
        facts.tools.push(Arc::new(spec));
    }
    world.plan = Some("first the bridge".into());
}

/// The decisions about calls, as `Tool:allowed:mode`, and the modes that calls changed to.
fn decided(play: &Play) -> Vec<String> {
    let decided = play.records().filter_map(|it| match &it.what {
        RecordKind::Permission { tool, decision, mode, .. } => {
            Some(format!("{tool}:{}:{}", decision.allowed, json!(mode).as_str().unwrap()))
        }
        RecordKind::Mode(it) => {
            let by = it.call.as_ref().map_or("nobody", |it| it.as_str());
            Some(format!("{} by {by}", json!(it.mode).as_str().unwrap()))
        }
        _ => None,
    });
    decided.collect()
}

/// A session with these answers of the model and of a person, in the order of their questions.
fn asking(mode: &str, answers: &[&[&str]], given: Vec<PermissionAnswer>) -> World {
    let mut world = World::with(
        json!({ "permissions": { "defaultMode": mode } }),
        answers.iter().map(|it| calls(it)).collect(),
    );
    plan_tools(&mut world);
    world.given = given.into_iter().map(Ok).collect();
    world
}

// REQ: PRM-4, PRM-9, TOL-6
#[test]
fn plan_that_a_person_approves_ends_the_mode_and_is_in_the_question() {
    let answers: &[&[&str]] =
        &[&["p:EnterPlanMode"], &["e:Edit:src/a.rs"], &["x:ExitPlanMode", "f:Edit:src/a.rs"]];
    let given =
        [PermissionAnswer::allow(), PermissionAnswer::deny("not now"), PermissionAnswer::allow()];
    let mut play = Play::new(asking("acceptEdits", answers, given.to_vec()));
    play.run("go");
    let expected = [
        "EnterPlanMode:true:acceptEdits",
        "plan by p",
        "Edit:false:plan",
        "ExitPlanMode:true:plan",
        "acceptEdits by x",
        "Edit:true:acceptEdits",
    ];
    assert_eq!(decided(&play), expected, "{}", play.log());
    let input: serde_json::Value = serde_json::from_str(&play.questions[2].call.input).unwrap();
    assert_eq!(
        (&input["plan"], &input["planFilePath"]),
        (&json!("first the bridge"), &json!(PLAN))
    );
    assert!(play.questions[2].suggestions.is_empty(), "no rule approves a plan");
    play.check_replay();
}

// REQ: PRM-4, TOL-6
#[test]
fn plan_that_is_refused_stays_to_be_changed_and_the_model_reads_why() {
    let answers: &[&[&str]] = &[&["x:ExitPlanMode"], &["y:ExitPlanMode"], &["f:Edit:src/a.rs"]];
    let given = vec![
        PermissionAnswer::deny("smaller"),
        PermissionAnswer::allow().in_mode(PermissionMode::DontAsk),
        PermissionAnswer::allow(),
    ];
    let mut play = Play::new(asking("plan", answers, given));
    play.run("go");
    let expected =
        ["ExitPlanMode:false:plan", "ExitPlanMode:true:plan", "dontAsk by y", "Edit:true:dontAsk"];
    assert_eq!(decided(&play), expected, "{}", play.log());
    assert!(bodies(&play)[1].contains("smaller"));
    play.check_replay();
}

// REQ: PRM-4, PRM-2
#[test]
fn mode_that_starts_as_plan_ends_as_default_and_leave_to_bypass_is_not_gained() {
    let chosen = PermissionAnswer::allow().in_mode(PermissionMode::BypassPermissions);
    for given in [PermissionAnswer::allow(), chosen] {
        let mut play = Play::new(asking("plan", &[&["x:ExitPlanMode"]], vec![given]));
        play.run("go");
        assert_eq!(decided(&play), ["ExitPlanMode:true:plan", "default by x"]);
        play.check_replay();
    }
}

// REQ: PRM-2, PRM-4
#[test]
fn only_a_person_lets_the_mode_change_whatever_rules_and_modes_allow() {
    for (mode, tool) in [
        ("plan", "ExitPlanMode"),
        ("bypassPermissions", "EnterPlanMode"),
        ("acceptEdits", "EnterPlanMode"),
    ] {
        let call = format!("x:{tool}");
        let mut world = asking(mode, &[&[&call]], vec![PermissionAnswer::deny("no")]);
        let allow = json!({ "permissions": { "allow": [tool] } });
        world.layers[0].push(super::script::layer(crate::permission::Scope::Project, allow));
        let mut play = Play::new(world);
        play.run("go");
        assert_eq!(play.questions.len(), 1, "{mode} {tool}: {}", play.log());
        assert_eq!(decided(&play), [format!("{tool}:false:{mode}")]);
        play.check_replay();
    }
    let mut play = Play::new(asking("dontAsk", &[&["x:EnterPlanMode"]], Vec::new()));
    play.run("go");
    assert!(play.questions.is_empty() && play.log().contains("error:x"), "{}", play.log());
}

// REQ: PRM-4
#[test]
fn nobody_is_asked_about_a_plan_that_is_not_there_or_a_mode_that_does_not_hold() {
    for (mode, call, plan, why) in [
        ("plan", "x:ExitPlanMode", None, "there is no plan in"),
        ("plan", "x:EnterPlanMode", Some("p"), "plan mode holds already"),
        ("default", "x:ExitPlanMode", Some("p"), "plan mode does not hold"),
    ] {
        let mut world = asking(mode, &[&[call]], Vec::new());
        world.plan = plan.map(str::to_owned);
        let mut play = Play::new(world);
        play.run("go");
        assert!(play.questions.is_empty(), "{call}: {}", play.log());
        assert!(bodies(&play)[1].contains(why), "{call}: {}", bodies(&play)[1]);
        play.check_replay();
    }
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
        let access = Access::Person;
        let exit = ToolSpec { name: "ExitPlanMode".into(), access, ..ToolSpec::clone(note) };
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
