//! What lines and stored texts were before secrets were taken out of them.
//!
//! [`SecretsTaken`] is made where lines are written, of what is on the file and what it was made of; it leaves the
//! process sealed only. [`Restorations`] are all of a transcript. Both go by lines and not by placeholders: a text may hold
//! a placeholder that came from outside, and records name texts by digests that change with them. A session that
//! is opened again reads what is on the file, so what is in front of an opening is not restored for it.

mod patch;

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use self::patch::TextPatch;
use super::{
    codec::{self, joined},
    entry::{Line, LineFrame, Record, RecordKind, StoredText},
    read::{Entry, read_line},
    seal::{body_of, seal_of},
};
use crate::digest::Digest;

/// The secrets that were taken out of the lines of one write, and of the texts that they name.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SecretsTaken {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lines: Vec<OfRecord>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    texts: Vec<OfText>,
}

/// What a record or message was before.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct OfRecord {
    /// The number of its line.
    seq: u64,
    /// Which of the records that share the line, from 0.
    nth: usize,
    /// Of what was written, as it is on a line of its own.
    written: Digest,
    patch: TextPatch,
}

/// What a stored text was before.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct OfText {
    original: Digest,
    written: Digest,
    patch: TextPatch,
}

// Neither shows what it holds: what is shown ends up in logs.
impl fmt::Debug for SecretsTaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretsTaken({} lines, {} texts)", self.lines.len(), self.texts.len())
    }
}

impl fmt::Debug for Restorations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Restorations({} lines, {} texts)", self.lines.len(), self.texts.len())
    }
}

impl SecretsTaken {
    /// Returns whether nothing was taken out.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.texts.is_empty()
    }

    /// Notes what was taken out of lines. `sealed` are these lines as they are on the file; with each it is given whether
    /// it shares the line of the one before. Each is encoded once more to be compared.
    pub fn note_lines(&mut self, sealed: &[u8], lines: &[(&Line, bool)], frame: &LineFrame) {
        let mut groups = lines.chunk_by(|_, (_, is_joined)| *is_joined);
        for written in sealed.split(|it| *it == b'\n') {
            let (Some(seal), Some(body)) = (seal_of(written), body_of(written)) else { continue };
            let Some(group) = groups.next() else { return };
            let bodies = own_bodies(written, body, group.len());
            for (nth, ((line, _), body)) in group.iter().zip(bodies).enumerate() {
                self.lines.extend(of_record(seal.seq, nth, line, &body, frame));
            }
        }
    }

    /// Notes what was taken out of a text before it was stored.
    pub fn note_text(&mut self, original: &StoredText, written: &StoredText) {
        if original.text != written.text {
            let patch = TextPatch::between(&written.text, &original.text);
            let (original, written) = (original.digest, written.digest);
            self.texts.push(OfText { original, written, patch });
        }
    }
}

/// What each record of a sealed line would be on a line of its own.
fn own_bodies(sealed: &[u8], body: &[u8], n_records: usize) -> Vec<Vec<u8>> {
    if n_records == 1 {
        return vec![body.to_vec()];
    }
    let text = std::str::from_utf8(sealed).unwrap_or_default();
    match read_line(text).map(|it| it.entry) {
        Ok(Entry::Harness(records)) => joined::split(body, &records),
        _ => Vec::new(),
    }
}

fn of_record(
    seq: u64,
    nth: usize,
    line: &Line,
    body: &[u8],
    frame: &LineFrame,
) -> Option<OfRecord> {
    let mut original = Vec::with_capacity(body.len());
    match line {
        // The hash that it names is known to the one who seals.
        Line::Harness(record) if matches!(record.what, RecordKind::RunEnd { .. }) => {
            let mut record = record.clone();
            if let RecordKind::RunEnd { head, .. } = &mut record.what {
                *head = head_of(body);
            }
            codec::encode(&Line::Harness(record), frame, &mut original);
        }
        line => drop(codec::encode(line, frame, &mut original)),
    }
    if original == body {
        return None;
    }
    let patch =
        TextPatch::between(std::str::from_utf8(body).ok()?, std::str::from_utf8(&original).ok()?);
    Some(OfRecord { seq, nth, written: Digest::of(body), patch })
}

/// The hash that a written `run_end` names.
fn head_of(body: &[u8]) -> Option<Digest> {
    let record: Record = serde_json::from_slice(&[body, b"}"].concat()).ok()?;
    if let RecordKind::RunEnd { head, .. } = record.what { head } else { None }
}

/// All that was taken out of a transcript, as far as it is known.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Restorations {
    lines: BTreeMap<(u64, usize, Digest), TextPatch>,
    /// By the digest of the text before, with that of what was written.
    texts: BTreeMap<Digest, Vec<(Digest, TextPatch)>>,
}

impl Restorations {
    /// Returns whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.texts.is_empty()
    }

    /// Returns what a record or message was before secrets were taken out of it, which is `written` on a line of its own;
    /// `None` where nothing is known to have been.
    pub(super) fn record(&self, seq: u64, nth: usize, written: &[u8]) -> Option<String> {
        // Most lines have none, and a digest is not for nothing.
        self.lines.range((seq, nth, Digest([0; 16]))..=(seq, nth, Digest([255; 16]))).next()?;
        let patch = self.lines.get(&(seq, nth, Digest::of(written)))?;
        patch.applied(std::str::from_utf8(written).ok()?)
    }

    /// Returns the text of this digest, made of what is stored in its place.
    pub(super) fn text(
        &self,
        digest: Digest,
        stored: &dyn Fn(Digest) -> Option<String>,
    ) -> Option<String> {
        let restored = |(written, patch): &(Digest, TextPatch)| {
            let written = stored(*written)?;
            patch.applied(&written).filter(|it| Digest::of(it.as_bytes()) == digest)
        };
        self.texts.get(&digest)?.iter().find_map(restored)
    }
}

impl Extend<SecretsTaken> for Restorations {
    fn extend<T: IntoIterator<Item = SecretsTaken>>(&mut self, all: T) {
        for taken in all {
            let lines = taken.lines.into_iter().map(|it| ((it.seq, it.nth, it.written), it.patch));
            self.lines.extend(lines);
            for it in taken.texts {
                self.texts.entry(it.original).or_default().push((it.written, it.patch));
            }
        }
    }
}

#[cfg(test)]
mod tests;
