//! Long transcripts, for what the length of one may cost.
//!
//! Nothing here measures time. The last test writes transcripts of `ENNEAD_LONG_TURNS` turns (2,500; the
//! one named `large` has 40 KB for each) to the directory `ENNEAD_LONG_TRANSCRIPTS`, to time `ennead verify`
//! with; docs/figures.md has the command.

use std::cell::Cell;

use serde_json::json;

use super::*;
use crate::{
    digest::Digest,
    step5_model_call::{ModelAnswer, ModelFailure, wire_format::WireFormat},
    tool::ToolOutcome,
    transcript::{
        audit::{Evidence, verify},
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

/// The same with a server of this format.
fn asked_in(format: WireFormat, answers: Answers) -> World {
    let mut world = uncompacted(answers);
    let facts = Arc::make_mut(&mut world.facts);
    facts.providers.iter_mut().for_each(|it| it.format = format);
    world
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
    world.prefix_stays = false;
    world.keeps_requests = false;
    play(world)
}

/// A session that was opened this many times, for one short run each.
pub(super) fn resumes(n: usize) -> Play {
    resumed_each(n, 1)
}

/// A session of this many short runs that is opened anew for one of every `each`.
fn resumed_each(n: usize, each: usize) -> Play {
    let answers = (0..n).flat_map(|i| [calls(&[&format!("c{i}:Read:f{i}.rs")]), text("done")]);
    let mut world = uncompacted(answers.collect());
    world.prefix_stays = false;
    world.keeps_requests = false;
    let mut play = Play::new(world);
    for i in 0..n {
        if i != 0 && i % each == 0 {
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

/// Looks at lines and at stored texts that a check takes, messages compiled for requests, and lines.
fn work(play: &Play) -> (u64, u64, u64, u64) {
    let n_stored = Cell::new(0);
    let stored = |digest: Digest| {
        n_stored.update(|it| it + 1);
        play.stored.get(&digest).cloned()
    };
    let bytes = play.bytes();
    let evidence = Evidence {
        stored: &stored,
        sidechain: &|_| None,
        checkpoint: None,
        run_budget: &|_| None,
        also: &|_| Ok(()),
    };
    verify(&bytes, &evidence).unwrap();
    let Replayed { looks, compiled, .. } = replay(&bytes, &stored).unwrap();
    (looks, n_stored.get(), compiled, play.lines.len() as u64)
}

// REQ: SES-9
#[test]
fn check_of_twice_as_many_turns_looks_at_twice_as_many_lines_and_texts() {
    // Nothing is cleared: sessions of which only the longer one comes under pressure do not compare.
    let shapers = json!({ "exemptTools": ["Read"] });
    let settings = json!({ "ennead": { "maxTurns": 100_000, "shapers": shapers } });
    let usual = |answers| World::with(settings.clone(), answers);
    let sessions: [(&str, &dyn Fn(usize) -> Play); 6] = [
        ("one run", &|n| turns(uncompacted, n, 60)),
        ("chat", &|n| turns(|it| asked_in(WireFormat::OpenAiChat, it), n, 60)),
        ("responses", &|n| turns(|it| asked_in(WireFormat::OpenAiResponses, it), n, 60)),
        ("stored texts", &|n| turns(usual, n, 9_000)),
        ("runs", &|n| resumed_each(n / 2, n)),
        ("resumes", &|n| resumes(n / 2)),
    ];
    for (name, session) in sessions {
        let (looks, stored, compiled, n_lines) = work(&session(60));
        let (more_looks, more_stored, more_compiled, n_more_lines) = work(&session(120));
        assert!(n_lines < n_more_lines && n_more_lines <= 2 * n_lines + 20, "{name}");
        assert!(looks <= 12 * n_lines, "{name}: {looks} looks at {n_lines} lines");
        assert!(more_looks <= 2 * looks + 200, "{name}: {looks} and {more_looks}");
        assert!(more_stored <= 2 * stored + 20, "{name}: {stored} and {more_stored} texts");
        // Whoever opens a session compiles what is there once.
        if name == "resumes" {
            continue;
        }
        assert!(compiled <= 3 * n_lines, "{name}: {compiled} messages, {n_lines} lines");
        assert!(more_compiled <= 2 * compiled + 20, "{name}: {compiled} and {more_compiled}");
    }
}

/// Not a check: prints how long it takes to read what was written.
#[test]
#[ignore = "reads some hundred megabytes, and measures time"]
#[expect(clippy::print_stdout, reason = "the figures are what it is for")]
#[expect(clippy::disallowed_methods, reason = "real time is what it is about")]
fn long_transcripts_are_timed() {
    let directory = std::env::var_os("ENNEAD_LONG_TRANSCRIPTS").expect("where from?");
    let directory = std::path::Path::new(&directory);
    for name in ["resumes", "uncompacted", "chat", "responses", "compacted", "large"] {
        let begun = std::time::Instant::now();
        let bytes = std::fs::read(directory.join(format!("{name}.jsonl"))).unwrap();
        let read = begun.elapsed();
        let stored = |digest: Digest| {
            let file = directory.join(name).join("stored").join(format!("{digest}.txt"));
            std::fs::read_to_string(file).ok()
        };
        let evidence = Evidence {
            stored: &stored,
            sidechain: &|_| None,
            checkpoint: None,
            run_budget: &|_| None,
            also: &|_| Ok(()),
        };
        let begun = std::time::Instant::now();
        let lines = FileLines::read(&bytes);
        let parsed = begun.elapsed();
        crate::transcript::audit::verify_lines(&lines, &evidence).unwrap();
        let audited = begun.elapsed();
        replay_lines(&lines, &stored).unwrap();
        let verified = begun.elapsed();
        let begun = std::time::Instant::now();
        let traced = crate::transcript::trace::render(&bytes).unwrap().len();
        let trace = begun.elapsed();
        let begun = std::time::Instant::now();
        let loaded = crate::transcript::load::load(&bytes, LoadAs::Session);
        let resume = begun.elapsed();
        println!(
            "{name}: {} bytes, read {read:?}; verify {verified:?} (lines {parsed:?}, audited {audited:?}); \
             trace {trace:?} ({traced} bytes); resume {resume:?} ({} messages)",
            bytes.len(),
            loaded.messages.len()
        );
    }
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
    // Nothing is cleared: sessions of which only the longer one comes under pressure do not compare.
    let shapers = json!({ "exemptTools": ["Read"] });
    let settings = json!({ "ennead": { "maxTurns": 100_000, "shapers": shapers } });
    let usual = |answers| World::with(settings.clone(), answers);
    let n_turns = std::env::var("ENNEAD_LONG_TURNS").map_or(2_500, |it| it.parse().unwrap());
    // Each time it is opened, all of it is read: as often as that is still linear in its length.
    write(directory, "resumes", &resumed_each(n_turns / 2, (n_turns / 200).max(1)));
    write(directory, "uncompacted", &turns(uncompacted, n_turns, 60));
    let (chat, responses) = (WireFormat::OpenAiChat, WireFormat::OpenAiResponses);
    write(directory, "chat", &turns(|it| asked_in(chat, it), n_turns, 60));
    write(directory, "responses", &turns(|it| asked_in(responses, it), n_turns, 60));
    write(directory, "compacted", &turns(usual, n_turns, 60));
    write(directory, "large", &turns(usual, n_turns, 40_000));
}
