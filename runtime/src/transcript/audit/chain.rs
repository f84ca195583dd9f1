//! Lines whole, in their place, unchanged.

use super::{
    Verified, Violation, ViolationKind,
    forked::{self, Before},
};
use crate::{
    digest::Digest,
    transcript::{
        codec::Head,
        entry::{Line, RecordKind},
        read::{Entry, read_line},
    },
};

/// Lines that other programs append behind our back.
const METADATA: [&str; 8] = [
    "custom-title",
    "ai-title",
    "tag",
    "summary",
    "last-prompt",
    "content-replacement",
    "file-history-snapshot",
    "permission-mode",
];

/// A line of ours with its number and the hash of the one before.
pub(super) struct Sealed {
    pub(super) number: u64,
    pub(super) line: Line,
    pub(super) prev: Digest,
}

pub(super) fn check(
    bytes: &[u8],
    checkpoint: Option<Head>,
    verified: &mut Verified,
) -> Result<(Before, Vec<Sealed>), Violation> {
    let mut before = Before::default();
    let mut lines = Vec::new();
    let mut head = Head::default();
    let mut skipped: Option<(u64, u64, Digest)> = None;
    let mut offset = 0;
    let mut number = 0;
    for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
        number += 1;
        let start = offset;
        offset += piece.len() as u64;
        let wrong = |what| Violation { line: number, what };
        let Some(line) = piece.strip_suffix(b"\n") else {
            return Err(wrong(ViolationKind::TornTail));
        };
        if line.trim_ascii().is_empty() {
            continue;
        }
        let text = std::str::from_utf8(line).ok();
        let Some((text, read)) = text.and_then(|text| Some((text, read_line(text).ok()?))) else {
            if skipped.is_some() {
                return Err(wrong(ViolationKind::NotALine));
            }
            skipped = Some((number, start, Digest::of(line)));
            continue;
        };
        let Some(seal) = read.seal else {
            // Behind a line of ours a copy could represent something that was never said.
            let entry = match head == Head::default() && verified.foreign.is_empty() {
                true => forked::take(text, read.entry, &mut before).map_err(wrong)?,
                false => Some(read.entry),
            };
            if let Some(entry) = entry {
                foreign(entry, number, verified).map_err(wrong)?;
            }
            continue;
        };
        let line = read.entry.into_line();
        let repair = match &line {
            Some(Line::Harness(record)) => match record.what {
                RecordKind::Repair { offset, digest, .. } => Some((offset, digest)),
                _ => None,
            },
            _ => None,
        };
        match (skipped.take(), repair) {
            (None, None) => {}
            (Some((_, at, digest)), Some(named)) if (at, digest) == named => {}
            (Some((line, ..)), None) => {
                return Err(Violation { line, what: ViolationKind::NotALine });
            }
            _ => return Err(wrong(ViolationKind::WrongRepair)),
        }
        if !seal.intact {
            return Err(wrong(ViolationKind::Altered));
        }
        if seal.seq != head.seq + 1 {
            return Err(wrong(ViolationKind::OutOfSequence {
                expected: head.seq + 1,
                found: seal.seq,
            }));
        }
        if seal.prev != head.hash {
            return Err(wrong(ViolationKind::NotLinked));
        }
        head = Head { seq: seal.seq, hash: seal.hash };
        if checkpoint.is_some_and(|it| it.seq == head.seq && it.hash != head.hash) {
            return Err(wrong(ViolationKind::NotAsClosed));
        }
        let Some(line) = line else { return Err(wrong(ViolationKind::UnknownRecord)) };
        lines.push(Sealed { number, line, prev: seal.prev });
    }
    if let Some((line, ..)) = skipped {
        return Err(Violation { line, what: ViolationKind::NotALine });
    }
    if let Some(Head { seq, .. }) = checkpoint.filter(|it| head.seq < it.seq) {
        return Err(Violation { line: number + 1, what: ViolationKind::CutOff { seq } });
    }
    verified.head = head;
    verified.forked = before.forked.clone();
    Ok((before, lines))
}

fn foreign(entry: Entry, number: u64, verified: &mut Verified) -> Result<(), ViolationKind> {
    let kind = match entry {
        Entry::Other { kind, .. } if METADATA.contains(&&*kind) => {
            verified.foreign.push((number, kind.into()));
            return Ok(());
        }
        Entry::Other { kind, .. } => kind.into(),
        Entry::Conversation { line, .. } => match line.message.role {
            crate::message::Role::Assistant => "assistant".to_owned(),
            crate::message::Role::User => "user".to_owned(),
            crate::message::Role::System => "system".to_owned(),
        },
        Entry::Harness(_) => "ennead".to_owned(),
    };
    Err(ViolationKind::ForeignLine { kind })
}
