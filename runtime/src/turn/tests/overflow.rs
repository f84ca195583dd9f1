//! Whatever a turn brings, the session goes on: requests are made to fit, or the run says why not.
//!
//! Built under `#[cfg(test)]` only.

use proptest::prelude::*;
use serde_json::json;

use super::{
    play::Play,
    script::{answer, calls},
    world::{ContextWindow, World},
};
use crate::{
    block::Block,
    run::RunEnd,
    step5_model_call::{ModelAnswer, ModelFailure},
    tool::ToolOutcome,
    transcript::entry::RecordKind,
};

/// A word of a result and the space after it: one token by the estimate, as by a provider that counts four
/// bytes as one.
fn word(round: usize, i: usize) -> String {
    let letter = |it: usize| char::from_digit(10 + it as u32 % 26, 36).unwrap();
    format!("{}{}x ", letter(round), letter(i))
}

/// A world in which each answer calls `Note` so often, with results of this many characters each.
fn bringing(window: ContextWindow, max_output: u64, rounds: &[Vec<usize>]) -> World {
    let id = |round: usize, i: usize| format!("t{round}_{i}");
    let answers = rounds.iter().enumerate().map(|(round, sizes)| {
        let names: Vec<String> =
            (0..sizes.len()).map(|i| format!("{}:Note:{i}", id(round, i))).collect();
        calls(&names.iter().map(String::as_str).collect::<Vec<_>>())
    });
    let limits = json!({"contextWindow": window.tokens, "maxOutputTokens": max_output});
    let mut world = World::with(json!({ "ennead": limits }), answers.collect());
    world.outcomes = rounds
        .iter()
        .enumerate()
        .flat_map(|(round, sizes)| {
            let result = move |(i, n): (usize, &usize)| {
                (id(round, i), ToolOutcome::ok(word(round, i).repeat(n / 4)))
            };
            sizes.iter().enumerate().map(result)
        })
        .collect();
    world.window = Some(window);
    world
}

const USUAL: ContextWindow = ContextWindow { tokens: 200_000, bytes_per_token: 4 };

// REQ: SHP-3, SHP-12, SES-7
#[test]
fn ten_large_results_of_one_turn_are_cut_oldest_first_and_the_run_answers() {
    let mut world = bringing(USUAL, 32_000, &[vec![100_000; 10]]);
    // As Read has it: its results have no cap.
    let tools = world.facts.tools.clone();
    let mut facts = (*world.facts).clone();
    facts.tools = tools
        .into_iter()
        .map(|it| {
            let mut spec = (*it).clone();
            spec.output_cap = None;
            spec.into()
        })
        .collect();
    world.facts = facts.into();
    let mut play = Play::new(world);
    play.run("go");
    assert_eq!(play.ends.last().unwrap().0, RunEnd::NoPendingTools, "{}", play.log());
    let last =
        String::from_utf8(play.requests.last().unwrap().request.body.to_bytes().to_vec()).unwrap();
    assert!(!last.contains(&word(0, 0).repeat(1_000)) && last.contains(&word(0, 9).repeat(20_000)));
    assert!(play.stored.values().any(|it| it.len() == 100_000), "the whole can be read");
    let fired = |it: &&crate::transcript::entry::Record| matches!(&it.what, RecordKind::Shaper { stage, fired: true, .. } if stage == "overflow_reduction");
    assert_eq!(play.records().filter(fired).count(), 1);
    play.run("and then?");
    assert_eq!(play.ends.last().unwrap().0, RunEnd::NoPendingTools, "{}", play.log());
}

// REQ: SHP-3
#[test]
fn results_of_one_turn_share_a_cap_under_pressure_though_each_has_a_message() {
    // Eight at their cap of 50,000 make 100,000 tokens, above 70 % of the budget of 118,000.
    let window = ContextWindow { tokens: 150_000, ..USUAL };
    let mut play = Play::new(bringing(window, 32_000, &[vec![50_000; 8]]));
    play.run("go");
    let why = play.records().find_map(|it| match &it.what {
        RecordKind::Shaper { stage, fired: true, why, .. } if stage == "budget_reduction" => {
            Some(why.clone())
        }
        _ => None,
    });
    assert_eq!(why.as_deref(), Some("cut 8 tool results to their cap"), "{}", play.log());
    assert!(!play.log().contains("overflow_reduction"), "{}", play.log());
}

// REQ: MDL-5, SHP-13
#[test]
fn provider_that_counts_otherwise_is_met_by_cutting_half_at_a_time() {
    // 80,000 tokens by our estimate, and twice that by theirs.
    let window = ContextWindow { tokens: 100_000, bytes_per_token: 2 };
    let mut play = Play::new(bringing(window, 8_000, &[vec![45_000; 7]]));
    play.run("go");
    assert_eq!(play.ends.last().unwrap().0, RunEnd::NoPendingTools, "{}", play.log());
    assert!(play.log().contains("overflow_reduction"), "{}", play.log());
}

fn sizes() -> impl Strategy<Value = Vec<usize>> {
    let size = prop_oneof![3 => 0..2_000usize, 2 => 2_000..50_000usize, 2 => 50_000..130_000usize];
    prop::collection::vec(size, 1..12)
}

fn text_of(n: usize) -> Result<ModelAnswer, ModelFailure> {
    answer("end_turn", vec![Block::text(&"word ".repeat(n / 5 + 1))])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    // REQ: SHP-12, SHP-13, TRN-7, SES-7
    #[test]
    fn whatever_a_turn_brings_the_run_ends_clearly_and_the_next_prompt_works(
        tokens in prop_oneof![Just(16_000u64), Just(32_000), 16_000..200_000u64, Just(200_000)],
        bytes_per_token in 2..5u64,
        max_output in prop_oneof![Just(1_000u64), Just(8_000), Just(32_000)],
        rounds in prop::collection::vec(sizes(), 0..4),
        prompts in prop::collection::vec(prop_oneof![2 => 1..2_000usize, 1 => 1..400_000usize], 1..3),
        answer_size in prop_oneof![2 => 0..500usize, 1 => 0..60_000usize],
        compacts in any::<bool>(),
        is_resumed in any::<bool>(),
    ) {
        let mut world = bringing(ContextWindow { tokens, bytes_per_token }, max_output, &rounds);
        world.answers.push_back(text_of(answer_size));
        if !compacts {
            let text = world.layers[0][0].text.replacen(
                r#""contextWindow""#, r#""shapers":{"autoCompact":false},"contextWindow""#, 1);
            world.layers[0][0].text = text;
        }
        let mut play = Play::new(world);
        for prompt in &prompts {
            play.run(&"p ".repeat(prompt / 2 + 1));
            let (end, why) = play.ends.last().unwrap();
            let is_clear = match end {
                RunEnd::NoPendingTools => true,
                RunEnd::PromptTooLong => why.as_ref().is_some_and(|it| !it.is_empty()),
                _ => false,
            };
            prop_assert!(is_clear, "{end:?} {why:?} {}", play.log());
            // A prompt that is small next to the window is never refused.
            let is_small = (*prompt as u64) < tokens / 8;
            prop_assert!(!is_small || *end == RunEnd::NoPendingTools, "{why:?} {}", play.log());
        }
        if is_resumed {
            play.reopen();
        }
        play.run("and then?");
        prop_assert_eq!(play.ends.last().unwrap().0, RunEnd::NoPendingTools, "{}", play.log());
    }
}
