//! Lines and texts that are written without their secrets, and what they were.

use std::{borrow::Cow, sync::Arc};

use proptest::prelude::*;

use super::*;
use crate::{
    message::Message,
    redaction::{NumberSecrets, Patterns, Redactor, SecretValue},
    time::Timestamp,
    tokens::{Tokens, Usage},
    transcript::{
        entry::{ConversationLine, PassedStage, TextFolder},
        seal::{Head, LineBatch, OpenLines},
    },
};

const TOKEN: &str = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
/// Of a variable; JSON escapes it.
const VALUE: &str = "correct \"horse\"";
/// What a tool printed that had been shown one.
const LITERAL: &str = "[secret:github-token:1]";

/// Gives every secret the same number, as another process would give it.
#[derive(Debug)]
struct OneNumber(u32);

impl NumberSecrets for OneNumber {
    fn number(&self, _: &'static str, _: &[u8]) -> Option<u32> {
        Some(self.0)
    }
}

fn redactor(number: u32) -> Redactor {
    let value = SecretValue { is_credential: false, value: VALUE.into() };
    Redactor::new(Arc::new(Patterns::new([value])), Arc::new(OneNumber(number)))
}

fn frame() -> LineFrame {
    LineFrame {
        session: "s".into(),
        agent: None,
        cwd: format!("/w/{TOKEN}").into(),
        git_branch: None,
        version: "0",
    }
}

fn record(turn: u32, what: RecordKind, shares_line: bool) -> Line {
    let run = Some("r".into());
    Line::Harness(Box::new(Record { at: Timestamp(7), run, turn, what, shares_line }))
}

fn passed(why: &str, shares_line: bool) -> Line {
    let stages = vec![PassedStage { stage: "snip".into(), why: Cow::Owned(why.to_owned()) }];
    record(1, RecordKind::ShapersPassed { tokens: Tokens(1), stages }, shares_line)
}

fn prompt(text: &str) -> Line {
    let message = Arc::new(Message::prompt("u".into(), text));
    Line::Conversation(Box::new(ConversationLine::of(Timestamp(7), None, message)))
}

fn run_end(reason: &str) -> Line {
    let end =
        RecordKind::RunEnd { reason: reason.into(), turns: 1, usage: Usage::default(), head: None };
    record(0, end, false)
}

/// A transcript that is written without secrets, and what was taken out of it.
#[derive(Default)]
struct Written {
    bytes: Vec<u8>,
    head: Head,
    open: Option<OpenLines>,
    known: Restorations,
    lines: Vec<Line>,
}

impl Written {
    /// Writes lines as one process does, in one write.
    fn write(&mut self, number: u32, lines: Vec<Line>) {
        let (redactor, mut out, mut appended) = (redactor(number), Vec::new(), Vec::new());
        let mut batch = LineBatch::new(self.head, self.open.as_ref(), &mut out);
        for line in &lines {
            let is_joined = batch.push(line, &frame(), |out, start, _| {
                let text = std::str::from_utf8(&out[start..]).unwrap();
                let redacted = redactor.json(text).into_owned();
                out.truncate(start);
                out.extend_from_slice(redacted.as_bytes());
            });
            appended.push((line, is_joined));
        }
        (self.head, self.open) = batch.finish();
        let mut taken = SecretsTaken::default();
        taken.note_lines(&out, &appended, &frame());
        // It leaves the process as JSON.
        let taken: SecretsTaken =
            serde_json::from_slice(&serde_json::to_vec(&taken).unwrap()).unwrap();
        self.known.extend([taken]);
        self.bytes.extend(out);
        self.lines.extend(lines);
    }

    /// Compares every line with what it was; returns how many were restored.
    #[track_caller]
    fn check(&self) -> usize {
        let text = std::str::from_utf8(&self.bytes).unwrap();
        let (mut lines, mut n_restored) = (self.lines.iter(), 0);
        for sealed in text.lines() {
            let seal = seal_of(sealed.as_bytes()).unwrap();
            let records = match read_line(sealed).unwrap().entry {
                Entry::Harness(records) => records,
                _ => Vec::new(),
            };
            let bodies = own_bodies(
                sealed.as_bytes(),
                body_of(sealed.as_bytes()).unwrap(),
                records.len().max(1),
            );
            for (nth, body) in bodies.iter().enumerate() {
                let restored = self.known.record(seal.seq, nth, body);
                n_restored += usize::from(restored.is_some());
                let restored = restored.map_or(body.clone(), String::into_bytes);
                let mut expected = Vec::new();
                let mut line = lines.next().unwrap().clone();
                if let Line::Harness(record) = &mut line
                    && let RecordKind::RunEnd { head, .. } = &mut record.what
                {
                    *head = head_of(body);
                    assert!(head.is_some());
                }
                codec::encode(&line, &frame(), &mut expected);
                assert_eq!(String::from_utf8(restored), String::from_utf8(expected));
            }
        }
        assert!(lines.next().is_none());
        n_restored
    }
}

// REQ: SES-8
#[test]
fn records_that_share_a_line_and_ends_of_runs_are_restored() {
    let mut written = Written::default();
    written.write(
        1,
        vec![
            prompt(&format!("{LITERAL} {TOKEN} {VALUE}")),
            passed("none", false),
            passed(TOKEN, true),
            passed(&format!("{LITERAL} {VALUE}"), true),
            run_end(TOKEN),
        ],
    );
    // The second one has no secret, not even in its frame, which only messages have.
    assert_eq!(written.check(), 4);
    let text = String::from_utf8(written.bytes.clone()).unwrap();
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(!text.contains(TOKEN) && !text.contains("horse"), "{text}");
    // The same with other numbers, as after a restart.
    written.write(2, vec![prompt(TOKEN)]);
    assert_eq!(written.check(), 5);
}

// REQ: SES-8
#[test]
fn record_that_is_shortened_is_restored_as_it_would_have_been_written() {
    let long = format!("{TOKEN} ").repeat(200);
    let mut written = Written::default();
    written.write(1, vec![passed(&long, false), run_end("completed")]);
    assert_eq!(written.check(), 1);
}

// REQ: SES-8
#[test]
fn what_is_known_of_another_line_is_not_used() {
    let mut written = Written::default();
    written.write(1, vec![prompt(TOKEN)]);
    let body = body_of(written.bytes.strip_suffix(b"\n").unwrap()).unwrap();
    assert!(written.known.record(1, 0, body).is_some());
    assert_eq!(written.known.record(2, 0, body), None);
    assert_eq!(written.known.record(1, 1, body), None);
    assert_eq!(written.known.record(1, 0, &[body, b" "].concat()), None);
}

// REQ: SES-8
#[test]
fn stored_text_is_restored_only_to_what_its_digest_names() {
    let text = |text: String| StoredText::new(text, TextFolder::Records);
    let (original, written) =
        (text(format!("{LITERAL} {TOKEN}")), text(format!("{LITERAL} {LITERAL}")));
    let (mut known, mut taken) = (Restorations::default(), SecretsTaken::default());
    taken.note_text(&original, &original);
    assert!(taken.is_empty());
    taken.note_text(&original, &written);
    known.extend([taken]);
    let restored = known.text(original.digest, &|_| Some(written.text.to_string()));
    assert_eq!(restored.as_deref(), Some(&*original.text));
    assert_eq!(known.text(original.digest, &|_| Some(format!("{} ", written.text))), None);
    assert_eq!(known.text(original.digest, &|_| None), None);
    assert_eq!(known.text(written.digest, &|_| Some(written.text.to_string())), None);
    assert!(!format!("{known:?}").contains(TOKEN));
}

fn line() -> impl Strategy<Value = Line> {
    let parts = [TOKEN, VALUE, LITERAL, "[secret:variable]", " ", "\n", "\\", "\"", "ä", "a"];
    let parts = prop::collection::vec(prop::sample::select(parts.to_vec()), 0..9);
    (parts, 0..4).prop_map(|(parts, kind)| match (parts.concat(), kind) {
        (text, 0) => prompt(&text),
        (text, 1) => run_end(&text),
        (text, 2) => passed(&text, false),
        (text, _) => passed(&text, true),
    })
}

proptest! {
    // REQ: SES-8
    #[test]
    fn all_lines_of_all_openings_are_restored(
        openings in prop::collection::vec(prop::collection::vec(line(), 1..6), 1..4)
    ) {
        let mut written = Written::default();
        for (number, lines) in (1..).zip(openings) {
            written.write(number, lines);
        }
        written.check();
    }
}
