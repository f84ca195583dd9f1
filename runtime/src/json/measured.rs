//! Texts that many records hold, with what is asked about them each time.

use std::sync::Arc;

use super::escaped_len;
use crate::digest::Digest;

/// A text with its digest and its length as JSON string, which are found once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MeasuredText {
    text: Arc<str>,
    digest: Digest,
    escaped_len: usize,
}

impl MeasuredText {
    /// Measures a text. Cost: three passes over it.
    pub(crate) fn new(text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        Self { digest: Digest::of(text.as_bytes()), escaped_len: escaped_len(&text), text }
    }

    /// Returns the text itself.
    pub(crate) fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// Returns the digest of the text.
    pub(crate) fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns how many bytes it takes as JSON string, without the quotes.
    pub(crate) fn escaped_len(&self) -> usize {
        self.escaped_len
    }
}
