//! Transcripts of real runs, damaged line by line and letter by letter: the session takes its next
//! prompt, and what cannot be read is reported.

mod apply;
mod stories;
mod whole;

use std::sync::Arc;

use ennead::data::{Message, MessageKind};
use ennead_runtime::{
    block::Block,
    entropy::EntropyStream,
    message::Messages,
    time::Timestamp,
    transcript::load::{LoadAs, Loaded, load},
    turn::answer_lost_calls,
};
use serde_json::Value;

use crate::support::formats::{FORMATS, request};
use apply::{Damage, damages};

/// Letters between two that are changed; with `ENNEAD_DAMAGE_TRIAL=whole` every key has one changed.
const LETTER_STEP: usize = 6;

/// Whether the whole trial is asked for, which takes minutes.
fn is_whole_trial() -> bool {
    std::env::var("ENNEAD_DAMAGE_TRIAL").is_ok_and(|it| it == "whole")
}

/// What a session that goes on with this has said, with a new prompt after it.
fn resumed(loaded: &Loaded) -> Messages {
    let mut history = loaded.recorded.clone();
    let stream = EntropyStream::from_seed(1);
    let lost = answer_lost_calls(history.iter(), loaded.last.clone(), stream, Timestamp(1));
    let texts = lost.into_iter().flat_map(|it| it.updates);
    history.extend(texts.filter_map(|it| it.message().cloned()));
    let blocks = vec![Block::text("go on")];
    history.push(Arc::new(Message::user("new".into(), MessageKind::Prompt, blocks)));
    history
}

/// What a provider would refuse in the next request, in any format.
fn refused(history: &Messages) -> Option<String> {
    FORMATS.iter().find_map(|(format, rules)| {
        let body: Value = match serde_json::from_slice(&request(history, *format)) {
            Ok(body) => body,
            Err(error) => return Some(format!("{format:?}: {error}")),
        };
        rules(&body).err().map(|why| format!("{format:?}: {why}\n{body}"))
    })
}

/// Messages of the original that are not there as they were.
fn n_lost(original: &Messages, loaded: &Loaded) -> usize {
    let is_there = |it: &&Arc<Message>| {
        loaded
            .recorded
            .iter()
            .any(|kept| kept.id == it.id && kept.role == it.role && kept.blocks == it.blocks)
    };
    original.iter().filter(|it| !is_there(it)).count()
}

/// Whether the report names the place of the damage.
fn is_reported(loaded: &Loaded, damage: Damage) -> bool {
    loaded.report.iter().any(|it| it.line.is_some_and(|line| damage.is_noticed_at(line)))
}

// REQ: SES-7, SHP-12
#[tokio::test]
#[expect(clippy::print_stdout, reason = "the counts are worth knowing")]
async fn whatever_letter_or_line_is_damaged_the_next_request_is_acceptable_and_the_loss_reported() {
    let (mut n, mut n_with_loss, mut wrong) = (0_usize, 0_usize, Vec::new());
    for (name, bytes) in stories::all().await {
        let clean = load(&bytes, LoadAs::Session);
        assert_eq!(clean.report, [], "{name}");
        assert_eq!(refused(&resumed(&clean)), None, "{name}");
        let is_tried = |(i, it): &(usize, Damage)| {
            is_whole_trial() || !matches!(it, Damage::Letter(..)) || i % LETTER_STEP == 0
        };
        for (_, damage) in damages(&bytes).into_iter().enumerate().filter(is_tried) {
            let loaded = load(&damage.apply(&bytes), LoadAs::Session);
            let lost = n_lost(&clean.recorded, &loaded);
            (n, n_with_loss) = (n + 1, n_with_loss + usize::from(lost != 0));
            if lost != 0 && !is_reported(&loaded, damage) {
                let report = &loaded.report;
                wrong.push(format!("{name}, {damage:?}: {lost} messages dropped, {report:?}"));
            }
            if let Some(why) = refused(&resumed(&loaded)) {
                wrong.push(format!("{name}, {damage:?}: {why}"));
            }
        }
    }
    println!("{n} damaged transcripts, {n_with_loss} with a loss, {} wrong", wrong.len());
    assert!(900 < n, "{n}");
    wrong.truncate(10);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

// REQ: SES-7
#[tokio::test]
async fn lines_that_were_moved_are_taken_in_the_order_in_which_they_were_written() {
    for (name, bytes) in stories::all().await {
        let clean = load(&bytes, LoadAs::Session);
        let n_lines = bytes.iter().filter(|it| **it == b'\n').count();
        for at in 0..n_lines - 1 {
            let swap = Damage::Swap(at);
            let loaded = load(&swap.apply(&bytes), LoadAs::Session);
            assert_eq!(loaded.recorded, clean.recorded, "{name}, {at}");
            assert_eq!(loaded.used(), clean.used(), "{name}, {at}");
            assert!(is_reported(&loaded, swap), "{name}, {at}: {:?}", loaded.report);
        }
    }
}

/// The transcript with each of these letters changed.
fn with_letter(bytes: &[u8], line: usize, needle: &str) -> Vec<u8> {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let changed = |(at, it): (usize, &str)| {
        if at == line {
            assert!(it.contains(needle), "{it}");
            let (last, rest) = needle.split_at(needle.len() - 1);
            let other = if rest == "Z" { "Y" } else { "Z" };
            it.replacen(needle, &format!("{last}{other}"), 1)
        } else {
            it.to_owned()
        }
    };
    text.split_inclusive('\n').enumerate().map(changed).collect::<String>().into_bytes()
}

// REQ: SES-7
#[tokio::test]
async fn link_with_a_changed_letter_drops_nothing_before_it() {
    for (name, bytes) in stories::all().await {
        let clean = load(&bytes, LoadAs::Session);
        let text = String::from_utf8(bytes.clone()).unwrap();
        for (at, line) in text.lines().enumerate() {
            // The key, and the first letter of the value.
            let value = line.split_once(r#""parentUuid":""#).and_then(|it| it.1.get(..1));
            let Some(value) = value else { continue };
            for needle in [r#""parentUuid"#.to_owned(), format!(r#""parentUuid":"{value}"#)] {
                let loaded = load(&with_letter(&bytes, at, &needle), LoadAs::Session);
                assert_eq!(n_lost(&clean.recorded, &loaded), 0, "{name}, line {at}: {needle}");
                let named =
                    |it: &ennead_runtime::transcript::load::Report| it.line == Some(at as u64 + 1);
                assert!(loaded.report.iter().any(named), "{name}, {at}: {:?}", loaded.report);
            }
        }
    }
}
