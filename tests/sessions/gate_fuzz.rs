//! The bodies of the fuzz targets, with a bounded number of random inputs: bytes, pieces of shell
//! commands in any order, and the commands of the permission cases with some of their bytes changed.
//!
//! `ENNEAD_FUZZ_SECONDS` makes it go on for so long, and print how many inputs there were and which took longest.

use std::{
    sync::LazyLock,
    time::{Duration, Instant},
};

use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};
use serde_json::Value;

mod bodies;
pub(crate) mod judged;

/// Pieces that commands and rules are made of.
const PIECES: [&str; 48] = [
    "npm test",
    "rm x",
    "git push",
    "ls",
    "cat .env",
    " ",
    "\n",
    ";",
    "&&",
    "|",
    "&",
    "(",
    ")",
    "{",
    "}",
    "$(",
    "`",
    "\"",
    "'",
    "\\",
    "$",
    "${x:-",
    "<<X\n",
    "X\n",
    "<<<",
    ">",
    "<",
    ">(",
    "if ",
    "then ",
    "fi",
    "for i in ",
    "do ",
    "done",
    "case a in ",
    "esac",
    "*",
    ":*",
    "#",
    "xargs ",
    "sh -c ",
    "| sh",
    "python3 -c ",
    "git -c alias.x=!",
    "find . -exec ",
    "env A=b ",
    "((",
    "]]",
];

fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let text = prop::collection::vec(prop::sample::select(&PIECES[..]), 0..24);
    (any::<u8>(), text).prop_map(|(first, text)| {
        let mut data = vec![first];
        data.extend(text.concat().bytes());
        data
    })
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..200)
}

/// The commands of the permission cases.
static CASES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let lines = include_str!("../cases/bash_permissions.jsonl").lines();
    let cases = lines.map(|it| serde_json::from_str::<Value>(it).unwrap());
    cases.map(|it| it["input"]["command"].as_str().unwrap().to_owned()).collect()
});

/// What is done to the bytes of a command.
#[derive(Clone, Debug)]
enum Change {
    Drop(usize, usize),
    Repeat(usize, usize),
    Piece(usize, &'static str),
    Byte(usize, u8),
    Case(usize, String),
}

impl Change {
    fn make(&self, data: &mut Vec<u8>) {
        let n = data.len().max(1);
        let range =
            |at: usize, len: usize| (at % n).min(data.len())..(at % n + len).min(data.len());
        match self {
            Self::Drop(at, len) => drop(data.drain(range(*at, *len))),
            Self::Repeat(at, len) => {
                let piece = data[range(*at, *len)].repeat(3);
                insert(data, *at, &piece);
            }
            Self::Piece(at, piece) => insert(data, *at, piece.as_bytes()),
            Self::Byte(at, byte) => insert(data, *at, &[*byte]),
            Self::Case(at, case) => insert(data, *at, case.as_bytes()),
        }
    }
}

fn insert(data: &mut Vec<u8>, at: usize, piece: &[u8]) {
    let at = at % (data.len() + 1);
    data.splice(at..at, piece.iter().copied());
}

fn changed_cases() -> impl Strategy<Value = Vec<u8>> {
    let case = || prop::sample::select(&CASES[..]);
    let at = any::<usize>;
    let change = prop_oneof![
        (at(), 1..16_usize).prop_map(|it| Change::Drop(it.0, it.1)),
        (at(), 1..64_usize).prop_map(|it| Change::Repeat(it.0, it.1)),
        (at(), prop::sample::select(&PIECES[..])).prop_map(|it| Change::Piece(it.0, it.1)),
        (at(), any::<u8>()).prop_map(|it| Change::Byte(it.0, it.1)),
        (at(), case()).prop_map(|it| Change::Case(it.0, it.1)),
    ];
    (any::<u8>(), case(), prop::collection::vec(change, 0..8)).prop_map(|(first, case, changes)| {
        let mut data = case.into_bytes();
        changes.iter().for_each(|it| it.make(&mut data));
        data.insert(0, first);
        data
    })
}

fn inputs() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![3 => changed_cases(), 3 => pieces(), 1 => bytes()]
}

/// How long the bodies are to be tried, if longer than usual.
fn asked_time() -> Option<Duration> {
    let seconds = std::env::var("ENNEAD_FUZZ_SECONDS").ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// Tries a body for the time that is asked for.
#[expect(clippy::print_stdout, reason = "the counts are worth knowing")]
fn try_for(time: Duration, name: &str, body: fn(&[u8])) {
    let mut runner = TestRunner::default();
    let all = inputs();
    let started = Instant::now();
    let (mut n_inputs, mut slowest) = (0_u64, (Duration::ZERO, Vec::new()));
    while started.elapsed() < time {
        let data = all.new_tree(&mut runner).unwrap().current();
        let from = Instant::now();
        body(&data);
        n_inputs += 1;
        if slowest.0 < from.elapsed() {
            slowest = (from.elapsed(), data);
        }
    }
    let (longest, data) = slowest;
    println!(
        "{name}: {n_inputs} inputs, the longest {longest:?}, {} bytes: {:?}",
        data.len(),
        String::from_utf8_lossy(&data)
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    // REQ: PRM-8
    #[test]
    fn any_text_is_judged_as_a_command(data in inputs()) {
        bodies::shell_command(&data);
    }

    // REQ: PRM-8
    #[test]
    fn any_text_as_a_rule_loosens_and_tightens_one_way_only(data in inputs()) {
        bodies::permission_rules(&data);
    }
}

// REQ: PRM-8
#[test]
fn every_command_of_the_cases_is_judged_and_more_for_as_long_as_is_asked() {
    for case in CASES.iter() {
        bodies::shell_command(format!("\u{1}{case}").as_bytes());
    }
    if let Some(time) = asked_time() {
        try_for(time / 2, "commands", bodies::shell_command);
        try_for(time / 2, "rules", bodies::permission_rules);
    }
}
