//! Where the next line goes: the end of the chain, and whether the file ends in the middle of a
//! line. Read from the end, so that a long file costs no more than a short one.

use std::collections::BTreeSet;

use super::lines::is_ended_by_returns;
use crate::{
    digest::Digest,
    transcript::{
        read::read_line,
        seal::{Head, OpenLines, Seal, seal_of},
    },
};

/// The end of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    /// Bytes of the file.
    pub offset: u64,
    /// The end of the chain.
    pub head: Head,
    /// Lines at the end that no hash covers.
    pub open: Option<OpenLines>,
    /// The file does not end with a newline: the next write begins with one.
    pub needs_newline: bool,
    /// The file ends with bytes that are not a whole line. They stay, and a `repair` record names
    /// them.
    pub torn: Option<Torn>,
    /// No line with a hash was among the bytes looked at, although there were others: look at more.
    pub headless: bool,
}

impl Tail {
    /// Completes the end of bytes that follow a known end of the chain, which supplies what they do not hold.
    #[must_use]
    pub fn after(mut self, known: Head, open: Option<&OpenLines>) -> Self {
        let has_hash = self.head.hash != Digest::default();
        if !has_hash {
            self.head.seq = self.head.seq.max(known.seq);
            self.head.hash = known.hash;
            self.open = match (open, self.open) {
                (Some(first), Some(rest)) => {
                    let bytes = [&*first.bytes, &*rest.bytes].concat();
                    Some(OpenLines { bytes, link: rest.link })
                }
                (first, rest) => rest.or(first.cloned()),
            };
        }
        self
    }
}

/// Bytes at the end of a file that are not a whole line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Torn {
    /// Offset in the file at which the bytes begin.
    pub offset: u64,
    /// Number of the bytes.
    pub length: u64,
    /// Digest of the bytes.
    pub digest: Digest,
}

/// Reads the end off the last bytes of a file, which begin at `from`, the start of a line.
pub fn tail(bytes: &[u8], from: u64) -> Tail {
    let offset = from + bytes.len() as u64;
    let (whole, last) = match memchr::memrchr(b'\n', bytes) {
        Some(at) => bytes.split_at(at + 1),
        None => bytes.split_at(0),
    };
    let is_whole = std::str::from_utf8(last).is_ok_and(|text| read_line(text).is_ok());
    let torn = (!last.is_empty() && !is_whole).then(|| Torn {
        offset: from + whole.len() as u64,
        length: last.len() as u64,
        digest: Digest::of(last),
    });
    let sealed = match last.strip_suffix(b"\r").unwrap_or(last) {
        // The last of several lines: its end is what a seal is read from.
        all if is_ended_by_returns(last) => seal_of(all).map(|it| (all, it)),
        _ if is_whole => seal_of(last).map(|it| (last, it)),
        _ => None,
    };
    let (head, open) = end_of(sealed.into_iter().chain(sealed_lines(whole)));
    Tail {
        offset,
        head,
        needs_newline: !last.is_empty(),
        torn,
        headless: head.hash == Digest::default() && (from != 0 || !whole.is_empty()),
        open,
    }
}

/// Returns the hashes with which the file of a sub-agent ends, and ended after each of its runs.
pub fn ends_of_runs(bytes: &[u8]) -> BTreeSet<Digest> {
    let is_end = |line: &[u8]| memchr::memmem::find(line, br#""kind":"run_end""#).is_some();
    let ends = sealed_lines(bytes).filter(|(line, _)| is_end(line));
    let ends = ends.filter_map(|(_, seal)| seal.hash());
    ends.chain([tail(bytes, 0).head.hash]).collect()
}

/// The end of the chain, of lines with their seals, the last one first.
fn end_of<'a>(lines: impl Iterator<Item = (&'a [u8], Seal)>) -> (Head, Option<OpenLines>) {
    let mut open: Vec<(&[u8], Seal)> = Vec::new();
    let mut sealed = Head::default();
    for (line, seal) in lines {
        if let Some(hash) = seal.hash() {
            sealed = Head { seq: seal.seq, hash };
            break;
        }
        open.push((line, seal));
    }
    let Some((_, last)) = open.first() else { return (sealed, None) };
    let (seq, link) = (last.seq, last.link);
    let bytes = open.iter().rev().flat_map(|(line, _)| [*line, b"\n"]).collect::<Vec<_>>().concat();
    (Head { seq, ..sealed }, Some(OpenLines { bytes, link }))
}

/// Lines of ours, the last one first.
fn sealed_lines(mut whole: &[u8]) -> impl Iterator<Item = (&[u8], Seal)> {
    std::iter::from_fn(move || {
        while let Some(line) = whole.strip_suffix(b"\n") {
            let start = memchr::memrchr(b'\n', line).map_or(0, |at| at + 1);
            // A line that was edited still has its place: what follows hangs on the hash it names.
            let line = &line[start..];
            whole = &whole[..start];
            // Somebody may have given all lines the line ends of another system.
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if let Some(seal) = seal_of(line) {
                return Some((line, seal));
            }
        }
        None
    })
}
