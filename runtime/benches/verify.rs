//! How long checking a transcript takes, by its parts.
//!
//! `cargo bench -p ennead-runtime --bench verify -- FILE…` prints the seconds that each file takes to be
//! read, checked and walked again; the least of a few rounds. Transcripts of any length are written by the
//! ignored test `long_transcripts_are_written`.

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use ennead_runtime::{
    digest::Digest,
    transcript::{
        audit::{Evidence, verify_lines},
        lines::FileLines,
        replay::replay_lines,
    },
};

/// How often each file is checked.
const ROUNDS: usize = 3;

fn main() {
    // A run of all benchmarks names no file.
    for file in std::env::args().skip(1).filter(|it| !it.starts_with("--")) {
        match measure(Path::new(&file)) {
            Ok(line) => println!("{file}: {line}"),
            Err(why) => println!("{file}: {why}"),
        }
    }
}

fn measure(file: &Path) -> Result<String, String> {
    let bytes = fs::read(file).map_err(|it| it.to_string())?;
    let beside = file.with_extension("").join("stored");
    let stored = |digest: Digest| fs::read_to_string(beside.join(format!("{digest}.txt"))).ok();
    let evidence = Evidence {
        stored: &stored,
        sidechain: &|_| None,
        checkpoint: None,
        run_budget: &|_| None,
        also: &|_| Ok(()),
    };
    let mut best = [Duration::MAX; 3];
    let mut turns = 0;
    for _ in 0..ROUNDS {
        let (lines, read) = timed(|| FileLines::read(&bytes));
        let (verified, checked) = timed(|| verify_lines(&lines, &evidence));
        let (replayed, walked) = timed(|| replay_lines(&lines, &stored));
        verified.map_err(|it| it.to_string())?;
        turns = replayed.map_err(|it| it.to_string())?.turns;
        for (best, took) in best.iter_mut().zip([read, checked, walked]) {
            *best = took.min(*best);
        }
    }
    let [read, checked, walked] = best.map(|it| it.as_secs_f64());
    let megabytes = bytes.len() as f64 / 1e6;
    Ok(format!(
        "{megabytes:.1} MB, {turns} turns: read {read:.3} s, checked {checked:.3} s, walked again {walked:.3} s"
    ))
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    #[expect(clippy::disallowed_methods, reason = "a benchmark asks the machine")]
    let started = Instant::now();
    let result = work();
    (result, started.elapsed())
}
