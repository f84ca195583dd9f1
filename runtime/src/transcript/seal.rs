//! The place of a line in the chain: how lines are sealed, and what of it is read off a line.
//!
//! Each line ends in its number, a link to the line before it and a check sum of its own bytes, which name the
//! line that was altered, removed or moved. Some lines also hold a hash, of the hash before it and of
//! all lines since, which holds the chain together:
//!
//! ```text
//! …,"seq":7,"prev":"61d4a8b0","sum":"0b7e55c2"}
//! …,"seq":8,"prev":"0b7e55c2","hash":"8f0c…32 digits","sum":"a94f0e77"}
//! …,"seq":9,"prev":"8f0c61d3","sum":"…"}
//! ```
//!
//! Which lines hold one follows from the lines alone and not from how they were written, so that the same
//! session leaves the same bytes: prompts and records of no turn, with which a run begins and ends, and the line with which
//! 8 KiB have no hash yet. That many are hashed at once: the eight chunks of a hash side by side, as wide registers
//! take them, cost less than one by one. Until then the check sums hold the lines.
//!
//! Records that a turn makes without waiting in between share a line (`codec/joined.rs`).
//!
//! Before version 2 every line held a hash, of its own bytes, and the whole hash of the line before:
//! `…,"seq":7,"prev":"…32 digits","hash":"…32 digits"}`. Both forms may follow one another in a file.

mod batch;

use std::fmt;

use crate::digest::{Digest, HEX};

pub use batch::{LineBatch, is_record};

/// Bytes that a seal adds at most: keys, a number of 20 digits, a link, a hash and a sum.
pub(super) const SEAL: usize = 128;

const SEQ: &[u8] = br#","seq":"#;
const PREV: &[u8] = br#","prev":""#;
const HASH: &[u8] = br#","hash":""#;
const SUM: &[u8] = br#","sum":""#;

/// The end of the chain: number of the last line, and the last hash. Zero before the first line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The number of the last line; the first line is 1.
    pub seq: u64,
    /// Hash of the last line that holds one.
    pub hash: Digest,
}

/// What a line says of the one before it: the check sum of that, or the beginning of its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SealLink(u32);

impl SealLink {
    /// Returns the link that a line after one with this hash names.
    pub fn to_hash(hash: Digest) -> Self {
        let [a, b, c, d, ..] = hash.0;
        Self(u32::from_be_bytes([a, b, c, d]))
    }

    fn sum_of(bytes: &[u8]) -> Self {
        Self(crc32fast::hash(bytes))
    }

    fn hex(self) -> [u8; 8] {
        let mut hex = [0; 8];
        for (digits, byte) in hex.as_chunks_mut().0.iter_mut().zip(self.0.to_be_bytes()) {
            *digits = HEX[usize::from(byte)];
        }
        hex
    }
}

impl fmt::Display for SealLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.hex()).unwrap_or_default())
    }
}

/// A line's place in the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seal {
    /// Sequence number of the record.
    pub seq: u64,
    /// The line before, as the line says.
    pub prev: SealLink,
    /// The link that the next line carries as `prev`.
    pub link: SealLink,
    /// How it is held in the chain of hashes.
    pub proof: Proof,
    /// Whether its bytes are those that were written, by its own hash or check sum.
    pub intact: bool,
}

impl Seal {
    /// Returns the hash that the line bears; `None` where that of a later line covers it.
    pub fn hash(&self) -> Option<Digest> {
        match self.proof {
            Proof::Line { hash, .. } | Proof::Lines { hash } => Some(hash),
            Proof::Open => None,
        }
    }
}

/// How a line is held in the chain of hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The line is sealed by itself, as before version 2.
    Line {
        /// Hash of the line before, as the line says.
        prev: Digest,
        /// Hash of its own bytes, as the line says.
        hash: Digest,
    },
    /// A later line seals it.
    Open,
    /// By its hash, which covers all lines since the last one with a hash.
    Lines {
        /// The hash as the line says.
        hash: Digest,
    },
}

/// Lines at the end of a file that no hash covers yet; the next one does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenLines {
    /// Their bytes, each line with a newline, lines of others left out.
    pub bytes: Vec<u8>,
    /// The link that the next line carries as `prev`.
    pub link: SealLink,
}

/// Returns the end of the last line with a hash, its newline included; 0 if no line has one. Bytes after the last newline
/// are not looked at. Work is linear in the bytes from that line on.
pub fn end_of_last_hash(lines: &[u8]) -> usize {
    let bears_hash = |end: &usize| {
        let begin = memchr::memrchr(b'\n', &lines[..*end]).map_or(0, |it| it + 1);
        seal_of(&lines[begin..*end]).is_some_and(|it| it.hash().is_some())
    };
    memchr::memrchr_iter(b'\n', lines).find(bears_hash).map_or(0, |it| it + 1)
}

/// Reads the place in the chain that a line names, from its end. `None` if it does not end like a line of ours. Does
/// not look at the rest of the line but to check it.
pub fn seal_of(line: &[u8]) -> Option<Seal> {
    split(line).map(|it| it.1)
}

/// Returns what was on the line before it was sealed, without the closing brace. `None` for lines of others.
pub fn body_of(line: &[u8]) -> Option<&[u8]> {
    split(line).map(|it| it.0)
}

/// Returns what the hash of a line covers of it; `None` where it bears none.
pub(super) fn hashed_part(line: &[u8]) -> Option<&[u8]> {
    let (rest, _) = split_sum(line.strip_suffix(b"\"}")?)?;
    Some(split_digest(rest.strip_suffix(b"\"")?, HASH)?.0)
}

fn split(line: &[u8]) -> Option<(&[u8], Seal)> {
    let ended = line.strip_suffix(b"\"}")?;
    let Some((rest, sum)) = split_sum(ended) else { return split_first_form(ended) };
    let quoted = rest.strip_suffix(b"\"")?;
    let (linked, proof) = match split_digest(quoted, HASH) {
        Some((before, hash)) => (before.strip_suffix(b"\"")?, Proof::Lines { hash }),
        None => (quoted, Proof::Open),
    };
    let (before, prev) = split_link(linked, PREV)?;
    let (body, seq) = split_seq(before)?;
    let intact = SealLink::sum_of(rest) == sum;
    let link = match proof {
        Proof::Lines { hash } => SealLink::to_hash(hash),
        _ => sum,
    };
    Some((body, Seal { seq, prev, link, proof, intact }))
}

/// Every line by itself, as before version 2.
fn split_first_form(ended: &[u8]) -> Option<(&[u8], Seal)> {
    let (rest, hash) = split_digest(ended, HASH)?;
    let (before, prev) = split_digest(rest.strip_suffix(b"\"")?, PREV)?;
    let (body, seq) = split_seq(before)?;
    let seal = Seal {
        seq,
        prev: SealLink::to_hash(prev),
        link: SealLink::to_hash(hash),
        proof: Proof::Line { prev, hash },
        intact: Digest::of(rest) == hash,
    };
    Some((body, seal))
}

fn split_seq(before: &[u8]) -> Option<(&[u8], u64)> {
    let n_digits = before.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (before, digits) = before.split_at(before.len() - n_digits);
    let seq = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some((before.strip_suffix(SEQ)?, seq))
}

fn split_sum(bytes: &[u8]) -> Option<(&[u8], SealLink)> {
    split_link(bytes, SUM)
}

fn split_link<'a>(bytes: &'a [u8], key: &[u8]) -> Option<(&'a [u8], SealLink)> {
    let (rest, digits) = bytes.split_at_checked(bytes.len().checked_sub(8)?)?;
    let rest = rest.strip_suffix(key)?;
    let link = SealLink(u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
    // No other spelling of the number is one that was written.
    (link.hex() == digits).then_some((rest, link))
}

fn split_digest<'a>(bytes: &'a [u8], key: &[u8]) -> Option<(&'a [u8], Digest)> {
    let (rest, digits) = bytes.split_at_checked(bytes.len().checked_sub(32)?)?;
    let rest = rest.strip_suffix(key)?;
    Some((rest, std::str::from_utf8(digits).ok()?.parse().ok()?))
}

#[cfg(test)]
mod tests;
