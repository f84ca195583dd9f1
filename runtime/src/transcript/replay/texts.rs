//! Texts that lines name, inside the transcript or next to it.

use std::sync::Arc;

use super::ReplayError;
use crate::{
    digest::Digest,
    transcript::entry::{Record, RecordKind, Stored},
};

/// Texts next to a transcript, by digest.
pub type StoredTexts<'a> = &'a dyn Fn(Digest) -> Option<String>;

/// Returns what a run has after the system prompt.
pub(super) fn system_of(
    record: &Record,
    line: u64,
    stored: StoredTexts<'_>,
) -> Result<Option<Arc<str>>, ReplayError> {
    let RecordKind::RunStart { system: Some(system), .. } = &record.what else { return Ok(None) };
    text_of(system, line, stored).map(|it| Some(it.into()))
}

/// Returns a text inside or next to the transcript.
pub(super) fn text_of(
    text: &Stored,
    line: u64,
    stored: StoredTexts<'_>,
) -> Result<String, ReplayError> {
    match text {
        Stored::Text(text) => Ok(text.to_string()),
        Stored::At(digest) => stored(*digest)
            .filter(|it| Digest::of(it.as_bytes()) == *digest)
            .ok_or(ReplayError::NotStored { line, digest: *digest }),
        // The one that repeats a text does not ask for it.
        Stored::Again(digest) => Err(ReplayError::NotStored { line, digest: *digest }),
    }
}
