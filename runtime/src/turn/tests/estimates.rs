//! What the size of a request is taken to be, and what is learned of the sizes that are reported.
//!
//! Built under `#[cfg(test)]` only.

use serde_json::json;

use super::{
    play::Play,
    script::{calls, text},
    world::{ContextWindow, World},
};
use crate::{
    run::{
        RunEnd,
        facts::{ESTIMATES_BY_CLASS, REVISION, SessionFacts},
    },
    tokens::Tokens,
    tool::ToolOutcome,
    transcript::entry::{RecordKind, StepDetail},
};

/// A world by the rules of this revision, in which each answer brings results of this text.
fn bringing(revision: u32, window: ContextWindow, rounds: &[usize], result: &str) -> World {
    let ids = |round: usize| (0..rounds[round]).map(move |i| format!("t{round}_{i}"));
    let answers = (0..rounds.len()).map(|round| {
        let names: Vec<String> = ids(round).map(|id| format!("{id}:Note:{id}")).collect();
        calls(&names.iter().map(String::as_str).collect::<Vec<_>>())
    });
    let limits = json!({"contextWindow": window.tokens, "maxOutputTokens": 8_000});
    let answers = answers.chain([text("done")]).collect();
    let mut world = World::with(json!({ "ennead": limits }), answers);
    let outcome = |id: String| (id.clone(), ToolOutcome::ok(format!("{id} {result}")));
    world.outcomes = (0..rounds.len()).flat_map(ids).map(outcome).collect();
    world.window = Some(window);
    let mut facts = SessionFacts::clone(&world.facts);
    facts.revision = revision;
    world.facts = facts.into();
    world
}

fn refusals(play: &Play) -> usize {
    let is_refused =
        |it: &RecordKind| matches!(it, RecordKind::ModelAttempt { outcome, .. } if outcome != "ok");
    play.records().filter(|it| is_refused(&it.what)).count()
}

// REQ: CTX-8, SES-3
#[test]
fn chinese_results_are_cut_before_they_are_refused_and_older_sessions_are_walked_by_their_rule() {
    let window = ContextWindow { tokens: 150_000, bytes_per_token: 4 };
    let result = "日本".repeat(22_500);
    for (revision, refused) in [(REVISION, 0), (ESTIMATES_BY_CLASS - 1, 1)] {
        let mut play = Play::new(bringing(revision, window, &[6], &result));
        play.run("go");
        assert_eq!(play.ends.last().unwrap().0, RunEnd::NoPendingTools, "{}", play.log());
        assert_eq!(refusals(&play), refused, "{revision}: {}", play.log());
        play.check_replay();
    }
}

/// The size that the last request was taken to have before it was shaped, and that its provider counted.
fn last_sizes(play: &Play) -> (Tokens, Tokens) {
    let taken = play.records().filter_map(|it| match &it.what {
        RecordKind::TurnStep { detail: StepDetail::Context { tokens, .. }, .. } => Some(*tokens),
        _ => None,
    });
    let body = &play.requests.last().unwrap().request.body.to_bytes();
    (taken.last().unwrap(), Tokens(play.world.window.unwrap().tokens(body)))
}

// REQ: CTX-8, SES-4
#[test]
fn session_that_is_opened_again_estimates_by_what_was_reported_before() {
    let window = ContextWindow { tokens: 400_000, bytes_per_token: 2 };
    let result = "fox ".repeat(5_000);
    for revision in [REVISION, ESTIMATES_BY_CLASS - 1] {
        let mut play = Play::new(bringing(revision, window, &[1; 9], &result));
        play.run("go");
        let learned = play.conversation.memory.learned.clone();
        play.reopen();
        assert_eq!(play.conversation.memory.learned, learned, "{revision}");
        // Nothing has been reported to this process yet.
        play.world.answers = [text("done")].into();
        play.run("and then?");
        let (taken, counted) = last_sizes(&play);
        let percent = taken.0 * 100 / counted.0;
        match revision {
            REVISION => assert!((90..=105).contains(&percent), "{percent} %"),
            _ => assert!(percent < 60, "{percent} %"),
        }
        play.check_replay();
    }
}
