//! Records and messages as they were before secrets were taken out of them.

use std::{borrow::Cow, collections::BTreeMap};

use super::{LineRef, own_lines};
use crate::transcript::{
    lines::FileLines,
    read::{Entry, read_line},
    restore::Restorations,
};

/// What was restored of a file, by the place of the line and of the record on it.
#[derive(Default)]
pub(in crate::transcript::replay) struct RestoredRecords(
    BTreeMap<(usize, usize), (Entry, Vec<u8>)>,
);

impl RestoredRecords {
    /// Restores all of a file that can be. What does not read as what it was stays as it is written.
    pub(in crate::transcript::replay) fn of(file: &FileLines<'_>, known: &Restorations) -> Self {
        let mut restored = Self::default();
        if known.is_empty() {
            return restored;
        }
        let mut last_seq = 0;
        for (place, line) in file.iter().enumerate() {
            let Some(seal) = line.read.as_ref().and_then(|it| it.seal) else { continue };
            // A line that is there a thousand times is not made as long a thousand times.
            if seal.seq <= last_seq {
                continue;
            }
            last_seq = seal.seq;
            for (nth, (held, body)) in own_lines(line).into_iter().flatten().enumerate() {
                let Some(mut text) = known.record(seal.seq, nth, &body) else { continue };
                text.push('}');
                let Some(entry) = read_as(held, &text) else { continue };
                text.pop();
                restored.0.insert((place, nth), (entry, text.into_bytes()));
            }
        }
        restored
    }

    /// Returns the number of records and messages that were restored.
    pub(in crate::transcript::replay) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns what a record or message was, if it is another one than is written.
    pub(super) fn at(&self, place: usize, nth: usize) -> Option<(LineRef<'_>, Cow<'_, [u8]>)> {
        let (entry, body) = self.0.get(&(place, nth))?;
        let held = match entry {
            Entry::Conversation { line, .. } => LineRef::Conversation(line),
            Entry::Harness(records) => LineRef::Harness(records.first()?),
            Entry::Other { .. } => return None,
        };
        Some((held, Cow::Borrowed(body)))
    }
}

/// Reads a line that is to hold the same as another one.
fn read_as(written: LineRef<'_>, text: &str) -> Option<Entry> {
    match (read_line(text).ok()?.entry, written) {
        (it @ Entry::Conversation { .. }, LineRef::Conversation(_)) => Some(it),
        (Entry::Harness(mut records), LineRef::Harness(written)) if records.len() == 1 => {
            records[0].shares_line = written.shares_line;
            Some(Entry::Harness(records))
        }
        _ => None,
    }
}
