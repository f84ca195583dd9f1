//! Long transcripts, for what the length of one may cost.
//!
//! Nothing here measures time. `files` writes transcripts for a program to be timed with:
//!
//! ```text
//! ENNEAD_LONG_TRANSCRIPTS=DIR cargo test -p ennead-runtime --lib long_transcripts_are_written -- --ignored
//! time ennead verify DIR/turns-2500.jsonl
//! ```

use serde_json::json;

use super::*;
use crate::{
    step5_model_call::{ModelAnswer, ModelFailure},
    tool::ToolOutcome,
    turn::tests::{
        play::play,
        script::{calls, text},
        world::World,
    },
};

type Answers = Vec<Result<ModelAnswer, ModelFailure>>;

/// A session in which nothing is ever compacted.
fn uncompacted(answers: Answers) -> World {
    let shapers = json!({ "autoCompact": false, "maxMessages": 4_000_000 });
    let settings =
        json!({ "maxTurns": 100_000, "contextWindow": 1_000_000_000, "shapers": shapers });
    World::with(json!({ "ennead": settings }), answers)
}

/// One run of this many turns, each with one call and a result of this many characters.
pub(super) fn turns(world: impl FnOnce(Answers) -> World, n_turns: usize, n_chars: usize) -> Play {
    let mut answers: Vec<_> =
        (1..n_turns).map(|i| calls(&[&format!("c{i}:Read:f{i}.rs")])).collect();
    answers.push(text("done"));
    let mut world = world(answers);
    for i in 1..n_turns {
        let text = format!("{i} {}", "a line of text\n".repeat(n_chars / 15));
        world.outcomes.insert(format!("c{i}"), ToolOutcome::ok(text));
    }
    world.stands = false;
    world.keeps_requests = false;
    play(world)
}

/// A session that was opened this many times, for one short run each.
pub(super) fn resumes(n: usize) -> Play {
    let answers = (0..n).flat_map(|i| [calls(&[&format!("c{i}:Read:f{i}.rs")]), text("done")]);
    let mut world = uncompacted(answers.collect());
    world.stands = false;
    world.keeps_requests = false;
    let mut play = Play::new(world);
    for i in 0..n {
        if i != 0 {
            play.reopen();
        }
        play.run(&format!("prompt {i}"));
    }
    play
}

fn write(directory: &std::path::Path, name: &str, play: &Play) {
    let stored = directory.join(name).join("stored");
    std::fs::create_dir_all(&stored).unwrap();
    for (digest, text) in &play.stored {
        std::fs::write(stored.join(format!("{digest}.txt")), text).unwrap();
    }
    std::fs::write(directory.join(format!("{name}.jsonl")), play.bytes()).unwrap();
}

/// Not a check: writes files. See the head of this file.
#[test]
#[ignore = "writes some hundred megabytes"]
fn long_transcripts_are_written() {
    let directory = std::env::var_os("ENNEAD_LONG_TRANSCRIPTS").expect("where to?");
    let directory = std::path::Path::new(&directory);
    let usual = |answers| World::with(json!({ "ennead": { "maxTurns": 100_000 } }), answers);
    for n in [2_500, 10_000] {
        write(directory, &format!("turns-{n}"), &turns(uncompacted, n, 60));
        write(directory, &format!("compacted-{n}"), &turns(usual, n, 60));
    }
    write(directory, "large", &turns(usual, 2_500, 40_000));
    write(directory, "resumes-1000", &resumes(1_000));
}
