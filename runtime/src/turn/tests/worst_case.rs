//! What is set aside for each model call of a turn, whatever the call is for.
//!
//! Built under `#[cfg(test)]` only.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    play::{Play, play},
    script::{answer, call, calls, failure, text},
    world::World,
};
use crate::{
    block::Block,
    catalogue::Catalogue,
    lease::Price,
    step5_model_call::{
        FailureClass::{ContextOverflow, Refusal},
        ModelAnswer, ModelFailure,
    },
    tokens::{Tokens, Usage},
    turn::effect::Purpose,
};

/// A call that was ordered: what it was for, its output ceiling, and the input that was set aside.
type Ordered = (Purpose, u64, u64);

fn ordered(play: &Play) -> Vec<Ordered> {
    let all = play.requests.iter().zip(&play.worst).map(|(order, worst)| {
        let body: Value = serde_json::from_slice(&order.request.body.to_bytes()).unwrap();
        let max_tokens = body["max_tokens"].as_u64().unwrap();
        (order.purpose, max_tokens, worst.tokens.0 - max_tokens)
    });
    all.collect()
}

/// A session that knows the models of the catalogue, and asks that of the settings.
fn with_catalogue(settings: Value, answers: Vec<Result<ModelAnswer, ModelFailure>>) -> Play {
    let mut world = World::with(settings, answers);
    Arc::make_mut(&mut world.facts).layers.clear();
    let mut play = Play::new(world);
    play.conversation.memory.catalogue = Arc::new(Catalogue::built_in());
    play
}

// REQ: AGT-7
#[test]
fn output_is_the_ceiling_of_that_very_call() {
    let cut = || answer("max_tokens", vec![Block::text("half")]);
    let play = play(World::new(vec![cut(), text("whole")]));
    let ceilings: Vec<_> = ordered(&play).into_iter().map(|it| it.1).collect();
    assert_eq!(ceilings, [32_000, 64_000]);
}

// REQ: AGT-7
#[test]
fn price_is_that_of_the_model_that_is_asked() {
    let settings = json!({
        "model": "claude-sonnet-5",
        "fallbackModel": ["claude-opus-5", "nobody-knows"],
    });
    let mut play = with_catalogue(settings, vec![failure(Refusal), failure(Refusal), text("done")]);
    play.run("go");
    let catalogue = Catalogue::built_in();
    let expected = |model: &str, input, output| {
        let prices = catalogue.find(model).and_then(|it| it.prices);
        prices.map_or(Price::Unknown(model.into()), |it| {
            Price::Known(it.dearest(Tokens(input), output))
        })
    };
    let models = ["claude-sonnet-5", "claude-opus-5", "nobody-knows"];
    let prices: Vec<_> = play.worst.iter().map(|it| it.price.clone()).collect();
    let calls = models.iter().zip(ordered(&play));
    let calls = calls.map(|(model, (_, output, input))| expected(model, input, output));
    assert_eq!(prices, calls.collect::<Vec<_>>());
    assert!(prices[0].known() < prices[1].known(), "{prices:?}");
}

// REQ: AGT-7
#[test]
fn input_is_what_was_counted_and_a_character_a_token_beyond_that() {
    let counted = Usage { input_tokens: 5_000, output_tokens: 70, ..Usage::default() };
    let mut first = calls(&["a:Read:a.rs"]).unwrap();
    first.usage = counted;
    let mut world = World::new(vec![Ok(first), text("done")]);
    world.outcomes.insert("a".into(), crate::tool::ToolOutcome::ok("x".repeat(30_000)));
    let play = play(world);
    let ordered = ordered(&play);
    let inputs: Vec<_> = ordered.iter().map(|it| it.2).collect();
    let whole = String::from_utf8(play.requests[0].request.body.to_bytes().to_vec()).unwrap();
    // Nothing was counted before the first: all of its text, keys and braces apart.
    assert!((whole.len() as u64) / 2 < inputs[0] && inputs[0] < 2 * whole.len() as u64);
    let added = inputs[1] - counted.total().0;
    assert!((30_000..30_400).contains(&added), "{inputs:?}");
}

// REQ: AGT-7
#[test]
fn input_of_another_model_is_not_what_the_first_one_counted() {
    let counted = Usage { input_tokens: 1, ..Usage::default() };
    let mut first = calls(&["a:Read:a.rs"]).unwrap();
    first.usage = counted;
    let answers = vec![Ok(first), failure(Refusal), text("done")];
    let play = play(World::with(json!({"fallbackModel": ["other"]}), answers));
    let inputs: Vec<_> = ordered(&play).into_iter().map(|it| it.2).collect();
    assert!(inputs[1] < inputs[0] && inputs[0] < inputs[2], "{inputs:?}");
}

// REQ: AGT-7
#[test]
fn summary_is_set_aside_for_by_its_own_request() {
    let mut answers: Vec<_> =
        (0..6).map(|it| answer("tool_use", vec![call(&format!("c{it}:Note:{it}"))])).collect();
    answers.extend([failure(ContextOverflow), text("done")]);
    let mut world = World::new(answers);
    for it in 0..6 {
        let long = crate::tool::ToolOutcome::ok("y".repeat(20_000));
        world.outcomes.insert(format!("c{it}"), long);
    }
    let play = play(world);
    let ordered = ordered(&play);
    let summary = ordered.iter().find(|it| it.0 == Purpose::Compaction).expect("it was made");
    let at = ordered.iter().position(|it| it == summary).unwrap();
    let texts =
        play.requests[at].request.body.to_bytes().iter().filter(|it| **it == b'y').count() as u64;
    assert!(0 < texts && texts <= summary.2, "{texts} {summary:?}");
}

// REQ: AGT-7
#[test]
fn no_more_input_is_set_aside_than_the_window_of_a_known_model_holds() {
    for (model, is_capped) in [("claude-haiku-4-5", true), ("nobody-knows", false)] {
        let mut play = with_catalogue(json!({ "model": model }), vec![text("done")]);
        play.run(&"x".repeat(500_000));
        let input = ordered(&play)[0].2;
        assert_eq!(input == 200_000, is_capped, "{model}: {input}");
    }
}
