//! Each end of a run has its own reason and leaves a history to go on with.
//!
//! Built under `#[cfg(test)]` only.

use serde_json::json;

use super::{
    play::{Play, play},
    script::{answer, call, calls, text},
    world::World,
};
use crate::{
    message::Role,
    run::RunEnd,
    step5_model_call::{ModelAnswer, view, view::ViewMessage},
    tool::ToolOutcome,
    transcript::{
        entry::RecordKind,
        load::{LoadAs, load},
    },
};

#[track_caller]
fn check(world: World, end: RunEnd) -> Play {
    let mut play = play(world);
    assert_eq!(play.ends[0].0, end, "{}", play.log());
    // Resumable: the next prompt is answered.
    play.world.answers.clear();
    play.run("and now?");
    let sent = view::compile(&play.conversation.history.to_messages());
    assert!(view::is_acceptable_for(
        view::ViewTarget::default(),
        &sent.messages[..sent.messages.len() - 1]
    ));
    play
}

// REQ: TRN-6
#[test]
fn run_ends_when_the_model_wants_nothing_more() {
    check(World::new(vec![text("done")]), RunEnd::NoPendingTools);
    check(World::new(vec![answer("end_turn", Vec::new())]), RunEnd::NoPendingTools);
}

// REQ: TRN-6, TRN-7
#[test]
fn used_up_budget_ends_the_run_over_all_its_turns() {
    let settings = json!({ "ennead": { "runTokenBudget": 300 } });
    let mut asked = calls(&["a:Note:1"]);
    asked.as_mut().unwrap().usage.input_tokens = 110;
    let play = check(World::with(settings, vec![asked; 5]), RunEnd::BudgetExceeded);
    // 110 and a few each: the third turn reaches the limit.
    let done = |what: &RecordKind| matches!(what, RecordKind::TurnStep { number: 9, .. });
    let first = play.records().take_while(|it| !matches!(it.what, RecordKind::RunEnd { .. }));
    assert_eq!(first.filter(|it| done(&it.what)).count(), 3);
}

// REQ: TRN-7
#[test]
fn cap_on_turns_ends_the_run() {
    let settings = json!({ "ennead": { "maxTurns": 2 } });
    let answers = vec![calls(&["a:Note:1"]), calls(&["b:Note:2"]), text("not reached")];
    check(World::with(settings, answers), RunEnd::MaxTurns);
}

// REQ: TRN-12
#[test]
fn third_equal_call_is_pointed_out_and_the_fifth_ends_the_run() {
    let answers = (0..6).map(|i| calls(&[&format!("t{i}:Note:same")])).collect();
    let play = check(World::new(answers), RunEnd::NoProgress);
    let log = play.log();
    assert!(log.contains("result:t2 note 9"), "{log}");
    assert_eq!(log.matches("note").count(), 1, "{log}");
    assert!(log.contains("result:t4 9 no_progress"), "{log}");
}

// REQ: TRN-12
#[test]
fn polling_and_new_results_are_progress() {
    let polls = (0..6).map(|i| calls(&[&format!("t{i}:Poll:same")])).collect();
    check(World::new(polls), RunEnd::NoPendingTools);
    let mut world = World::new((0..6).map(|i| calls(&[&format!("t{i}:Note:same")])).collect());
    world.outcomes =
        (0..6).map(|i| (format!("t{i}"), ToolOutcome::ok(format!("line {i}")))).collect();
    check(world, RunEnd::NoPendingTools);
}

// REQ: TRN-12
#[test]
fn repetitions_are_counted_per_run() {
    let answers: Vec<_> = (0..4).map(|i| calls(&[&format!("t{i}:Note:same")])).collect();
    let mut play = play(World::new(answers.clone()));
    play.world.answers = answers.into();
    play.run("again");
    assert_eq!(play.ends.iter().map(|it| it.0).collect::<Vec<_>>(), [RunEnd::NoPendingTools; 2]);
}

// REQ: PRM-7
#[test]
fn a_denial_is_an_answer_and_three_equal_ones_end_the_run() {
    let deny = json!({ "permissions": { "deny": ["Bash(rm *)"] } });
    let answers = |n: usize| (0..n).map(|i| calls(&[&format!("t{i}:Bash:rm x")])).collect();
    check(World::with(deny.clone(), answers(2)), RunEnd::NoPendingTools);
    check(World::with(deny, answers(4)), RunEnd::TooManyDenials);
}

// REQ: PRM-7
#[test]
fn twenty_denials_of_one_run_end_it() {
    let deny = json!({ "permissions": { "deny": ["Bash(rm *)"] } });
    let many = |n: usize| {
        let blocks = (0..n).map(|i| call(&format!("t{i}:Bash:rm {i}"))).collect();
        vec![answer("tool_use", blocks)]
    };
    check(World::with(deny.clone(), many(19)), RunEnd::NoPendingTools);
    check(World::with(deny, many(20)), RunEnd::TooManyDenials);
}

// REQ: TRN-7, SES-3
#[test]
fn interrupted_turn_is_closed_and_every_call_answered() {
    for at in 1..40 {
        let mut world = World::new(vec![calls(&["a:Read:a.rs", "b:Edit:b.rs"])]);
        world.interrupt_at = Some(at);
        let mut play = play(world);
        let is_done = play.ends[0].0 == RunEnd::NoPendingTools;
        assert!(is_done || play.ends[0].0 == RunEnd::Interrupted);
        if !is_done {
            let closed = |what: &RecordKind| matches!(what, RecordKind::TurnEnd { .. });
            assert_eq!(play.records().filter(|it| closed(&it.what)).count(), 1);
        }
        let compiled = view::compile(&play.conversation.history.to_messages());
        assert_eq!(compiled.notes, [], "interrupted before input {at}");
        play.world.interrupt_at = None;
        play.run("and now?");
        assert_eq!(play.ends[1].0, RunEnd::NoPendingTools);
    }
}

// REQ: SES-4
#[test]
fn answers_that_a_server_names_alike_or_not_at_all_stay_apart() {
    for named in ["same", ""] {
        let answers = vec![calls(&["a:Note:1"]), calls(&["b:Note:2"]), text("done")];
        let name = |answer: ModelAnswer| ModelAnswer { message_id: named.into(), ..answer };
        let answers = answers.into_iter().map(|it| it.map(name)).collect();
        let play = check(World::new(answers), RunEnd::NoPendingTools);
        let roles = |view: &[ViewMessage]| view.iter().map(|it| it.role).collect::<Vec<_>>();
        let alternating = [Role::User, Role::Assistant].repeat(4);
        let live = view::compile(&play.conversation.history.to_messages());
        assert_eq!(roles(&live.messages), alternating, "live, `{named}`");
        let loaded = view::compile(&load(&play.bytes(), LoadAs::Session).messages);
        assert_eq!(roles(&loaded.messages), alternating, "loaded, `{named}`");
    }
}
