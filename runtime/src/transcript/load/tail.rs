//! Where the next line goes: the end of the chain, and whether the file ends in the middle of a
//! line. Read from the end, so that a long file costs no more than a short one.

use super::lines::is_ended_by_returns;
use crate::{
    digest::Digest,
    transcript::{
        codec::Head,
        read::{read_line, seal_of},
    },
};

/// The end of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    /// Bytes of the file.
    pub offset: u64,
    /// The end of the chain.
    pub head: Head,
    /// The file does not end with a newline: the next write begins with one.
    pub needs_newline: bool,
    /// The file ends with bytes that are no whole line. They stay, and a `repair` record names
    /// them.
    pub torn: Option<Torn>,
    /// No line of ours was among the bytes looked at, although there were others: look at more.
    pub headless: bool,
}

/// Bytes at the end of a file that are no whole line.
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
        all if is_ended_by_returns(last) => seal_of(all),
        _ if is_whole => seal_of(last),
        _ => None,
    };
    let sealed = sealed.or_else(|| last_seal(whole));
    Tail {
        offset,
        head: sealed.map_or_else(Head::default, |seal| Head { seq: seal.seq, hash: seal.hash }),
        needs_newline: !last.is_empty(),
        torn,
        headless: sealed.is_none() && (from != 0 || !whole.is_empty()),
    }
}

fn last_seal(mut whole: &[u8]) -> Option<crate::transcript::read::Seal> {
    while let Some(line) = whole.strip_suffix(b"\n") {
        let start = memchr::memrchr(b'\n', line).map_or(0, |at| at + 1);
        // A line that was edited still has its place: what follows hangs on the hash it names.
        let line = &line[start..];
        // Somebody may have given all lines the line ends of another system.
        if let Some(seal) = seal_of(line.strip_suffix(b"\r").unwrap_or(line)) {
            return Some(seal);
        }
        whole = &whole[..start];
    }
    None
}
