//! Lines are linked, and a hash now and then covers them all.
//!
//! Built under `#[cfg(test)]` only.

use std::sync::Arc;

use super::*;
use crate::{
    block::Block,
    message::Message,
    message::MessageKind,
    time::Timestamp,
    tokens::Usage,
    transcript::{
        entry::{ConversationLine, Line, LineFrame, Record, RecordKind},
        load::tail,
    },
};

fn conversation(text: &str) -> Line {
    Line::Conversation(Box::new(ConversationLine {
        at: Timestamp(7),
        parent: None,
        message: Arc::new(Message::user("u".into(), MessageKind::Meta, vec![Block::text(text)])),
        answer: None,
        tool_result: None,
        boundary: None,
    }))
}

fn record(turn: u32, what: RecordKind) -> Line {
    Line::Harness(Box::new(Record {
        at: Timestamp(7),
        run: Some("r".into()),
        turn,
        what,
        shares_line: false,
    }))
}

fn alert(turn: u32) -> Line {
    record(turn, RecordKind::Alert { what: "x".into() })
}

fn write(
    lines: &[Line],
    head: Head,
    open: Option<&OpenLines>,
) -> (Vec<u8>, (Head, Option<OpenLines>)) {
    let mut out = Vec::new();
    let mut batch = LineBatch::new(head, open, &mut out);
    for line in lines {
        batch.push(line, &LineFrame::of_test(), |_, _, _| {});
    }
    let end = batch.finish();
    (out, end)
}

fn seals(bytes: &[u8]) -> Vec<Seal> {
    let lines = bytes.split(|it| *it == b'\n').filter(|it| !it.is_empty());
    lines.map(|it| seal_of(it).unwrap()).collect()
}

// REQ: SES-9
#[test]
fn lines_are_linked_and_the_record_of_no_turn_bears_the_hash() {
    let before = Head { seq: 4, hash: Digest::of(b"before") };
    let (bytes, (head, open)) =
        write(&[conversation("a"), conversation("b"), alert(0)], before, None);
    let seals = seals(&bytes);
    assert_eq!(seals.iter().map(|it| it.seq).collect::<Vec<_>>(), [5, 6, 7]);
    assert!(seals.iter().all(|it| it.intact));
    assert_eq!(seals[0].prev, SealLink::to_hash(before.hash));
    assert!(seals.windows(2).all(|it| it[1].prev == it[0].link));
    let hashes: Vec<Option<Digest>> = seals.iter().map(Seal::hash).collect();
    assert_eq!(hashes, [None, None, Some(head.hash)]);
    assert_eq!((head.seq, open), (7, None));
    assert_eq!(tail(&bytes, 0).head, head);
}

// REQ: SES-9, TRN-13
#[test]
fn how_lines_are_parted_into_writes_leaves_no_trace() {
    let long = "x".repeat(5000);
    let lines = [
        conversation("a"),
        alert(1),
        alert(0),
        conversation(&long),
        conversation(&long),
        conversation("b"),
        alert(2),
    ];
    let (whole, end) = write(&lines, Head::default(), None);
    assert_eq!(seals(&whole).iter().filter(|it| it.hash().is_some()).count(), 2);
    for cut in 0..=lines.len() {
        let (first, (head, open)) = write(&lines[..cut], Head::default(), None);
        let (second, second_end) = write(&lines[cut..], head, open.as_ref());
        assert_eq!([first.clone(), second].concat(), whole, "cut after {cut}");
        assert_eq!(second_end, end);
        // What is read off the file is what the writer knew.
        let found = tail(&first, 0);
        assert_eq!((found.head, &found.open), (head, &open));
        let rest = tail(&whole[first.len()..], first.len() as u64).after(head, open.as_ref());
        assert_eq!((rest.head, rest.open), end);
    }
}

// REQ: SES-5
#[test]
fn end_of_the_last_line_with_a_hash_is_found_whatever_follows() {
    let lines = [conversation("a"), alert(0), alert(1), alert(1)];
    let (bytes, _) = write(&lines, Head::default(), None);
    let ends: Vec<usize> = memchr::memchr_iter(b'\n', &bytes).map(|it| it + 1).collect();
    assert_eq!(end_of_last_hash(&bytes), ends[1]);
    assert_eq!(end_of_last_hash(&[&bytes[..], b"torn"].concat()), ends[1]);
    assert_eq!(end_of_last_hash(&bytes[..ends[1]]), ends[1]);
    for without in [&bytes[..ends[1] - 1], &bytes[..ends[0]], b"", b"\n\n{}\n"] {
        assert_eq!(end_of_last_hash(without), 0);
    }
}

// REQ: SES-9
#[test]
fn changed_byte_breaks_the_check_sum() {
    let (bytes, _) =
        write(&[conversation("hello"), conversation("you"), alert(0)], Head::default(), None);
    for line in bytes.split_inclusive(|it| *it == b'\n') {
        let line = line.strip_suffix(b"\n").unwrap();
        for at in 0..line.len() {
            let mut changed = line.to_vec();
            changed[at] ^= 1;
            assert!(seal_of(&changed).is_none_or(|seal| !seal.intact), "byte {at}");
        }
    }
}

// REQ: SES-9
#[test]
fn last_record_of_a_run_names_the_hash_before_it() {
    let end =
        RecordKind::RunEnd { reason: "x".into(), turns: 1, usage: Usage::default(), head: None };
    let before = Head { seq: 4, hash: Digest::of(b"before") };
    let (out, (head, _)) = write(&[record(0, end)], before, None);
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains(&format!(r#""head":"{}""#, before.hash)), "{text}");
    assert_eq!(head.seq, 5);
}
