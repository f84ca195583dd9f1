//! Histories of which everything may be wrong, made into requests and held to the rules of the
//! providers: none is refused, and no word of a user is lost.
//!
//! The rules are those of [`crate::support::provider_rules`], which share nothing with what builds requests;
//! [`breaches`] shows that they notice what providers refuse. 2,000 histories by default, as many as
//! `ENNEAD_HISTORIES` says otherwise; `cargo test -p ennead-command --test integration
//! hundred_thousand -- --ignored --nocapture` tries 100,000.

mod breaches;
mod mutate;
mod sound;

use std::{collections::BTreeMap, sync::Arc};

use ennead_runtime::{
    block::Block,
    entropy::EntropyStream,
    message::{Message, MessageKind, Messages, Role},
};
use serde_json::Value;

use crate::support::formats::{FORMATS, request};
use mutate::{MUTATIONS, Mutation};

/// Histories that are tried when nobody says how many.
const BY_DEFAULT: u64 = 2_000;

/// Draws, one after another.
struct Draws {
    stream: EntropyStream,
    n: u64,
}

impl Draws {
    fn new(seed: u64) -> Self {
        Self { stream: EntropyStream::from_seed(seed), n: 0 }
    }

    /// A number below this one, which must not be 0.
    fn below(&mut self, end: usize) -> usize {
        self.n += 1;
        (self.stream.draw("history", self.n) % end as u128) as usize
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// The words of users in a history: each prompt has one that nothing else has.
fn words(history: &Messages) -> Vec<String> {
    let prompts =
        history.iter().filter(|it| it.kind == MessageKind::Prompt && it.role == Role::User);
    let texts = prompts.flat_map(|it| it.blocks.iter().filter_map(Block::as_text));
    texts
        .flat_map(str::split_whitespace)
        .filter(|it| it.starts_with("word-"))
        .map(String::from)
        .collect()
}

/// Texts that the user says in a request, in order.
fn texts_of(body: &Value) -> String {
    match body {
        Value::String(text) => format!("{text} "),
        Value::Array(all) => all.iter().map(texts_of).collect(),
        Value::Object(map) => {
            let all = map.iter().filter(|(key, _)| !matches!(key.as_str(), "role" | "type"));
            all.map(|(_, it)| texts_of(it)).collect()
        }
        _ => String::new(),
    }
}

/// What is wrong with the requests of a history; nothing if all formats would take it.
fn wrong(history: &Messages) -> Option<String> {
    let words = words(history);
    FORMATS.iter().find_map(|(format, rules)| {
        let bytes = request(history, *format);
        let body: Value = match serde_json::from_slice(&bytes) {
            Ok(body) => body,
            Err(error) => return Some(format!("{format:?}: no JSON: {error}")),
        };
        if let Err(why) = rules(&body) {
            return Some(format!("{format:?}: refused: {why}\n{body}"));
        }
        let texts_of = texts_of(&body["messages"]) + &texts_of(&body["input"]);
        let mut rest = texts_of.as_str();
        for word in &words {
            let Some(at) = rest.find(&format!("{word} ")) else {
                return Some(format!("{format:?}: lost or out of order: {word}\n{body}"));
            };
            rest = &rest[at + word.len()..];
        }
        None
    })
}

/// What a trial came to.
#[derive(Default)]
struct Trial {
    histories: u64,
    words: u64,
    mutations: BTreeMap<&'static str, u64>,
    wrong: Vec<String>,
}

fn tried(n: u64) -> Trial {
    let mut trial = Trial::default();
    for seed in 0..n {
        let mut draws = Draws::new(seed);
        let mut history = sound::history(&mut draws);
        assert_eq!(wrong(&history), None, "seed {seed}, before anything is changed");
        let n_mutations = 1 + draws.below(6);
        let mut done: Vec<&str> = Vec::new();
        for _ in 0..n_mutations {
            let Mutation { name, change } = draws.one_of(&MUTATIONS);
            if change(&mut history, &mut draws).is_some() {
                done.push(name);
                *trial.mutations.entry(name).or_default() += 1;
            }
        }
        let next = format!("word-{seed}-next now");
        history.push(Arc::new(Message::prompt("next".into(), &next)));
        trial.histories += 1;
        trial.words += words(&history).len() as u64;
        if let Some(why) = wrong(&history) {
            trial.wrong.push(format!("seed {seed}, {done:?}: {why}"));
        }
    }
    trial
}

#[expect(clippy::print_stdout, reason = "the counts are worth knowing")]
#[track_caller]
fn check(n: u64) {
    let mut trial = tried(n);
    println!(
        "{} histories in {} formats, {} words of users, {} wrong",
        trial.histories,
        FORMATS.len(),
        trial.words,
        trial.wrong.len()
    );
    for (name, n) in &trial.mutations {
        println!("{n:>8} {name}");
    }
    assert_eq!(trial.mutations.len(), MUTATIONS.len(), "every mutation was tried");
    trial.wrong.truncate(5);
    assert!(trial.wrong.is_empty(), "{:#?}", trial.wrong);
}

// REQ: SHP-12, SES-7
#[test]
fn no_request_of_a_mutated_history_is_refused_and_no_word_of_a_user_is_lost() {
    let asked = std::env::var("ENNEAD_HISTORIES").ok().and_then(|it| it.parse().ok());
    check(asked.unwrap_or(BY_DEFAULT));
}

// REQ: SHP-12, SES-7
#[test]
#[ignore = "takes minutes"]
fn hundred_thousand_mutated_histories() {
    check(100_000);
}
