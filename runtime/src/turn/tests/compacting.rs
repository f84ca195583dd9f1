//! Runs that sum up the conversation because somebody asked for it.
//!
//! Built under `#[cfg(test)]` only.

use serde_json::json;

use super::{
    play::Play,
    script::{failure, hook, text},
    world::World,
};
use crate::{
    hook::HookEvent, run::RunEnd, step5_model_call::FailureClass, transcript::entry::RecordKind,
    turn::effect::Purpose,
};

// REQ: SHP-7, HKS-1
#[test]
fn summary_that_was_asked_for_takes_the_place_of_all_that_was_said() {
    let settings = hook("PreCompact", "", &["exit 0"]);
    let mut world = World::with(settings, vec![text("first"), text("next")]);
    world.summaries = vec![text("a summary")].into();
    let mut play = Play::new(world);
    play.run("say first");
    play.compacts = Some("the names".into());
    play.run("/compact the names");
    play.compacts = None;
    assert_eq!(play.ends.last(), Some(&(RunEnd::Compacted, None)));
    let body =
        |i: usize| String::from_utf8(play.requests[i].request.body.to_bytes().to_vec()).unwrap();
    assert_eq!(play.requests[1].purpose, Purpose::Compaction);
    assert!(body(1).contains("Pay special attention to: the names"), "{}", body(1));
    let boundary = play.messages().find_map(|it| it.boundary.as_ref()).unwrap();
    assert_eq!(boundary.trigger, "manual");
    let fired = play.records().any(
        |it| matches!(&it.what, RecordKind::Hook { event, .. } if *event == HookEvent::PreCompact),
    );
    assert!(fired);
    // No model is asked for an answer, and the next run goes on from the summary.
    assert_eq!(play.requests.len(), 2);
    play.run("and then?");
    let body = String::from_utf8(play.requests[2].request.body.to_bytes().to_vec()).unwrap();
    assert!(body.contains("a summary") && !body.contains("say first"), "{body}");
    play.check_replay();
}

// REQ: SHP-7
#[test]
fn run_that_cannot_sum_up_says_why_and_changes_nothing() {
    let blocked = hook("PreCompact", "", &[r#"0 {"decision":"block","reason":"not now"}"#]);
    for (settings, answers, expected) in [
        (json!({}), Vec::new(), "nothing to sum up"),
        (json!({}), vec![text("first")], "no summary"),
        (blocked, vec![text("first")], "not now"),
    ] {
        let mut world = World::with(settings, answers.clone());
        world.summaries = vec![failure(FailureClass::Auth)].into();
        let mut play = Play::new(world);
        if !answers.is_empty() {
            play.run("say first");
        }
        let before = play.conversation.history.to_messages();
        play.compacts = Some(String::new());
        play.run("/compact");
        let (end, why) = play.ends.last().unwrap();
        assert_eq!(*end, RunEnd::Compacted, "{expected}");
        assert!(why.as_ref().is_some_and(|it| it.contains(expected)), "{why:?}, not {expected}");
        let after = play.conversation.history.to_messages();
        assert_eq!(after[..before.len()], before[..], "{expected}");
        assert!(play.messages().all(|it| it.boundary.is_none()), "{expected}");
        play.check_replay();
    }
}
