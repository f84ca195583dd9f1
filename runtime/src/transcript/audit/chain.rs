//! Lines whole, in their place, unchanged.

use super::{
    Verified, Violation, ViolationKind,
    forked::{self, Before},
};
use crate::{
    digest::Digest,
    transcript::{
        entry::{RecordKind, SkippedBytes},
        lines::FileLines,
        load::BYTE_ORDER_MARK,
        read::Entry,
        seal::{Head, Proof, Seal, SealLink, hashed_part, seal_of},
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

/// A line of ours with its number and the last hash before it.
pub(super) struct Sealed<'a> {
    pub(super) number: u64,
    pub(super) entry: &'a Entry,
    pub(super) prev: Digest,
}

/// The chain up to a line.
#[derive(Default)]
struct Chain<'a> {
    head: Head,
    link: Option<SealLink>,
    /// Lines since the last hash, each with its number.
    open: Vec<(u64, &'a [u8])>,
}

impl<'a> Chain<'a> {
    /// Goes on to the next line.
    fn take(&mut self, number: u64, line: &'a [u8], seal: &Seal) -> Result<(), Violation> {
        let wrong = |what| Violation { line: number, what };
        if !seal.intact {
            return Err(wrong(ViolationKind::Altered));
        }
        let expected = self.head.seq + 1;
        if seal.seq != expected {
            return Err(wrong(ViolationKind::OutOfSequence { expected, found: seal.seq }));
        }
        let last = self.link.unwrap_or(SealLink::to_hash(self.head.hash));
        let is_linked = match seal.proof {
            Proof::Line { prev, .. } => prev == self.head.hash && self.open.is_empty(),
            Proof::Open | Proof::Lines { .. } => seal.prev == last,
        };
        if !is_linked {
            return Err(wrong(ViolationKind::NotLinked));
        }
        if let Proof::Lines { hash } = seal.proof {
            let open = self.open.iter().flat_map(|it| [it.1, b"\n"]);
            let parts = std::iter::once(&self.head.hash.0[..]).chain(open);
            let parts: Vec<&[u8]> = parts.chain(hashed_part(line)).collect();
            if Digest::of_parts(&parts) != hash {
                let from = self.open.first().map_or(number, |it| it.0);
                let what = ViolationKind::AlteredWithSum { to: number };
                return Err(Violation { line: from, what });
            }
        }
        self.link = Some(seal.link);
        self.head.seq = seal.seq;
        match seal.hash() {
            Some(hash) => {
                self.head.hash = hash;
                self.open.clear();
            }
            None => self.open.push((number, line)),
        }
        Ok(())
    }
}

/// Checks the chain, and returns what is known before the first line of ours, and the lines of ours.
pub(super) fn check<'a>(
    file: &'a FileLines<'_>,
    checkpoint: Option<Head>,
    verified: &mut Verified,
) -> Result<(Before, Vec<Sealed<'a>>), Violation> {
    let mut before = Before::default();
    let mut lines = Vec::new();
    let mut chain = Chain::default();
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
            // After a line of ours a copy could represent a message that never was.
            let may_be_copy = chain.head == Head::default() && verified.foreign.is_empty();
            let is_copy = may_be_copy
                && forked::take(line.text(), &read.entry, &mut before).map_err(wrong)?;
            if !is_copy {
                foreign(&read.entry, number, verified).map_err(wrong)?;
            }
            continue;
        };
        let repair = match &read.entry {
            Entry::Harness(records) => records.iter().find_map(|it| match it.what {
                RecordKind::Repair(SkippedBytes { offset, digest, .. }) => Some((offset, digest)),
                _ => None,
            }),
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
        let prev = chain.head.hash;
        chain.take(number, line.bytes, &seal)?;
        if checkpoint.is_some_and(|it| it.seq == seal.seq && Some(it.hash) != seal.hash()) {
            return Err(wrong(ViolationKind::NotAsClosed));
        }
        if let Entry::Other { .. } = read.entry {
            return Err(wrong(ViolationKind::UnknownRecord));
        }
        lines.push(Sealed { number, entry: &read.entry, prev });
    }
    if let Some((line, ..)) = skipped {
        return Err(Violation { line, what: ViolationKind::NotALine });
    }
    if let Some(Head { seq, .. }) = checkpoint.filter(|it| chain.head.seq < it.seq) {
        let n_lines = file.bytes().iter().filter(|byte| **byte == b'\n').count() as u64;
        return Err(Violation { line: n_lines + 1, what: ViolationKind::CutOff { seq } });
    }
    verified.head = chain.head;
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

#[cfg(test)]
mod tests;
