//! Texts that are too long for a record lie next to the transcript under their digest.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    digest::Digest,
    json::{MeasuredText, escaped_len},
};

/// Bytes that a text may take inside a record, as JSON string.
const MAX_INLINE: usize = 1024;

/// The same for a record that holds but one text.
const MAX_ALONE: usize = 3 * 1024;

/// A text inside a record: short ones are there, long ones lie next to the transcript under their
/// digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stored {
    /// The text itself, at most 1 KiB.
    Text(Arc<str>),
    /// Digest of a stored text.
    At(Digest),
    /// Digest of the text that an earlier record of the run holds or names in the same place.
    Again(Digest),
}

/// A text that each turn records: whole the first time, then by its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeated {
    stored: Stored,
    digest: Digest,
}

impl Repeated {
    /// Computes the digest, once.
    pub fn new(stored: Stored) -> Self {
        Self { digest: stored.digest(), stored }
    }

    /// Takes the digest of a text that was measured before.
    pub(crate) fn measured(stored: Stored, text: &MeasuredText) -> Self {
        Self { stored, digest: text.digest() }
    }

    /// Returns the digest of the text.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns the text as it is in a record, given whether an earlier record of the run holds it.
    pub(crate) fn to_record(&self, is_known: bool) -> Stored {
        if is_known { Stored::Again(self.digest) } else { self.stored.clone() }
    }
}

/// A text to be kept next to the transcript before the line that names it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredText {
    /// Digest of the text, which names its file.
    pub digest: Digest,
    /// The text to be stored.
    pub text: Arc<str>,
    /// The folder that its file belongs to.
    pub place: TextFolder,
}

/// Where a stored text belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextFolder {
    /// `stored/`: what records refer to.
    Records,
    /// `tool-results/`: texts whose path the model has read.
    ToolResults,
}

impl StoredText {
    /// Makes a text under its own digest.
    pub fn new(text: impl Into<Arc<str>>, place: TextFolder) -> Self {
        let text = text.into();
        Self { digest: Digest::of(text.as_bytes()), text, place }
    }
}

impl Stored {
    /// Returns the digest, which names the text wherever it is.
    pub fn digest(&self) -> Digest {
        match self {
            Stored::Text(text) => Digest::of(text.as_bytes()),
            Stored::At(digest) | Stored::Again(digest) => *digest,
        }
    }

    /// Stores the text itself if it takes at most 1 KiB as JSON string; else its digest, and the text joins those to be
    /// stored.
    pub fn new(text: &str, stored_externally: &mut Vec<StoredText>) -> Self {
        Self::inline_up_to(MAX_INLINE, text, stored_externally)
    }

    /// Stores a text that was measured before, as [`Stored::new`] does.
    pub(crate) fn measured(text: &MeasuredText, stored_externally: &mut Vec<StoredText>) -> Self {
        Self::measured_up_to(MAX_INLINE, text, stored_externally)
    }

    /// Stores the one text of a record as [`Stored::new`] does: up to 3 KiB are in the record, which spares most
    /// sessions a file.
    pub(crate) fn in_record(text: &str, stored_externally: &mut Vec<StoredText>) -> Self {
        Self::inline_up_to(MAX_ALONE, text, stored_externally)
    }

    /// Returns the digest of the text, which joins those to be stored: for records that have no room.
    pub(crate) fn stored_externally(text: &str, stored_externally: &mut Vec<StoredText>) -> Self {
        let stored = StoredText::new(text, TextFolder::Records);
        let digest = stored.digest;
        stored_externally.push(stored);
        Self::At(digest)
    }

    /// Stores a text in a record that holds another one, for which [`Stored::new`] is called: together they take at most
    /// 2 KiB of it, as two of these may.
    pub(crate) fn next_to(
        other: &MeasuredText,
        text: &MeasuredText,
        stored_externally: &mut Vec<StoredText>,
    ) -> Self {
        // A longer one lies elsewhere.
        let taken = other.escaped_len().min(MAX_INLINE);
        Self::measured_up_to(2 * MAX_INLINE - taken, text, stored_externally)
    }

    fn measured_up_to(
        limit: usize,
        text: &MeasuredText,
        stored_externally: &mut Vec<StoredText>,
    ) -> Self {
        if text.escaped_len() <= limit {
            return Self::Text(Arc::clone(text.text()));
        }
        let (digest, place) = (text.digest(), TextFolder::Records);
        stored_externally.push(StoredText { digest, text: Arc::clone(text.text()), place });
        Self::At(digest)
    }

    fn inline_up_to(limit: usize, text: &str, stored_externally: &mut Vec<StoredText>) -> Self {
        if escaped_len(text) <= limit {
            return Self::Text(text.into());
        }
        Self::stored_externally(text, stored_externally)
    }
}

/// Cuts a text so that it takes at most this many bytes as JSON string. A cut is visible.
pub(crate) fn clip(text: &mut String, max_bytes: usize) {
    const MARK: char = '…';
    if escaped_len(text) <= max_bytes {
        return;
    }
    let mut left = max_bytes.saturating_sub(MARK.len_utf8());
    let fits = |(_, character): &(usize, char)| {
        let len = escaped_len(character.encode_utf8(&mut [0; 4]));
        left.checked_sub(len).map(|it| left = it).is_none()
    };
    if let Some((at, _)) = text.char_indices().find(fits) {
        text.truncate(at);
        text.push(MARK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_the_room_that_another_one_leaves() {
        let check = |other: usize, len: usize, is_inline: bool| {
            let [other_text, text] =
                [("y", other), ("x", len)].map(|it| MeasuredText::new(it.0.repeat(it.1)));
            let stored = Stored::next_to(&other_text, &text, &mut Vec::new());
            assert_eq!(stored.digest(), Digest::of(text.text().as_bytes()));
            assert_eq!(matches!(stored, Stored::Text(_)), is_inline, "{other} {len}");
        };
        check(0, 2048, true);
        check(0, 2049, false);
        check(100, 1948, true);
        check(100, 1949, false);
        // A longer one lies elsewhere, and a shorter record is one of the earlier rule.
        check(5000, 1024, true);
        check(5000, 1025, false);
    }

    #[test]
    fn text_stands_in_the_record_up_to_a_kibibyte() {
        let mut stored_externally = Vec::new();
        let short = "x".repeat(1024);
        assert_eq!(Stored::new(&short, &mut stored_externally), Stored::Text(short.into()));
        assert_eq!(stored_externally, []);
        let long = "x".repeat(1025);
        assert_eq!(
            Stored::new(&long, &mut stored_externally),
            Stored::At(Digest::of(long.as_bytes()))
        );
        assert_eq!(stored_externally, [StoredText::new(long, TextFolder::Records)]);
    }
}
