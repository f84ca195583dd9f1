//! Texts as JSON strings.
//!
//! Alone because lines and requests are full of them, and nearly all are names, ids and codes that
//! need no escape: those are looked at eight bytes at a time and copied in one piece. The others, JSON
//! inside of JSON above all, are copied from one escape to the next.

use crate::digest::HEX;

/// Bytes that are looked at together.
const WORD: usize = 8;

/// `text` as a JSON string, quotes included.
pub fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    push_quoted(text, &mut quoted);
    quoted
}

/// What JSON is written to: a text, or the bytes of one.
pub(crate) trait Sink {
    /// Appends a text.
    fn add(&mut self, text: &str);
    /// Appends an ASCII character.
    fn add_ascii(&mut self, byte: u8);
}

impl Sink for String {
    #[inline]
    fn add(&mut self, text: &str) {
        self.push_str(text);
    }

    #[inline]
    fn add_ascii(&mut self, byte: u8) {
        self.push(char::from(byte));
    }
}

impl Sink for Vec<u8> {
    #[inline]
    fn add(&mut self, text: &str) {
        self.extend_from_slice(text.as_bytes());
    }

    #[inline]
    fn add_ascii(&mut self, byte: u8) {
        self.push(byte);
    }
}

/// Appends `text` as a JSON string, quotes included.
pub(crate) fn push_quoted(text: &str, out: &mut impl Sink) {
    out.add_ascii(b'"');
    if is_plain(text) {
        out.add(text);
    } else {
        push_escaped(text, out);
    }
    out.add_ascii(b'"');
}

/// A piece of JSON text.
pub(crate) enum Piece<'a> {
    /// As it is.
    Json(&'a str),
    /// To be quoted.
    Text(&'a str),
}

/// The pieces, joined in one allocation where nothing needs an escape.
pub(crate) fn join(pieces: &[Piece<'_>]) -> String {
    let len = |piece: &Piece<'_>| match piece {
        Piece::Json(json) => json.len(),
        Piece::Text(text) => text.len() + 2,
    };
    let mut joined = String::with_capacity(pieces.iter().map(len).sum());
    for piece in pieces {
        match piece {
            Piece::Json(json) => joined.push_str(json),
            Piece::Text(text) => push_quoted(text, &mut joined),
        }
    }
    joined
}

fn push_escaped(text: &str, out: &mut impl Sink) {
    let bytes = text.as_bytes();
    // What is to be copied begins at `run`, what was not looked at yet at `at`.
    let (mut run, mut at) = (0, 0);
    while let Some(n_plain) = first_escape(&bytes[at..]) {
        let escape = at + n_plain;
        out.add(&text[run..escape]);
        at = escape + 1;
        run = at;
        match bytes[escape] {
            8 => out.add("\\b"),
            9 => out.add("\\t"),
            10 => out.add("\\n"),
            12 => out.add("\\f"),
            13 => out.add("\\r"),
            coded @ 0..b' ' => {
                out.add("\\u00");
                out.add(std::str::from_utf8(&HEX[usize::from(coded)]).unwrap_or_default());
            }
            // A quote or a backslash is the first of what is copied behind its own backslash.
            _ => {
                out.add_ascii(b'\\');
                run = escape;
            }
        }
    }
    out.add(&text[run..]);
}

/// Bytes of the text as JSON string, without the quotes.
pub(crate) fn escaped_len(text: &str) -> usize {
    let is_coded = |byte| byte < b' ' && !matches!(byte, 8..=10 | 12 | 13);
    text.len() + count(text, needs_escape) + 4 * count(text, is_coded)
}

/// How many bytes are of a kind. Counts that fit into a byte are added many at once.
fn count(text: &str, is_of_kind: impl Fn(u8) -> bool) -> usize {
    let of = |bytes: &[u8]| bytes.iter().map(|byte| u8::from(is_of_kind(*byte))).sum::<u8>();
    text.as_bytes().chunks(255).map(|it| usize::from(of(it))).sum()
}

#[inline]
fn needs_escape(byte: u8) -> bool {
    byte < b' ' || matches!(byte, b'"' | b'\\')
}

/// Whether no byte needs an escape.
fn is_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    match bytes.last_chunk() {
        // The last word overlaps with the one before it.
        Some(last) => escapes(*last) == 0 && bytes.as_chunks().0.iter().all(|it| escapes(*it) == 0),
        None => !text.bytes().any(needs_escape),
    }
}

/// The place of the first byte that needs an escape.
fn first_escape(bytes: &[u8]) -> Option<usize> {
    let (words, rest) = bytes.as_chunks();
    for (i, word) in words.iter().enumerate() {
        let found = escapes(*word);
        if found != 0 {
            return Some(i * WORD + found.trailing_zeros() as usize / 8);
        }
    }
    let in_rest = rest.iter().position(|byte| needs_escape(*byte))?;
    Some(words.len() * WORD + in_rest)
}

/// The highest bit of bytes that need an escape. The lowest bit that is set is that of the first of
/// them; those above it may be set without need.
#[inline]
fn escapes(word: [u8; WORD]) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; WORD]);
    let word = u64::from_le_bytes(word);
    // A byte that is smaller than another borrows into its highest bit, which was not set.
    let smaller = |word: u64, than: u8| word.wrapping_sub(ONES * u64::from(than)) & !word;
    let quotes = smaller(word ^ (ONES * u64::from(b'"')), 1);
    let backslashes = smaller(word ^ (ONES * u64::from(b'\\')), 1);
    (quotes | backslashes | smaller(word, b' ')) & (ONES << 7)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str) {
        let expected = serde_json::Value::from(text).to_string();
        let mut pushed = Vec::new();
        push_quoted(text, &mut pushed);
        assert_eq!(quote(text), expected);
        assert_eq!(String::from_utf8(pushed).unwrap(), expected);
        assert_eq!(escaped_len(text) + 2, expected.len());
    }

    #[test]
    fn every_character_is_escaped_wherever_it_stands() {
        for character in ('\0'..'\u{100}').chain(['\u{2028}', '\u{1f600}']) {
            for n_before in 0..17 {
                for behind in ["", "#", "\"", "!]\u{1}plain, and more of it"] {
                    check(&format!("{}{character}{behind}", "x".repeat(n_before)));
                }
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_is_written_as_serde_writes_it(text in any::<String>()) {
            check(&text);
        }

        #[test]
        fn text_full_of_quotes_is_written_as_serde_writes_it(text in "[\"\\\\#!\\]\u{1}\u{1f}a é]{0,40}") {
            check(&text);
        }
    }
}
