//! Records that share a line: those that a turn makes one after the other without waiting for anything.
//!
//! ```text
//! {"type":"ennead","kind":"turn_step","v":3,"at":…,"run":…,"turn":1,"number":1,…,
//!     "then":[{"kind":"turn_step","number":2,…},{"kind":"shapers_passed","at":…,…}],"seq":…}
//! ```
//!
//! What all of them have in common stands once. The first record is written as it would be on a line of its own;
//! the others have their kind, the time where it is another one, and their fields. A line of several records has at most
//! [`MAX_RECORD`] bytes, too: half of what a turn records is frame otherwise.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{MAX_RECORD, own_fields, record_frame};
use crate::{
    json::{key, number},
    time::Timestamp,
    transcript::entry::{Record, RecordKind},
};

/// Begins the records after the first. No record has a field of this name, and inside of a text its quotes are escaped.
const THEN: &[u8] = br#","then":["#;

/// What a record after the first begins with.
pub(in crate::transcript) const BEGIN: &[u8] = br#"{"kind":""#;

/// Where the next record goes on a line that has `n` records after its first.
pub(in crate::transcript) fn push_separator(n: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(if n == 0 { THEN } else { b"," });
}

/// Appends a record that shares the line of one of this time, without its closing brace. Returns where its fields begin.
pub(in crate::transcript) fn push(record: &Record, first: Timestamp, out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(BEGIN);
    out.extend_from_slice(record.what.kind().as_bytes());
    out.push(b'"');
    if record.at != first {
        key("at", out);
        number(record.at.0, out);
    }
    let start = out.len();
    own_fields(record, out);
    start
}

#[derive(Deserialize)]
struct JoinedRecord {
    at: Option<Timestamp>,
    #[serde(flatten)]
    what: RecordKind,
}

/// Reads the records that follow the first one of a line. `None` where one cannot be read, or the list is longer than a line
/// of ours.
pub(in crate::transcript) fn read(first: &Record, then: &RawValue) -> Option<Vec<Record>> {
    if MAX_RECORD < then.get().len() {
        return None;
    }
    let joined: Vec<JoinedRecord> = serde_json::from_str(then.get()).ok()?;
    let whole = |JoinedRecord { at, what }| Record {
        at: at.unwrap_or(first.at),
        run: first.run.clone(),
        turn: first.turn,
        what,
        shares_line: true,
    };
    Some(joined.into_iter().map(whole).collect())
}

/// Returns what each record would be on a line of its own, without the closing brace; `body` is a line of several before
/// it was sealed.
pub(in crate::transcript) fn split(body: &[u8], records: &[Record]) -> Vec<Vec<u8>> {
    #[derive(Deserialize)]
    struct RawRecords<'a>(#[serde(borrow)] Vec<&'a RawValue>);
    let Some(at) = memchr::memmem::find(body, THEN) else { return vec![body.to_vec()] };
    let (first, list) = (&body[..at], &body[at + THEN.len() - 1..]);
    let RawRecords(then) = serde_json::from_slice(list).unwrap_or(RawRecords(Vec::new()));
    let mut bodies = vec![first.to_vec()];
    bodies.extend(records.iter().skip(1).zip(then).map(|(record, raw)| {
        let mut frame = Vec::new();
        // As the writer has it, to find where the fields begin.
        let begun = push(record, records[0].at, &mut frame);
        let fields = raw.get().as_bytes().get(begun..).unwrap_or_default();
        frame.clear();
        record_frame(record, &mut frame);
        frame.extend_from_slice(fields.strip_suffix(b"}").unwrap_or(fields));
        frame
    }));
    bodies
}

#[cfg(test)]
mod tests;
