//! Writing lines: each is sealed when the next one begins, since records may still be joined to it.

use super::{HASH, Head, OpenLines, PREV, SEAL, SEQ, SUM, SealLink};
use crate::{
    digest::Digest,
    ids::RunId,
    json::number,
    message::MessageKind,
    time::Timestamp,
    transcript::{
        codec::{self, MAX_RECORD, joined},
        entry::{Line, LineFrame, Record, RecordKind},
    },
};

/// Bytes that have no hash at most, but for those of one line: as many as BLAKE3 hashes side by side.
const MAX_OPEN: usize = 8192;

/// Whether a line holds a hash, however many bytes are without one.
fn always_bears_hash(line: &Line) -> bool {
    match line {
        Line::Conversation(line) => line.message.kind == MessageKind::Prompt,
        Line::Harness(record) => record.turn == 0,
    }
}

/// Lines of one write, appended one after the other; [`finish`](Self::finish) ends the last one.
#[derive(Debug)]
#[must_use]
pub struct LineBatch<'a> {
    out: &'a mut Vec<u8>,
    /// Lines of earlier writes without a hash.
    open: &'a [u8],
    head: Head,
    link: SealLink,
    /// Where in `out` the lines without a hash begin.
    start: usize,
    /// The last line, while others may still be joined to it.
    unsealed: Option<UnsealedLine>,
}

/// A line at the end of a batch that is not sealed yet.
#[derive(Debug)]
struct UnsealedLine {
    /// Where in the buffer the line begins.
    start: usize,
    always_bears_hash: bool,
    /// What the next record must have in common with its first; `None` where nothing can be joined to it.
    first: Option<FirstRecord>,
    /// Records after the first.
    n_joined: usize,
}

/// The record that a line begins with, as far as records that are joined to the line must be like it.
#[derive(Debug)]
struct FirstRecord {
    at: Timestamp,
    run: Option<RunId>,
    turn: u32,
}

impl FirstRecord {
    /// Returns what a further record must share with the one that begins this line, so that it may be joined to it: time, run
    /// and turn. `None` where nothing may be joined: for a message, and for a record of no turn, whose line ends with a
    /// hash of its own.
    fn of(line: &Line) -> Option<Self> {
        let record = line.record().filter(|it| it.turn != 0)?;
        Some(Self { at: record.at, run: record.run.clone(), turn: record.turn })
    }

    fn is_of_same_turn(&self, record: &Record) -> bool {
        self.turn == record.turn && self.run == record.run
    }
}

impl<'a> LineBatch<'a> {
    /// Begins lines that go on from `head` and, where there are some, from lines without a hash; they are appended to
    /// `out`.
    pub fn new(head: Head, open: Option<&'a OpenLines>, out: &'a mut Vec<u8>) -> Self {
        let start = out.len();
        let link = open.map_or(SealLink::to_hash(head.hash), |it| it.link);
        let open = open.map_or(&[][..], |it| &it.bytes);
        Self { out, open, head, link, start, unsealed: None }
    }

    /// Appends a line, or joins a record to the line before it. `edit` may change what is added: it is given the buffer,
    /// the place at which the JSON object begins, whole and with its brace, and leaves one there, and the place
    /// at which its frame ends: the names and values in front are its kind, its time, its ids and the [`LineFrame`].
    /// A record that is too long then is shortened again.
    ///
    /// A `run_end` learns the last hash before it here, since only who seals knows it. Returns whether it shares the line
    /// of what was appended before it.
    pub fn push(
        &mut self,
        line: &Line,
        frame: &LineFrame,
        edit: impl Fn(&mut Vec<u8>, usize, usize),
    ) -> bool {
        if line.record().is_some_and(|it| self.join(it, &edit)) {
            return true;
        }
        self.seal();
        let start = self.out.len();
        let frame_end = match line {
            Line::Harness(record) if matches!(record.what, RecordKind::RunEnd { .. }) => {
                let mut record = record.clone();
                if let RecordKind::RunEnd { head: before, .. } = &mut record.what {
                    *before = Some(self.head.hash);
                }
                codec::encode(&Line::Harness(record), frame, self.out)
            }
            line => codec::encode(line, frame, self.out),
        };
        self.out.push(b'}');
        edit(self.out, start, frame_end);
        if let Line::Harness(_) = line
            && MAX_RECORD - SEAL < self.out.len() - start
            && let Ok(record) = serde_json::from_slice::<Record>(&self.out[start..])
        {
            self.out.truncate(start);
            codec::encode(&Line::Harness(Box::new(record)), frame, self.out);
        } else {
            self.out.pop();
        }
        self.unsealed = Some(UnsealedLine {
            start,
            always_bears_hash: always_bears_hash(line),
            first: FirstRecord::of(line),
            n_joined: 0,
        });
        false
    }

    /// Joins a record to the last line, if it is to share that and the line stays short.
    fn join(&mut self, record: &Record, edit: &impl Fn(&mut Vec<u8>, usize, usize)) -> bool {
        let Some(UnsealedLine { start, first: Some(first), n_joined, .. }) = &mut self.unsealed
        else {
            return false;
        };
        if !record.shares_line || !first.is_of_same_turn(record) {
            return false;
        }
        let end = self.out.len();
        joined::push_separator(*n_joined, self.out);
        let object = self.out.len();
        let fields = joined::push(record, first.at, self.out);
        self.out.push(b'}');
        edit(self.out, object, fields);
        // The bracket is still to come.
        let fits = self.out.len() - *start < MAX_RECORD - SEAL;
        if fits {
            *n_joined += 1;
        } else {
            self.out.truncate(end);
        }
        fits
    }

    /// Ends the last line.
    fn seal(&mut self) {
        let Some(UnsealedLine { start, always_bears_hash, n_joined, .. }) = self.unsealed.take()
        else {
            return;
        };
        if n_joined != 0 {
            self.out.push(b']');
        }
        self.head.seq += 1;
        self.out.extend_from_slice(SEQ);
        number(self.head.seq, self.out);
        self.out.extend_from_slice(PREV);
        self.out.extend_from_slice(&self.link.hex());
        self.out.push(b'"');
        let n_open = self.open.len() + self.out.len() - self.start;
        let is_sealed = always_bears_hash || MAX_OPEN <= n_open;
        if is_sealed {
            let before = &self.head.hash.0[..];
            let hash = Digest::of_parts(&[before, self.open, &self.out[self.start..]]);
            self.out.extend_from_slice(HASH);
            hash.push_hex(self.out);
            self.out.push(b'"');
            self.head.hash = hash;
        }
        self.link = SealLink::sum_of(&self.out[start..]);
        self.out.extend_from_slice(SUM);
        self.out.extend_from_slice(&self.link.hex());
        self.out.extend_from_slice(b"\"}\n");
        if is_sealed {
            self.link = SealLink::to_hash(self.head.hash);
            self.open = &[];
            self.start = self.out.len();
        }
    }

    /// Ends the last line. Returns the end of the chain, and the lines that no hash covers.
    pub fn finish(mut self) -> (Head, Option<OpenLines>) {
        self.seal();
        let bytes = [self.open, &self.out[self.start..]].concat();
        let open = (!bytes.is_empty()).then_some(OpenLines { bytes, link: self.link });
        (self.head, open)
    }
}

/// Returns whether a JSON object that [`LineBatch::push`] gives to be edited is a record, and not a message.
pub fn is_record(object: &[u8]) -> bool {
    object.starts_with(br#"{"type":"ennead""#) || object.starts_with(joined::BEGIN)
}
