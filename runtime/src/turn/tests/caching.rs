//! What successive requests of one session have in common, byte for byte.
//!
//! The prefix of a request is what a provider hashes: tools, system prompt and blocks, without the
//! marks. Marks move on with the conversation, so raw bytes are equal up to the first mark in the
//! messages that moves, and all bytes are equal once the marks are taken out.
//!
//! Built under `#[cfg(test)]` only.

use serde_json::json;

use super::{
    play::{Play, play},
    script::{calls, failure, text},
    world::World,
};
use crate::{
    run::facts::SessionFacts,
    step5_model_call::{
        FailureClass,
        cache_watch::{DropReason, PromptCacheEvent},
    },
    tool::ToolOutcome,
    transcript::{entry::RecordKind, replay::replay},
    turn::effect::Purpose,
};

pub(super) const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;

pub(super) fn bodies(play: &Play) -> Vec<String> {
    let body = |it: &crate::turn::effect::ModelCallOrder| {
        String::from_utf8(it.request.body.to_bytes().to_vec()).unwrap()
    };
    play.requests.iter().map(body).collect()
}

/// The request without marks and without what closes it.
pub(super) fn content(body: &str) -> String {
    body.replace(MARK, "").strip_suffix("]}").unwrap().to_owned()
}

/// Two prompts of 15 turns each, with one to three calls in a turn.
fn long_session(facts: impl FnOnce(&mut SessionFacts)) -> Play {
    let turn = |i: usize| {
        let all: Vec<String> = (0..=i % 3).map(|n| format!("t{i}-{n}:Note:{i} {n}")).collect();
        calls(&all.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let mut answers: Vec<_> = (0..14).map(turn).collect();
    answers.push(text("half way"));
    answers.extend((14..28).map(turn));
    answers.push(text("done"));
    let mut world = World::with(json!({ "ennead": { "maxTurns": 40 } }), answers);
    world.outcomes = (0..28)
        .map(|i| (format!("t{i}-0"), ToolOutcome::ok(format!("result \"{i}\"\n").repeat(40))))
        .collect();
    facts(std::sync::Arc::make_mut(&mut world.facts));
    let mut play = play(world);
    play.run("and now?");
    play
}

// REQ: CTX-7
#[test]
fn each_request_of_a_session_of_thirty_turns_goes_on_from_the_one_before() {
    let play = long_session(|_| ());
    let bodies = bodies(&play);
    assert_eq!(bodies.len(), 30);
    for (earlier, later) in bodies.iter().zip(&bodies[1..]) {
        assert!(content(later).starts_with(&content(earlier)));
        // The first mark of the earlier one that is gone in the later one.
        let messages = earlier.find(r#""messages":["#).unwrap();
        let moved = earlier[messages..].find(MARK).map_or(earlier.len(), |it| messages + it);
        assert_eq!(earlier[..moved], later[..moved]);
        assert!(later.matches(MARK).count() <= 4);
    }
    // From the second request of a run on, there are all four.
    assert_eq!(bodies[0].matches(MARK).count(), 3);
    assert_eq!(bodies[20].matches(MARK).count(), 4);
}

// REQ: CTX-7
#[test]
fn turn_takes_no_memory_for_what_was_said_before() {
    let play = long_session(|_| ());
    let bodies = play.requests.iter().map(|it| &it.request.body);
    let sizes: Vec<(usize, usize)> = bodies.map(|it| (it.len(), it.n_own())).collect();
    // What a request holds itself is system prompt, tools and the newest messages.
    let ((first, of_first), (last, of_last)) = (sizes[0], sizes[29]);
    assert!(first + 25_000 < last && of_last < of_first + 6_000, "{sizes:?}");
    assert!(!play.conversation.memory.carried.has_slice(), "no step asked for a list");
}

// REQ: CTX-7
#[test]
fn tools_make_the_same_bytes_in_whatever_order_they_are_registered() {
    let in_order = bodies(&long_session(|_| ()));
    let reversed = bodies(&long_session(|it| it.tools.reverse()));
    assert_eq!(in_order, reversed);
}

// REQ: CTX-7
#[test]
fn what_differs_between_machines_stands_behind_the_mark_of_the_system_prompt() {
    let here = bodies(&long_session(|_| ())).remove(0);
    let there = bodies(&long_session(|it| it.workspace = "/elsewhere".into())).remove(0);
    let same = here.bytes().zip(there.bytes()).take_while(|(left, right)| left == right).count();
    let of_system = here.find(MARK).unwrap();
    assert!(of_system < same, "{}", &here[same..]);
    assert!(here[of_system..].contains("branch main"));
}

// REQ: CTX-7, SHP-7
#[test]
fn request_for_a_summary_goes_on_from_the_requests_before_it() {
    let settings = json!({ "ennead": { "shapers": { "autoCompactMaxTokens": 2000 } } });
    let answers = (0..12).map(|i| calls(&[&format!("t{i}:Note:{i}")])).collect();
    let mut world = World::with(settings, answers);
    world.outcomes =
        (0..12).map(|i| (format!("t{i}"), ToolOutcome::ok("long ".repeat(200)))).collect();
    let play = play(world);
    let at = play.requests.iter().position(|it| it.purpose == Purpose::Compaction).unwrap();
    let (before, summary) = (&bodies(&play)[..at], &bodies(&play)[at]);
    // Some earlier request is a prefix of it: what that one left in the cache is read.
    let held = before.iter().rev().find(|it| content(summary).starts_with(&content(it)));
    let held = held.expect("no earlier request is a prefix of the one for a summary");
    let instruction = content(summary).len() - content(held).len();
    assert!(instruction < content(summary).len() / 2, "{instruction}");
}

// REQ: CTX-7
#[test]
fn caching_can_be_switched_off_or_last_an_hour() {
    let marks = |settings: serde_json::Value| {
        let play = play(World::with(settings, vec![text("done")]));
        let body = bodies(&play).remove(0);
        (body.matches("cache_control").count(), body.matches(r#""ttl":"1h""#).count())
    };
    let own = |how: &str| json!({ "ennead": { "promptCaching": how } });
    assert_eq!(marks(json!({})), (3, 0));
    assert_eq!(marks(own("off")), (0, 0));
    assert_eq!(marks(own("1h")), (3, 3));
    assert_eq!(marks(own("2h")), (3, 0));
    assert_eq!(marks(json!({ "env": { "DISABLE_PROMPT_CACHING": "1" } })), (0, 0));
    assert_eq!(marks(json!({ "env": { "DISABLE_PROMPT_CACHING": "0" } })), (3, 0));
    assert_eq!(marks(json!({ "env": { "ENABLE_PROMPT_CACHING_1H": "1" } })), (3, 3));
}

// REQ: CTX-7, TRN-9
#[test]
fn drop_of_cached_tokens_is_told_and_recorded() {
    let cached = |read: u64, written: u64| {
        let mut answer = calls(&[&format!("t{read}-{written}:Poll:x")]).unwrap();
        answer.usage.cache_read_input_tokens = read;
        answer.usage.cache_creation_input_tokens = written;
        Ok(answer)
    };
    let mut play = Play::new(World::new(vec![
        cached(0, 9_000),
        cached(9_000, 200),
        failure(FailureClass::Overloaded),
        cached(0, 9_300),
        cached(9_300, 0),
    ]));
    play.run("go");
    let drops: Vec<_> = play
        .records()
        .filter_map(|it| match &it.what {
            RecordKind::ModelAttempt { cache_drop, .. } => Some((it.turn, *cache_drop.clone()?)),
            _ => None,
        })
        .collect();
    let event = PromptCacheEvent {
        unexpected: true,
        reason: DropReason::ServerSide,
        at: None,
        previous: 9_200,
        current: 0,
        token_drop: 9_200,
    };
    // The last answer of the script reports the 7 tokens that all others of these tests do.
    let last = PromptCacheEvent { previous: 9_300, current: 7, token_drop: 9_293, ..event.clone() };
    assert_eq!(drops, [(3, event), (5, last)]);
    assert_eq!(play.log.iter().filter(|it| *it == "cache").count(), 2);
    let replayed = replay(&play.bytes(), &|digest| play.stored.get(&digest).cloned());
    assert_eq!(replayed.map(|it| it.turns), Ok(5));
}
