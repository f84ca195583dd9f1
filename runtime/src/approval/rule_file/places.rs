//! Where the values of a JSON text are, without reading it into values.

use std::ops::Range;

/// Returns where the object is that the text holds, brackets included.
pub(super) fn whole(text: &str) -> Range<usize> {
    let start = text.find('{').unwrap_or(0);
    start..value_end(text.as_bytes(), start)
}

/// Returns where the value of a member of an object is. Of several members of one name the last one counts, as for
/// readers.
pub(super) fn member(text: &str, object: Range<usize>, name: &str) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let mut at = object.start + 1;
    let mut found = None;
    loop {
        at = skip(bytes, at, |it| it.is_ascii_whitespace() || it == b',');
        if bytes.get(at) != Some(&b'"') || object.end <= at {
            return found;
        }
        let key = at..value_end(bytes, at);
        at = skip(bytes, key.end, |it| it.is_ascii_whitespace() || it == b':');
        let value = at..value_end(bytes, at);
        at = value.end;
        if serde_json::from_str::<String>(&text[key]).is_ok_and(|it| it == name) {
            found = Some(value);
        }
    }
}

/// Returns the place after the value that begins at `start`, in text that is JSON.
pub(super) fn value_end(bytes: &[u8], start: usize) -> usize {
    match bytes.get(start) {
        Some(b'"') => string_end(bytes, start),
        Some(b'{' | b'[') => container_end(bytes, start),
        _ => {
            skip(bytes, start, |it| !it.is_ascii_whitespace() && !matches!(it, b',' | b'}' | b']'))
        }
    }
}

/// The place after an object or a list.
fn container_end(bytes: &[u8], start: usize) -> usize {
    let (mut depth, mut at) = (0_usize, start);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = string_end(bytes, at);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            break;
        }
    }
    at
}

fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    at.min(bytes.len())
}

/// Returns the place after the bytes from here on that are to be skipped.
pub(super) fn skip(bytes: &[u8], from: usize, is_skipped: impl Fn(u8) -> bool) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    from + rest.iter().take_while(|it| is_skipped(**it)).count()
}
