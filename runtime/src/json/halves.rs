//! Halves of surrogate pairs that are alone in escapes.
//!
//! JSON allows `"\ud83d"`; no text of Rust can hold it, so the parser refuses it. Servers that cut
//! their answers by UTF-16 units send such halves. Only texts that cannot be parsed are searched
//! for them.

/// Replaces each half that is alone by `\ufffd` in the JSON text; `None` when there is none.
pub(crate) fn without_lone_halves(json: &str) -> Option<String> {
    let mut mended = String::new();
    let (mut copied, mut at) = (0, 0);
    while let Some(found) = json.get(at..).and_then(|it| it.find('\\')) {
        let escape = at + found;
        match (code(json, escape), code(json, escape + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => at = escape + 12,
            (Some(0xd800..=0xdfff), _) => {
                mended.push_str(json.get(copied..escape)?);
                mended.push_str("\\ufffd");
                at = escape + 6;
                copied = at;
            }
            // Of other escapes the second character may be a backslash.
            _ => at = escape + 2,
        }
    }
    (0 < copied).then(|| mended + json.get(copied..).unwrap_or_default())
}

/// The unit that an escape of four digits at this place represents.
fn code(json: &str, at: usize) -> Option<u16> {
    let digits = json.get(at..at.checked_add(6)?)?.strip_prefix("\\u")?;
    let are_digits = digits.bytes().all(|it| it.is_ascii_hexdigit());
    are_digits.then(|| u16::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: MDL-1
    #[test]
    fn halves_are_replaced_and_pairs_and_what_only_looks_like_one_are_kept() {
        let check = |json: &str, expected: Option<&str>| {
            assert_eq!(without_lone_halves(json).as_deref(), expected, "{json}");
        };
        check(r#""a""#, None);
        check(r#""\ud83d\ude00 \\ud83d \n\u0041""#, None);
        check(r#""a\ud83d""#, Some(r#""a\ufffd""#));
        check(r#""\ude00b\ud83d\ud83d\uDE00""#, Some(r#""\ufffdb\ufffd\ud83d\uDE00""#));
        check(r#""\ud83dé\""#, Some(r#""\ufffdé\""#));
        check(r#""\ud83"#, None);
        check(r#""\u+83d\é"#, None);
        check("\\", None);
    }
}
