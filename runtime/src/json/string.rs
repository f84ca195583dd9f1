//! Texts as JSON strings.
//!
//! Lines and requests are full of strings, and nearly all are names, ids and codes that need no
//! escape: those are looked at many bytes at a time and copied in one piece. The others, JSON
//! inside of JSON above all, are copied from one escape to the next.

use crate::digest::HEX;

/// What follows the backslash, for each byte that needs one; zero for all others. A `u` begins
/// a code of four digits.
const LETTERS: [u8; 256] = {
    let mut letters = [0; 256];
    let mut byte = 0;
    while byte < 32 {
        letters[byte] = b'u';
        byte += 1;
    }
    letters[8] = b'b';
    letters[9] = b't';
    letters[10] = b'n';
    letters[12] = b'f';
    letters[13] = b'r';
    letters[b'"' as usize] = b'"';
    letters[b'\\' as usize] = b'\\';
    letters
};

/// Returns `text` as a JSON string, quotes included.
pub fn quote(text: &str) -> String {
    join(&[JsonPiece::Text(text)])
}

/// A piece of JSON text.
pub(crate) enum JsonPiece<'a> {
    /// JSON text that is copied unchanged.
    Json(&'a str),
    /// Text that is escaped and quoted.
    Text(&'a str),
}

/// Joins the pieces in one allocation where nothing needs an escape.
pub(crate) fn join(pieces: &[JsonPiece<'_>]) -> String {
    let len = |piece: &JsonPiece<'_>| match piece {
        JsonPiece::Json(json) => json.len(),
        JsonPiece::Text(text) => text.len() + 2,
    };
    let mut joined = Vec::with_capacity(pieces.iter().map(len).sum());
    for piece in pieces {
        match piece {
            JsonPiece::Json(json) => joined.extend_from_slice(json.as_bytes()),
            JsonPiece::Text(text) => push_quoted(text, &mut joined),
        }
    }
    // Texts with ASCII put between them are a text.
    String::from_utf8(joined).unwrap_or_default()
}

/// Appends `text` as a JSON string, quotes included.
pub(crate) fn push_quoted(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    if is_plain(text) {
        out.extend_from_slice(text.as_bytes());
    } else {
        push_escaped(text.as_bytes(), out);
    }
    out.push(b'"');
}

fn push_escaped(mut bytes: &[u8], out: &mut Vec<u8>) {
    // A quote or a backslash is copied with what follows its own backslash.
    let mut n_escaped = 0;
    let letter = |byte: &u8| LETTERS[usize::from(*byte)];
    while let Some(n_plain) = bytes[n_escaped..].iter().position(|byte| letter(byte) != 0) {
        let (plain, rest) = bytes.split_at(n_escaped + n_plain);
        out.extend_from_slice(plain);
        out.push(b'\\');
        (bytes, n_escaped) = match rest {
            [b'"' | b'\\', ..] => (rest, 1),
            [coded, rest @ ..] => {
                out.push(letter(coded));
                if letter(coded) == b'u' {
                    out.extend_from_slice(b"00");
                    out.extend_from_slice(&HEX[usize::from(*coded)]);
                }
                (rest, 0)
            }
            [] => (rest, 0),
        };
    }
    out.extend_from_slice(bytes);
}

/// Counts the bytes of the text as JSON string, without the quotes.
pub(crate) fn escaped_len(text: &str) -> usize {
    let is_coded = |byte| byte < b' ' && !matches!(byte, 8..=10 | 12 | 13);
    text.len() + count(text, needs_escape) + 4 * count(text, is_coded)
}

/// How many bytes are of a kind. Counts that fit into a byte are added many at once.
fn count(text: &str, is_of_kind: impl Fn(u8) -> bool) -> usize {
    let of = |bytes: &[u8]| bytes.iter().map(|byte| u8::from(is_of_kind(*byte))).sum::<u8>();
    text.as_bytes().chunks(255).map(|it| usize::from(of(it))).sum()
}

/// Without a branch, so that many bytes are looked at in one step.
#[inline]
fn needs_escape(byte: u8) -> bool {
    (byte < b' ') | (byte == b'"') | (byte == b'\\')
}

/// Whether no byte needs an escape.
fn is_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    // The last piece overlaps with the one before it.
    if let Some(last) = bytes.last_chunk::<16>() {
        are_plain(last) && bytes.as_chunks::<16>().0.iter().all(are_plain)
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        are_plain(first) && are_plain(last)
    } else {
        !bytes.iter().any(|byte| needs_escape(*byte))
    }
}

#[inline]
fn are_plain<const N: usize>(bytes: &[u8; N]) -> bool {
    !bytes.iter().fold(false, |any, byte| any | needs_escape(*byte))
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
            for n_before in 0..34 {
                for after in ["", "#", "\"", "!]\u{1}plain, and more of it"] {
                    check(&format!("{}{character}{after}", "x".repeat(n_before)));
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
