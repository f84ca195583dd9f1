//! Takes secrets out of a text that arrives in pieces.

use std::fmt;

use super::{
    Redactor,
    scan::{Hay, Scanner, SecretSpan},
};

/// A text of which pieces arrive. What it gives out, joined, is what [`Redactor::text`] makes of
/// the whole, wherever the cuts are.
///
/// It holds back no more than what may yet be part of a secret: a few bytes as a rule, and at most as
/// many as the longest secret has.
pub struct RedactionStream {
    redactor: Redactor,
    scanner: Scanner,
    held: Vec<u8>,
    base: usize,
    /// The two bytes in front of those that are held; 0 where there is none.
    before: [u8; 2],
    spans: Vec<SecretSpan>,
}

impl RedactionStream {
    pub(super) fn new(redactor: Redactor) -> Self {
        let (held, spans) = (Vec::new(), Vec::new());
        Self { redactor, scanner: Scanner::default(), held, base: 0, before: [0; 2], spans }
    }

    /// Takes the next piece and returns what can be shown by now.
    pub fn push(&mut self, text: &str) -> String {
        // Cuts are made between characters.
        String::from_utf8(self.push_bytes(text.as_bytes())).unwrap_or_default()
    }

    /// Takes the next bytes and returns those that can be shown by now.
    pub fn push_bytes(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        let hay = Hay { bytes: &self.held, base: self.base, before: self.before };
        let patterns = &self.redactor.patterns;
        self.scanner.run(patterns, hay, &mut self.spans);
        let decided = self.scanner.decided(patterns, hay);
        self.give(decided)
    }

    /// Ends the text and returns what was held back.
    pub fn finish(&mut self) -> String {
        String::from_utf8(self.finish_bytes()).unwrap_or_default()
    }

    /// Ends the stream as [`RedactionStream::finish`] does, for bytes of any kind.
    pub fn finish_bytes(&mut self) -> Vec<u8> {
        let hay = Hay { bytes: &self.held, base: self.base, before: self.before };
        self.scanner.finish(&self.redactor.patterns, hay, false, &mut self.spans);
        let rest = self.give(self.base + self.held.len());
        *self = Self::new(self.redactor.clone());
        rest
    }

    /// Returns whether something is held back.
    #[cfg(test)]
    pub(crate) fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// Gives out what is in front of `until`, with placeholders for the spans in it.
    fn give(&mut self, until: usize) -> Vec<u8> {
        let n_given = until - self.base;
        let (mut out, mut at) = (Vec::with_capacity(n_given), 0);
        for span in self.spans.drain(..) {
            let (start, end) = (span.start - self.base, span.end - self.base);
            out.extend_from_slice(self.held.get(at..start).unwrap_or_default());
            let secret = self.held.get(start..end).unwrap_or_default();
            out.extend_from_slice(
                self.redactor.placeholder(span.what, secret).to_string().as_bytes(),
            );
            at = end;
        }
        out.extend_from_slice(self.held.get(at..n_given).unwrap_or_default());
        let hay = Hay { bytes: &self.held, base: self.base, before: self.before };
        self.before = hay.last_two(n_given);
        self.held.drain(..n_given);
        self.base = until;
        out
    }
}

impl fmt::Debug for RedactionStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What is held may be a secret.
        write!(f, "Stream({} bytes held)", self.held.len())
    }
}
