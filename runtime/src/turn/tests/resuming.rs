//! A session that is closed and opened again asks its model what one would ask that was never closed.
//!
//! What an opening looks at anew stays as it was here: settings, sources and the day. A hook that fires at the
//! start of a session may add something each time, so there is none. Limits that a provider named in a
//! refusal are learned anew.
//!
//! Built under `#[cfg(test)]` only.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    play::Play,
    random::random_world,
    script::{allowing, calls, text},
    world::World,
};
use crate::{
    run::RunEnd,
    tool::{FileSeen, ToolNote, ToolOutcome},
    transcript::entry::{RecordKind, StepDetail},
    turn::effect::ModelCallOrder,
};

const PROMPTS: [&str; 5] = ["go", "and then?", "and now?", "go on", "is it done?"];

/// A random world that is the same at each look.
fn steady(seed: u64) -> World {
    let mut world = random_world(seed);
    let text = world.layers[0].last().unwrap().text.clone();
    let mut settings: Value = serde_json::from_str(&text).unwrap();
    settings["hooks"].as_object_mut().unwrap().remove("SessionStart");
    world.layers = [vec![allowing(settings)]].into();
    for outcome in world.outcomes.values_mut() {
        // What a call notes is in its record, as it is for the tools that there are.
        outcome.notes.retain(|it| !matches!(it, ToolNote::CwdChanged { .. }));
    }
    World { shuffle: None, echo: false, stop_at: None, kill_at: None, ..world }
}

fn bodies(orders: &[ModelCallOrder]) -> Vec<String> {
    orders
        .iter()
        .map(|it| String::from_utf8(it.request.body.to_bytes().to_vec()).unwrap())
        .collect()
}

/// Plays two sessions alike, opens one of them again before a run, and compares what is asked in that run.
#[track_caller]
fn check(world: impl Fn() -> World, n_before: usize) -> Play {
    let (mut open, mut closed) = (Play::new(world()), Play::new(world()));
    for prompt in &PROMPTS[..n_before] {
        open.run(prompt);
        closed.run(prompt);
    }
    assert_eq!(bodies(&open.requests), bodies(&closed.requests));
    let n_asked = open.requests.len();
    closed.reopen();
    for play in [&mut open, &mut closed] {
        play.run(PROMPTS[n_before]);
    }
    let is_cut_off = |it: &Play| it.ends.last().is_some_and(|it| it.0 == RunEnd::Interrupted);
    // Where one of them was interrupted is counted in inputs.
    if !is_cut_off(&open) && !is_cut_off(&closed) {
        let (asked, again) =
            (bodies(&open.requests[n_asked..]), bodies(&closed.requests[n_asked..]));
        for (n, (asked, again)) in asked.iter().zip(&again).enumerate() {
            let at = asked.bytes().zip(again.bytes()).take_while(|(a, b)| a == b).count();
            let around = |text: &str| {
                let bytes = &text.as_bytes()[at.saturating_sub(300)..text.len().min(at + 300)];
                String::from_utf8_lossy(bytes).into_owned()
            };
            assert!(
                asked == again,
                "request {n}\n{}\n\nafter the resume\n{}",
                around(asked),
                around(again)
            );
        }
        assert_eq!(asked.len(), again.len());
    }
    closed.check_replay();
    open.check_replay();
    closed
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    // REQ: SES-4, SHP-6, CTX-7, CTX-8
    #[test]
    fn request_after_a_resume_is_byte_for_byte_the_one_without_it(
        seed in any::<u64>(), n_before in 1..5_usize,
    ) {
        check(|| steady(seed), n_before);
    }
}

/// Long results, and stages that cut, drop and collapse them.
fn cut(shapers: &Value, tool: &str) -> World {
    let settings = json!({ "ennead": { "shapers": shapers } });
    let n_calls = 24;
    let mut answers: Vec<_> =
        (0..n_calls).map(|n| calls(&[&format!("t{n}:{tool}:src/f{n}.rs")])).collect();
    (0..4).for_each(|n| answers.insert(n * 7 + 6, text("done with that")));
    let mut world = World::with(settings, answers);
    for n in 0..n_calls {
        let seen = FileSeen {
            mtime_ns: 1,
            size: 2,
            digest: Default::default(),
            partial: false,
            cells: None,
        };
        let notes = vec![ToolNote::FileSeen { path: format!("/w/src/f{n}.rs"), seen }];
        let text = format!("{n} {}", "word ".repeat(700));
        world.outcomes.insert(format!("t{n}"), ToolOutcome { notes, ..ToolOutcome::ok(text) });
    }
    world
}

// REQ: SES-4, SHP-4, SHP-5, SHP-6, CTX-8
#[test]
fn what_each_stage_has_left_is_what_is_sent_after_a_resume() {
    for (name, shapers) in [
        ("budget_reduction", json!({ "perResultCapChars": 900 })),
        ("snip", json!({ "HISTORY_SNIP": true, "autoCompactMaxTokens": 9_000 })),
        ("microcompact", json!({ "autoCompactMaxTokens": 9_000 })),
        (
            "context_collapse",
            json!({ "CONTEXT_COLLAPSE": true, "autoCompactMaxTokens": 3_000, "keepNewest": 2 }),
        ),
        ("auto_compact", json!({ "autoCompactMaxTokens": 9_000, "exemptTools": ["Read"] })),
    ] {
        for n_before in 1..5 {
            // Results of Read have no cap.
            let tool = if name == "budget_reduction" { "Note" } else { "Read" };
            let closed = check(|| cut(&shapers, tool), n_before);
            let fired = closed.log.iter().filter(|it| *it == name).count();
            assert!(n_before < 3 || 0 < fired, "{name}: {}", closed.log());
        }
    }
}

// REQ: SES-4, CTX-8
#[test]
fn size_after_a_resume_goes_on_from_the_reported_one() {
    let closed = check(|| cut(&json!({}), "Read"), 2);
    let sizes: Vec<u64> = closed
        .records()
        .filter_map(|it| match &it.what {
            RecordKind::TurnStep { detail: StepDetail::Context { tokens, .. }, .. } => {
                Some(tokens.0)
            }
            _ => None,
        })
        .collect();
    assert!(sizes.is_sorted(), "{sizes:?}");
}
