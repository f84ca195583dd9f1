//! Modes that are set before, between and during runs, in all orders, walked again.
//!
//! Built under `#[cfg(test)]` only.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::{
    plan_mode::plan_tools,
    play::Play,
    script::{calls, layer, text},
    world::World,
};
use crate::{
    approval::PermissionAnswer,
    entropy::EntropyStream,
    permission::{PermissionMode, Scope},
    transcript::entry::{Line, ModeChange, Record, RecordKind},
};

impl Play {
    /// Puts the session into a mode between runs, as a session does: before the first run nothing is
    /// recorded.
    pub(super) fn set_mode(&mut self, mode: PermissionMode) {
        let overrides = &mut self.conversation.memory.overrides;
        if self.first {
            overrides.begin_in(mode);
        } else {
            overrides.set_mode(mode);
            self.record_mode(mode);
        }
    }

    /// Follows the start of the first run with the mode that was set before it.
    pub(super) fn mode_of_first_run(&mut self) {
        let set = self.conversation.memory.overrides.mode;
        if let Some(mode) = set.filter(|_| std::mem::take(&mut self.first)) {
            self.record_mode(mode);
        }
        self.first = false;
    }

    fn record_mode(&mut self, mode: PermissionMode) {
        let what = RecordKind::Mode(ModeChange { mode, call: None });
        let record = Record { at: self.at(), run: None, turn: 0, what, shares_line: false };
        self.lines.push(Line::Harness(Box::new(record)));
    }
}

/// A session with a plan file, in which every run makes calls that its mode decides about.
fn world(mode: Option<&str>) -> World {
    let settings = mode.map_or(json!({}), |it| json!({ "permissions": { "defaultMode": it } }));
    let answers = (0..4).flat_map(|run| {
        let first = ["e:Edit:src/a.rs", "b:Bash:make", "n:Note:x", "p:EnterPlanMode"];
        let then = ["x:ExitPlanMode", "f:Edit:src/b.rs"];
        let named = |it: &str| format!("{run}{it}");
        let (first, then) = (first.map(named), then.map(named));
        let first = first.each_ref().map(String::as_str);
        [calls(&first), calls(&then.each_ref().map(String::as_str)), text("done")]
    });
    let mut world = World::with(settings, answers.collect());
    plan_tools(&mut world);
    world
}

/// The same with hooks around its calls, a policy that leaves all to others, and a person who changes what
/// is asked about.
fn busy_world(mode: Option<&str>) -> World {
    let mut world = world(mode);
    let passes = json!([{ "hooks": [{ "type": "command", "command": "0 {}" }] }]);
    let more = json!({ "hooks": { "PreToolUse": passes, "PermissionRequest": passes } });
    world.layers[0].push(layer(Scope::Project, more));
    Arc::make_mut(&mut world.facts).has_policy = true;
    let changed = [json!({ "file_path": "src/b.rs" }), json!({ "command": "make all" })];
    let changed = changed.map(|it| Ok(PermissionAnswer::allow().with_input(it.to_string())));
    world.given = changed.into();
    world
}

/// The same with hooks before its calls for which a model is asked.
fn asking_world(mode: Option<&str>) -> World {
    let mut world = busy_world(mode);
    let asks = json!([{ "hooks": [{ "type": "prompt", "prompt": "May it? $ARGUMENTS" }] }]);
    let more = json!({ "hooks": { "PreToolUse": asks } });
    world.layers[0].push(layer(Scope::Local, more));
    world
}

const MODES: [PermissionMode; 4] = [
    PermissionMode::Plan,
    PermissionMode::Default,
    PermissionMode::AcceptEdits,
    PermissionMode::DontAsk,
];

fn mode() -> impl Strategy<Value = PermissionMode> {
    proptest::sample::select(&MODES[..])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    // REQ: PRM-4, SES-4
    #[test]
    fn modes_that_are_set_in_any_order_are_walked_again(
        first in proptest::option::of(proptest::sample::select(&["plan", "acceptEdits"][..])),
        between in proptest::collection::vec(proptest::collection::vec(mode(), 0..3), 3),
        during in proptest::collection::vec((1_u64..120, mode()), 0..5),
        order in proptest::option::of(any::<u64>()),
        reopens in any::<bool>(),
        world in proptest::sample::select(&[world, busy_world, asking_world][..]),
    ) {
        let mut world = world(first);
        world.modes_at = during;
        world.shuffle = order.map(|it| EntropyStream::from_seed(it).child("order"));
        let mut play = Play::new(world);
        for (run, modes) in between.into_iter().enumerate() {
            modes.into_iter().for_each(|it| play.set_mode(it));
            play.run("go");
            if reopens && run == 1 {
                play.reopen();
            }
        }
        play.check_replay();
    }
}

// REQ: PRM-4, SES-4
#[test]
fn modes_that_are_set_while_a_question_is_recorded_are_walked_again() {
    let (plan, default) = (PermissionMode::Plan, PermissionMode::Default);
    for (world, modes_at, order) in [
        (world(None), vec![(77, plan), (75, default), (39, plan)], 1_317_295_818_049_997_496),
        (busy_world(None), vec![(1, plan), (22, plan), (22, default)], 4_479_515_874_766_810_813),
    ] {
        let mut world = world;
        world.modes_at = modes_at;
        world.shuffle = Some(EntropyStream::from_seed(order).child("order"));
        let mut play = Play::new(world);
        for _ in 0..3 {
            play.run("go");
        }
        play.check_replay();
    }
}

// REQ: PRM-4, SES-4
#[test]
fn mode_plan_that_is_set_before_any_input_of_two_runs_is_walked_again() {
    for at in 0..70 {
        for (mode, world) in
            MODES.into_iter().flat_map(|it| [(it, world(None)), (it, busy_world(None))])
        {
            let mut world = world;
            world.modes_at = vec![(at, PermissionMode::Plan), (at + 9, mode)];
            let mut play = Play::new(world);
            play.run("go");
            play.run("and then?");
            play.check_replay();
        }
    }
}

// REQ: PRM-4, SES-3, SES-4
#[test]
fn session_that_was_killed_in_the_mode_plan_is_walked_again() {
    for (seed, at) in (0..6).flat_map(|seed| (1..60).map(move |at| (seed, at))) {
        let mut world = world(Some("plan"));
        world.shuffle = (seed != 0).then(|| EntropyStream::from_seed(seed).child("order"));
        world.kill_at = Some(at);
        let mut play = Play::new(world);
        play.run("go");
        play.run("and then?");
        play.check_replay();
    }
}

// REQ: CTX-2, SES-4
#[test]
fn session_that_is_opened_again_with_news_for_the_model_is_walked_again() {
    let mut play = Play::new(world(None));
    play.run("go");
    play.now += 24 * 60 * 60 * 1_000;
    play.run("the day after");
    play.reopen();
    play.run("and back");
    play.now -= 24 * 60 * 60 * 1_000;
    play.reopen();
    play.run("and again");
    play.check_replay();
}

// REQ: PRM-4
#[test]
fn mode_that_is_set_while_a_call_is_at_the_gate_holds_for_that_call() {
    let mut n_set = 0;
    for at in 0..90 {
        let mut world = world(None);
        world.modes_at = vec![(at, PermissionMode::DontAsk)];
        world.layers =
            [vec![layer(Scope::User, json!({ "permissions": { "allow": ["Bash"] } }))]].into();
        let mut play = Play::new(world);
        play.run("go");
        let records: Vec<_> = play.records().collect();
        let is_set = |it: &RecordKind| matches!(it, RecordKind::Mode(it) if it.call.is_none());
        let set = records.iter().position(|it| is_set(&it.what));
        for record in set.map_or(&[][..], |it| &records[it..]) {
            if let RecordKind::Permission { mode, decision, tool, .. } = &record.what {
                n_set += 1;
                assert_eq!(*mode, PermissionMode::DontAsk, "{at}: {}", play.log());
                let is_denied = ["Edit", "EnterPlanMode", "ExitPlanMode"].contains(&tool.as_str());
                assert_eq!(decision.allowed, !is_denied, "{at}: {}", play.log());
            }
        }
        play.check_replay();
    }
    assert!(0 < n_set);
}

// REQ: PRM-4, SES-4
#[test]
fn mode_that_is_set_in_a_turn_that_is_ended_while_models_are_asked_for_hooks_is_walked_again() {
    let asks = json!({ "hooks": [{ "type": "prompt", "prompt": "May it?" }] });
    let hooks = json!({ "hooks": { "PreToolUse": [asks, asks], "PostToolUse": [asks, asks] } });
    let mut n_between = 0;
    for (at, before) in (2..60).flat_map(|at| (1..4).map(move |before| (at, before))) {
        let mut world = World::with(hooks.clone(), vec![calls(&["n:Note:x"]), text("done")]);
        world.modes_at = vec![(u64::saturating_sub(at, before), PermissionMode::Plan)];
        world.interrupt_at = Some(at);
        let mut play = Play::new(world);
        play.run("go");
        let of_turns = play.records().filter(|it| it.turn != 0).map(|it| &it.what);
        // The closing answers the call.
        let last: Vec<_> =
            of_turns.filter(|it| !matches!(it, RecordKind::ToolEnd { .. })).collect();
        let is_between = matches!(
            &last[..],
            [.., RecordKind::ModelAttempt { .. }, RecordKind::Mode(_), RecordKind::TurnEnd { .. }]
        );
        n_between += usize::from(is_between);
        play.world.interrupt_at = None;
        play.run("and then?");
        play.check_replay();
    }
    assert!(0 < n_between);
}
