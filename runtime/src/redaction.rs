//! Secrets are taken out of texts: keys, tokens and credentials in known shapes, and values of
//! configured variables.
//!
//! [`Patterns`] holds what is looked for: the [`TABLE`] of shapes and the values that a session knows.
//! [`Redactor`] replaces what is found by a placeholder, `[secret:github-token:1]`: the kind and a
//! number, the same for the same secret as long as the session lives. A placeholder leads back to
//! nothing, so one that somebody else wrote gains nothing either. [`RedactionStream`] does the same
//! for a text that arrives in pieces and holds back only what may yet be part of a secret.
//!
//! Texts are redacted where they enter a turn or a session as an input ([`inputs`]), so what is
//! recorded, replayed, shown and sent to the model is one text. What goes to disk and to listeners
//! passes through a [`Redactor`] once more, which finds what came another way: settings, commands of
//! hooks, words of errors.
//!
//! All work is linear in the bytes of the text, whatever they are. Placeholders are of no shape, so
//! it does no harm to redact a text twice.

mod automaton;
mod check;
mod class;
pub mod inputs;
mod json;
mod output;
mod placeholder;
mod prefilter;
mod rows;
mod scan;
mod sieve;
mod stream;
mod table;
mod vault_key;

use std::{borrow::Cow, fmt, sync::Arc};

use self::{automaton::Automaton, prefilter::Prefilter, scan::Scanner, sieve::Sieve};
use crate::ids::is_uuid_byte;

pub use json::placeholder_in_json;
pub use placeholder::{Placeholder, placeholders};
pub use stream::RedactionStream;
pub use table::{SecretRule, TABLE};
pub use vault_key::{NotAVaultKey, VaultKey, read_secret_key, secret_key_text};

/// Bytes that the value of a variable has at least. A shorter one could be any word of a text.
pub(crate) const MIN_VALUE: usize = 8;

/// Bytes of all values of variables that are looked for; further ones are left out. A key takes about
/// a hundred.
pub const MAX_VALUES: usize = 64 * 1024;

/// Kinds of values, as in placeholders.
const VALUE_KINDS: [&str; 2] = ["variable", "credential"];

/// A value that is a secret because somebody configured it so.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretValue {
    /// Whether it logs in to a model server; else it is the value of a variable.
    pub is_credential: bool,
    /// The text that is replaced wherever it occurs.
    pub value: String,
}

impl SecretValue {
    /// The kind that its placeholder names.
    fn kind(&self) -> &'static str {
        VALUE_KINDS[usize::from(self.is_credential)]
    }
}

/// What is looked for. Built once for all sessions with the same values.
pub struct Patterns {
    values: Vec<SecretValue>,
    automaton: Automaton,
    prefilter: Prefilter,
    sieve: Sieve,
    /// Whether a value holds what JSON escapes.
    has_escapes: bool,
    /// Whether a value has no bytes but such as UUIDs have.
    has_ids: bool,
}

impl Patterns {
    /// Makes the patterns of [`TABLE`] and of these values, those with fewer than `MIN_VALUE` bytes left out.
    pub fn new(values: impl IntoIterator<Item = SecretValue>) -> Self {
        let trimmed = values.into_iter().map(|it| {
            let value = it.value.trim().to_owned();
            SecretValue { value, ..it }
        });
        let mut values: Vec<_> = trimmed.filter(|it| MIN_VALUE <= it.value.len()).collect();
        values.sort();
        values.dedup_by(|later, earlier| later.value == earlier.value);
        let mut n_bytes = 0;
        values.retain(|it| {
            n_bytes += it.value.len();
            n_bytes <= MAX_VALUES
        });
        let (automaton, prefilter) = (Automaton::new(&values), Prefilter::new(&values));
        let sieve = Sieve::new(&values);
        let is_plain = |it: &SecretValue| {
            it.value.bytes().all(|it| it.is_ascii_graphic() && it != b'"' && it != b'\\')
        };
        let has_escapes = !values.iter().all(is_plain);
        let has_ids = values.iter().any(|it| it.value.bytes().all(is_uuid_byte));
        Self { values, automaton, prefilter, sieve, has_escapes, has_ids }
    }

    /// Returns whether a value may be an id, or a part of one: UUIDs are keys of some services.
    pub fn may_be_ids(&self) -> bool {
        self.has_ids
    }

    /// Returns the values that are looked for.
    pub fn values(&self) -> &[SecretValue] {
        &self.values
    }
}

impl Default for Patterns {
    fn default() -> Self {
        Self::new([])
    }
}

impl fmt::Debug for Patterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Patterns({} shapes, {} values)", TABLE.len(), self.values.len())
    }
}

/// Numbers secrets. One for a session and its sub-agents, so a placeholder means one secret.
pub trait NumberSecrets: Send + Sync + fmt::Debug {
    /// Returns the number of this secret among those of its kind, from 1; `None` when there are too many.
    fn number(&self, kind: &'static str, secret: &[u8]) -> Option<u32>;
}

/// Takes secrets out of texts. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Redactor {
    patterns: Arc<Patterns>,
    numbers: Arc<dyn NumberSecrets>,
}

#[doc(hidden)]
impl Redactor {
    /// Looks for these patterns.
    pub fn new(patterns: Arc<Patterns>, numbers: Arc<dyn NumberSecrets>) -> Self {
        Self { patterns, numbers }
    }

    /// Returns the patterns that it looks for.
    pub fn patterns(&self) -> &Arc<Patterns> {
        &self.patterns
    }

    /// Replaces the secrets in a text by placeholders.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.redacted(text, false)
    }

    /// Replaces the secrets in a text that was cut off. An end that a secret may begin with is taken out, too.
    pub fn cut_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let body = text.trim_end_matches(['.', '…', '"', ')']);
        match self.redacted(body, true) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(redacted) => Cow::Owned(redacted + &text[body.len()..]),
        }
    }

    /// Returns whether the text may hold a secret: what one begins with, or an escape that may hide one.
    pub fn may_find(&self, json: &[u8]) -> bool {
        self.patterns.sieve.holds_any(json) || self.may_hide(json)
    }

    /// Replaces the secrets of a text in place.
    pub fn in_place(&self, text: &mut String) {
        if let Cow::Owned(redacted) = self.text(text) {
            *text = redacted;
        }
    }

    /// Replaces the secrets in a text that is shared.
    pub(crate) fn shared(&self, text: &mut Arc<str>) {
        if let Cow::Owned(redacted) = self.text(text) {
            *text = redacted.into();
        }
    }

    /// Makes a redactor of a text that arrives in pieces.
    pub fn stream(&self) -> RedactionStream {
        RedactionStream::new(self.clone())
    }

    fn redacted<'a>(&self, text: &'a str, is_cut: bool) -> Cow<'a, str> {
        let bytes = text.as_bytes();
        // What the end cut off of a pattern is looked for as well where somebody cut the text.
        let is_without = if is_cut {
            self.patterns.prefilter.next(bytes, 0) == bytes.len()
        } else {
            !self.patterns.sieve.holds_any(bytes)
        };
        if is_without {
            return Cow::Borrowed(text);
        }
        let (mut scanner, mut spans) = (Scanner::default(), Vec::new());
        let hay = scan::Hay { bytes, base: 0, before: [0; 2] };
        scanner.run(&self.patterns, hay, &mut spans);
        scanner.finish(&self.patterns, hay, is_cut, &mut spans);
        if spans.is_empty() {
            return Cow::Borrowed(text);
        }
        let (mut out, mut at) = (String::with_capacity(text.len()), 0);
        for span in &spans {
            // Spans begin and end between characters.
            out.push_str(text.get(at..span.start).unwrap_or_default());
            let secret = bytes.get(span.start..span.end).unwrap_or_default();
            self.placeholder(span.what, secret).push_to(&mut out);
            at = span.end;
        }
        out.push_str(text.get(at..).unwrap_or_default());
        Cow::Owned(out)
    }

    fn placeholder(&self, what: scan::MatchKind, secret: &[u8]) -> Placeholder<'static> {
        let kind = match what {
            scan::MatchKind::Shape(rule) => TABLE[rule].kind,
            scan::MatchKind::Value(value) => self.patterns.values[value].kind(),
        };
        Placeholder { kind, number: self.numbers.number(kind, secret) }
    }
}

#[cfg(test)]
mod tests;
