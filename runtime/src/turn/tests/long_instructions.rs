//! Sessions whose instructions take a large part of the window: what is in front of the conversation is no
//! reason to sum it up again and again.
//!
//! Built under `#[cfg(test)]` only.

use serde_json::json;

use super::{
    play::Play,
    script::{calls, text},
    world::{ContextWindow, World},
};
use crate::{
    permission::Scope,
    run::{
        RunEnd,
        facts::{SHAPES_CONVERSATION, SessionFacts},
    },
    step3_context_assembly::InstructionFile,
    tool::ToolOutcome,
    turn::effect::Purpose,
};

const N_ROUNDS: usize = 22;
const RESULT_CHARS: usize = 2_500;

/// A session of 22 rounds with 2,500 characters of results each, in a window of this many tokens, by the rules
/// of this revision, with instructions of this many characters.
fn instructed(revision: u32, window: u64, instructions: usize, more: serde_json::Value) -> Play {
    let answers = (0..N_ROUNDS).map(|i| calls(&[&format!("t{i}:Note:{i}")]));
    let mut settings = json!({"contextWindow": window, "maxOutputTokens": 4_000});
    settings["shapers"] = more;
    let answers = answers.chain([text("done")]).collect();
    let mut world = World::with(json!({ "ennead": settings }), answers);
    let result = |i: usize| ToolOutcome::ok(format!("{i} {}", "word ".repeat(RESULT_CHARS / 5)));
    world.outcomes = (0..N_ROUNDS).map(|i| (format!("t{i}"), result(i))).collect();
    world.window = Some(ContextWindow { tokens: window, bytes_per_token: 4 });
    world.sources.instructions = vec![InstructionFile {
        scope: Scope::Project,
        path: "/w/CLAUDE.md".into(),
        text: "Keep lines short. ".repeat(instructions / 18),
    }];
    let mut facts = SessionFacts::clone(&world.facts);
    facts.revision = revision;
    world.facts = facts.into();
    let mut play = Play::new(world);
    play.run("go");
    play
}

fn n_summaries(play: &Play) -> usize {
    play.requests.iter().filter(|it| it.purpose == Purpose::Compaction).count()
}

// REQ: SHP-7, SHP-13, SES-3
#[test]
fn long_instructions_neither_end_a_run_nor_make_it_sum_up_every_round() {
    for (window, instructions) in [(32_000, 100_000), (32_000, 60_000), (48_000, 81_400)] {
        let about = format!("{window} with {instructions}");
        let play = instructed(SHAPES_CONVERSATION, window, instructions, json!({}));
        assert_eq!(play.ends.last().unwrap().0, RunEnd::NoPendingTools, "{about}: {}", play.log());
        assert!(n_summaries(&play) <= 2, "{about}: {}", n_summaries(&play));
        play.check_replay();
        // What the model is told of them stays the same from the first request to the last.
        let body = |it: usize| {
            String::from_utf8(play.requests[it].request.body.to_bytes().to_vec()).unwrap()
        };
        let n_shown = |body: &str| body.matches("Keep lines short.").count();
        assert_eq!(n_shown(&body(0)), n_shown(&body(play.requests.len() - 1)), "{about}");
        assert!(1_000 < n_shown(&body(0)), "{about}");
    }
    // By the rules of before, the first of them was summed up at every round, and ended.
    let before = instructed(SHAPES_CONVERSATION - 1, 32_000, 100_000, json!({}));
    assert_ne!(before.ends.last().unwrap().0, RunEnd::NoPendingTools);
    before.check_replay();
}

// REQ: SHP-13
#[test]
fn limit_that_settings_set_below_the_instructions_leaves_the_conversation_a_share() {
    let set = json!({"autoCompactMaxTokens": 12_000});
    let play = instructed(SHAPES_CONVERSATION, 200_000, 60_000, set);
    assert_eq!(play.ends.last().unwrap().0, RunEnd::NoPendingTools, "{}", play.log());
    // 22 rounds of 625 tokens in a share of 3,600.
    assert!((2..=8).contains(&n_summaries(&play)), "{}", n_summaries(&play));
    play.check_replay();
}
