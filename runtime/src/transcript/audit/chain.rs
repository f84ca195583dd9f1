//! Lines whole, in their place, unchanged.

use super::{
    Verified, Violation, ViolationKind,
    forked::{self, Before},
};
use crate::{
    digest::Digest,
    transcript::{
        codec::Head,
        entry::RecordKind,
        lines::FileLines,
        load::BYTE_ORDER_MARK,
        read::{Entry, seal_of},
    },
};

/// Lines that other programs append.
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
pub(super) struct Sealed<'a> {
    pub(super) number: u64,
    pub(super) entry: &'a Entry,
    pub(super) prev: Digest,
}

pub(super) fn check<'a>(
    file: &'a FileLines<'_>,
    checkpoint: Option<Head>,
    verified: &mut Verified,
) -> Result<(Before, Vec<Sealed<'a>>), Violation> {
    let mut before = Before::default();
    let mut lines = Vec::new();
    let mut head = Head::default();
    let mut skipped: Option<(u64, u64, Digest)> = None;
    for line in file.iter() {
        let number = line.number;
        let wrong = |what| Violation { line: number, what };
        if let Some(what) = foreign_ends(line.bytes) {
            return Err(wrong(what));
        }
        if line.bytes.strip_suffix(b"\r").is_some_and(|it| seal_of(it).is_some()) {
            let count = file.iter().filter(|it| it.bytes.ends_with(b"\r")).count() as u64;
            return Err(wrong(ViolationKind::CrlfLineEnds { count }));
        }
        if !line.is_terminated {
            return Err(wrong(ViolationKind::TornTail));
        }
        let Some(read) = &line.read else {
            if skipped.is_some() {
                return Err(wrong(ViolationKind::NotALine));
            }
            skipped = Some((number, line.offset as u64, Digest::of(line.bytes)));
            continue;
        };
        let Some(seal) = read.seal else {
            // Behind a line of ours a copy could represent something that was never said.
            let may_be_copy = head == Head::default() && verified.foreign.is_empty();
            let is_copy = may_be_copy
                && forked::take(line.text(), &read.entry, &mut before).map_err(wrong)?;
            if !is_copy {
                foreign(&read.entry, number, verified).map_err(wrong)?;
            }
            continue;
        };
        let repair = match &read.entry {
            Entry::Harness(record) => match record.what {
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
        if let Entry::Other { .. } = read.entry {
            return Err(wrong(ViolationKind::UnknownRecord));
        }
        lines.push(Sealed { number, entry: &read.entry, prev: seal.prev });
    }
    if let Some((line, ..)) = skipped {
        return Err(Violation { line, what: ViolationKind::NotALine });
    }
    if let Some(Head { seq, .. }) = checkpoint.filter(|it| head.seq < it.seq) {
        let n_lines = file.bytes().iter().filter(|byte| **byte == b'\n').count() as u64;
        return Err(Violation { line: n_lines + 1, what: ViolationKind::CutOff { seq } });
    }
    verified.head = head;
    verified.forked = before.forked.clone();
    Ok((before, lines))
}

/// What an editor did to lines of ours.
fn foreign_ends(bytes: &[u8]) -> Option<ViolationKind> {
    if let Some(line) = bytes.strip_prefix(BYTE_ORDER_MARK)
        && seal_of(line.strip_suffix(b"\r").unwrap_or(line)).is_some()
    {
        return Some(ViolationKind::ByteOrderMark);
    }
    let ends = || memchr::memchr_iter(b'\r', bytes);
    let is_inside = |at: usize| seal_of(&bytes[..at]).is_some() && at + 1 < bytes.len();
    let count = ends().next().filter(|at| is_inside(*at)).map(|_| ends().count() as u64);
    count.map(|count| ViolationKind::CrLineEnds { count })
}

fn foreign(entry: &Entry, number: u64, verified: &mut Verified) -> Result<(), ViolationKind> {
    let kind = match entry {
        Entry::Other { kind, .. } if METADATA.contains(&&**kind) => {
            verified.foreign.push((number, kind.to_string()));
            return Ok(());
        }
        Entry::Other { kind, .. } => kind.to_string(),
        Entry::Conversation { line, .. } => match line.message.role {
            crate::message::Role::Assistant => "assistant".to_owned(),
            crate::message::Role::User => "user".to_owned(),
            crate::message::Role::System => "system".to_owned(),
        },
        Entry::Harness(_) => "ennead".to_owned(),
    };
    Err(ViolationKind::ForeignLine { kind })
}
