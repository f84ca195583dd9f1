//! What it costs to take secrets out of texts.
//!
//! `cargo bench -p ennead-runtime --bench redaction` prints megabytes a second for texts without
//! secrets, with many, and for texts made to be slow, each whole and as a stream of short deltas. The
//! best of many runs counts.

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::{
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

use ennead_runtime::redaction::{NumberSecrets, Patterns, Redactor, SecretValue, TABLE};

/// Bytes of a text.
const SIZE: usize = 256 << 10;

/// Bytes of a delta, as models send them.
const DELTA: usize = 12;

/// How often each is measured.
const TIMES: usize = 40;

#[derive(Debug)]
struct OneNumber;

impl NumberSecrets for OneNumber {
    fn number(&self, _: &'static str, _: &[u8]) -> Option<u32> {
        Some(1)
    }
}

fn main() {
    let value = |n: usize| SecretValue {
        is_credential: false,
        value: format!("value-{n}-of-20-{}", n * 7919),
    };
    let patterns =
        measured("building the patterns, 20 values", || Patterns::new((0..20).map(value)));
    let redactor = Redactor::new(Arc::new(patterns), Arc::new(OneNumber));
    let token = format!("gh{}", "p_abcdefghijklmnopqrstuvwxyz0123456789");
    let code = include_str!("../src/redaction/scan.rs");
    let lock = include_str!("../../Cargo.lock");
    let dense = format!("token {token}\n");
    let anchors: Vec<&str> = TABLE.iter().flat_map(|it| it.anchors).copied().collect();
    let anchors = anchors.concat();
    for (name, unit) in [
        ("code", code),
        ("a lock file", lock),
        ("a secret in every line", &dense),
        ("beginnings of all shapes", &anchors),
        ("beginnings of one shape", "https://a:b"),
        ("one token without end", "eyJeyJeyJ."),
    ] {
        let text: String = unit.chars().cycle().take(SIZE).collect();
        speed(name, &text, || redactor.text(&text).len());
        speed("  as JSON", &text, || redactor.json(&text).len());
        speed("  in deltas", &text, || {
            let mut stream = redactor.stream();
            let pieces = text.as_bytes().chunks(DELTA);
            pieces.map(|it| stream.push_bytes(it).len()).sum::<usize>()
                + stream.finish_bytes().len()
        });
    }
}

/// Prints megabytes a second.
fn speed(name: &str, text: &str, work: impl Fn() -> usize) {
    let best = (0..TIMES).map(|_| timed(&work).0).min().unwrap_or_default();
    println!("{name}: {:.0} MB/s", text.len() as f64 / best.as_secs_f64() / 1e6);
}

/// Prints how long something takes, and returns it.
fn measured<T>(name: &str, work: impl Fn() -> T) -> T {
    let best = (0..TIMES).map(|_| timed(&work).0).min().unwrap_or_default();
    println!("{name}: {best:?}");
    work()
}

fn timed<T>(work: &impl Fn() -> T) -> (Duration, T) {
    #[expect(clippy::disallowed_methods, reason = "a benchmark asks the machine")]
    let started = Instant::now();
    let done = black_box(work());
    (started.elapsed(), done)
}
