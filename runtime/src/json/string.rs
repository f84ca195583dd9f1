//! Texts as JSON strings.
//!
//! Alone because lines and requests are full of them, and nearly all are names, ids and codes that
//! need no escape: those are looked at eight bytes at a time and copied in one piece. The others are
//! left to `serde_json`.

/// Bytes that are looked at together.
const WORD: usize = 8;

/// `text` as a JSON string, quotes included.
pub fn quote(text: &str) -> String {
    if !is_plain(text) {
        return serde_json::to_string(text).unwrap_or_default();
    }
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    quoted.push_str(text);
    quoted.push('"');
    quoted
}

/// Appends `text` as a JSON string, quotes included.
pub(crate) fn push_quoted(text: &str, out: &mut Vec<u8>) {
    if is_plain(text) {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    } else {
        // Writing to a vector does not fail.
        let _written = serde_json::to_writer(out, text);
    }
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

fn needs_escape(byte: u8) -> bool {
    byte < b' ' || matches!(byte, b'"' | b'\\')
}

/// Whether no byte needs an escape.
fn is_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    match bytes.last_chunk() {
        // The last word overlaps with the one before it.
        Some(last) => {
            !one_needs_escape(*last) && !bytes.as_chunks().0.iter().any(|it| one_needs_escape(*it))
        }
        None => !text.bytes().any(needs_escape),
    }
}

/// Whether one of the bytes needs an escape.
#[inline]
fn one_needs_escape(word: [u8; WORD]) -> bool {
    const ONES: u64 = u64::from_le_bytes([1; WORD]);
    let word = u64::from_le_bytes(word);
    // A byte that is smaller than another borrows into its highest bit, which was not set.
    let smaller = |word: u64, than: u8| word.wrapping_sub(ONES * u64::from(than)) & !word;
    let quotes = smaller(word ^ (ONES * u64::from(b'"')), 1);
    let backslashes = smaller(word ^ (ONES * u64::from(b'\\')), 1);
    (quotes | backslashes | smaller(word, b' ')) & (ONES << 7) != 0
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
