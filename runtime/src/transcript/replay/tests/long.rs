//! Long transcripts, for what the length of one may cost.
//!
//! Nothing here measures time. The last test writes transcripts of `ENNEAD_LONG_TURNS` turns (2,500) to
//! the directory `ENNEAD_LONG_TRANSCRIPTS`, to time `ennead verify` with:
//!
//! ```text
//! cargo test -p ennead-runtime --lib --release long_transcripts_are_written -- --ignored
//! ```

use serde_json::json;

use super::*;
use crate::{
    step5_model_call::{ModelAnswer, ModelFailure},
    tool::ToolOutcome,
    transcript::{
        load::Loader,
        read::{Entry, read_line},
    },
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

/// How often the links of a session are followed that is loaded in front of each prompt.
fn n_walks(play: &Play) -> usize {
    let bytes = play.bytes();
    let mut loader = Loader::new(LoadAs::Session);
    for (number, line) in (1..).zip(String::from_utf8(bytes).unwrap().lines()) {
        let read = read_line(line).unwrap();
        let is_prompt = matches!(&read.entry, Entry::Conversation { line, .. }
            if line.message.kind == MessageKind::Prompt);
        if is_prompt {
            loader.recorded();
        }
        loader.take(number, &read, &mut Vec::new());
    }
    loader.n_walks
}

// REQ: SES-4
#[test]
fn each_line_of_a_session_that_was_resumed_often_is_loaded_once() {
    for n in [4, 16] {
        let play = resumes(n);
        assert_eq!(check(&play).turns, 2 * n as u64);
        // In front of the first line, and of the first run that others go on from.
        assert_eq!(n_walks(&play), 2, "{n} resumes");
    }
}

// REQ: SES-4
#[test]
fn long_run_in_which_nothing_is_compacted_is_walked_again() {
    assert_eq!(check(&turns(uncompacted, 120, 60)).turns, 120);
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
    let n_turns = std::env::var("ENNEAD_LONG_TURNS").map_or(2_500, |it| it.parse().unwrap());
    write(directory, "resumes", &resumes(n_turns / 2));
    write(directory, "uncompacted", &turns(uncompacted, n_turns, 60));
    write(directory, "compacted", &turns(usual, n_turns, 60));
    write(directory, "large", &turns(usual, n_turns, 40_000));
}
