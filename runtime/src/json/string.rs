//! Texts as JSON strings.
//!
//! Lines and requests are full of strings, and nearly all are names, ids and codes that need no
//! escape: those are looked at many bytes at a time and copied in one piece. The others, JSON
//! inside of JSON above all, are copied by words of eight.

/// The bytes below the blank, with their escapes.
const CONTROLS: [&str; 32] = [
    "\\u0000", "\\u0001", "\\u0002", "\\u0003", "\\u0004", "\\u0005", "\\u0006", "\\u0007", "\\b",
    "\\t", "\\n", "\\u000b", "\\f", "\\r", "\\u000e", "\\u000f", "\\u0010", "\\u0011", "\\u0012",
    "\\u0013", "\\u0014", "\\u0015", "\\u0016", "\\u0017", "\\u0018", "\\u0019", "\\u001a",
    "\\u001b", "\\u001c", "\\u001d", "\\u001e", "\\u001f",
];

/// Bytes that are copied in one step.
const WORD: usize = 8;

/// Bytes that are looked at in one step.
const CHUNK: usize = 16;

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
        push_escaped(text, out);
    }
    out.push(b'"');
}

fn push_escaped(text: &str, out: &mut Vec<u8>) {
    let (mut bytes, mut at) = (text.as_bytes(), out.len());
    // Most of them are JSON, where one byte in eight is a quote: a word is copied whole, and what stood after a byte
    // with an escape is written over. An escape is copied as a whole word, too: a copy of a length that is known is one step.
    out.resize(at + escaped_len(text) + 2 * WORD, 0);
    while let (Some(word), Some(room)) = (bytes.first_chunk::<WORD>(), word_at(out, at)) {
        *room = *word;
        let n_plain = n_plain(u64::from_le_bytes(*word));
        at += n_plain;
        if let (Some(byte), Some(room)) = (word.get(n_plain), word_at(out, at)) {
            let (escape, len) = ESCAPES[usize::from(*byte)];
            *room = escape;
            at += usize::from(len);
            bytes = &bytes[n_plain + 1..];
        } else {
            bytes = &bytes[WORD..];
        }
    }
    out.truncate(at);
    for byte in bytes {
        match &ESCAPES[usize::from(*byte)] {
            (_, 1) => out.push(*byte),
            (escape, len) => out.extend_from_slice(&escape[..usize::from(*len)]),
        }
    }
}

/// The room of one word.
#[inline]
fn word_at(out: &mut [u8], at: usize) -> Option<&mut [u8; WORD]> {
    out.get_mut(at..)?.first_chunk_mut()
}

/// How many bytes of a word are in front of the first that needs an escape. The lowest byte is the first.
#[inline]
fn n_plain(word: u64) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    // The upper bit of a byte that is below; what a borrow sets above it is not the first.
    let below = |word: u64, limit: u8| word.wrapping_sub(ONES * u64::from(limit)) & !word & HIGH;
    let is = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    let marks = below(word, b' ') | is(b'"') | is(b'\\');
    (marks.trailing_zeros() / 8) as usize
}

/// Each byte as it stands in a JSON string, and how many bytes that is.
const ESCAPES: [([u8; WORD], u8); 256] = {
    let mut escapes = [([0; WORD], 1); 256];
    let mut byte = 0;
    while byte < 256 {
        let (escape, len) = &mut escapes[byte];
        escape[0] = byte as u8;
        if byte < CONTROLS.len() {
            let control = CONTROLS[byte].as_bytes();
            escape.split_at_mut(control.len()).0.copy_from_slice(control);
            *len = control.len() as u8;
        } else if byte == b'"' as usize || byte == b'\\' as usize {
            (*escape, *len) = ([b'\\', byte as u8, 0, 0, 0, 0, 0, 0], 2);
        }
        byte += 1;
    }
    escapes
};

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
    if let Some(last) = bytes.last_chunk::<CHUNK>() {
        are_plain(last) && bytes.as_chunks::<CHUNK>().0.iter().all(are_plain)
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
