//! Deltas of blocks in the very words of the provider.
//!
//! Alone because it is a short cut and nothing else: a delta as the Messages API writes it, its
//! fields in order and without white space, is read by comparing bytes. Nearly all events of a
//! stream are such. Whatever looks different is left to the parser of `wire`, which comes to the
//! same; a test holds the two against each other.

use super::wire::{Delta, Text};

const START: &str = r#"{"type":"content_block_delta","index":"#;
const DELTA: &str = r#","delta":{"type":""#;
const END: &str = "}}";

/// Digits of an index that is read here.
const MAX_DIGITS: usize = 9;

/// Index and delta of an event, if it is one of text, reasoning or input, and written as expected.
pub(super) fn delta(data: &str) -> Option<(u64, Delta<'_>)> {
    let (index, rest) = number(data.strip_prefix(START)?)?;
    let rest = rest.strip_prefix(DELTA)?.strip_suffix(END)?;
    let delta = if let Some(text) = rest.strip_prefix(r#"text_delta","text":"#) {
        Delta { kind: kind("text_delta"), text: Some(string(text)?), ..Delta::default() }
    } else if let Some(json) = rest.strip_prefix(r#"input_json_delta","partial_json":"#) {
        let partial_json = Some(string(json)?);
        Delta { kind: kind("input_json_delta"), partial_json, ..Delta::default() }
    } else if let Some(thinking) = rest.strip_prefix(r#"thinking_delta","thinking":"#) {
        let thinking = Some(string(thinking)?);
        Delta { kind: kind("thinking_delta"), thinking, ..Delta::default() }
    } else {
        return None;
    };
    Some((index, delta))
}

fn kind(name: &'static str) -> Option<Text<'static>> {
    Some(Text(name.into()))
}

/// A whole number at the start of a text, as JSON writes it, and what follows.
fn number(text: &str) -> Option<(u64, &str)> {
    let n_digits = text.bytes().position(|it| !it.is_ascii_digit())?;
    let (digits, rest) = text.split_at_checked(n_digits)?;
    let is_json = n_digits <= MAX_DIGITS && (n_digits == 1 || !digits.starts_with('0'));
    Some((digits.parse().ok().filter(|_| is_json)?, rest))
}

/// A text that is one JSON string and nothing else.
fn string(json: &str) -> Option<Text<'_>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    // No early end, so that many bytes are looked at in one step.
    let is_plain = |all, byte: u8| all & (byte >= b' ') & (byte != b'"') & (byte != b'\\');
    match inner.bytes().fold(true, is_plain) {
        true => Some(Text(inner.into())),
        false => serde_json::from_str(json).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::wire::Event, *};

    /// What the short cut reads is what the parser reads. Whether it reads it at all.
    fn is_read(data: &str) -> bool {
        let Some((index, delta)) = delta(data) else { return false };
        let read = Event {
            kind: kind("content_block_delta"),
            index: Some(index),
            delta: Some(delta),
            ..Event::default()
        };
        let parsed: Event<'_> = serde_json::from_str(data).unwrap_or_else(|_| panic!("{data}"));
        assert_eq!(format!("{read:?}"), format!("{parsed:?}"), "{data}");
        true
    }

    const DELTAS: [(&str, &str); 3] = [
        ("text_delta", "text"),
        ("input_json_delta", "partial_json"),
        ("thinking_delta", "thinking"),
    ];

    fn event(index: &str, string: &str) -> Vec<String> {
        let event =
            |(kind, field)| format!(r#"{START}{index}{DELTA}{kind}","{field}":{string}{END}"#);
        DELTAS.map(event).into()
    }

    // REQ: MDL-1
    #[test]
    fn usual_deltas_are_read_without_the_parser() {
        for index in ["0", "7", "10", "123456789"] {
            for string in
                [r#""""#, r#"" a, b ""#, r#""naïve 😀""#, r#""\n\"x\" \\ \u0041\ud83d\ude00""#]
            {
                assert!(event(index, string).iter().all(|it| is_read(it)), "{index} {string}");
            }
        }
    }

    // REQ: MDL-1
    #[test]
    fn whatever_looks_different_is_left_to_the_parser() {
        for index in ["", "00", "01", "-1", "1.5", "1e2", "1234567890", "null", " 1", "1 "] {
            assert!(!event(index, r#""a""#).iter().any(|it| is_read(it)), "{index}");
        }
        for string in [
            "",
            "\"",
            "null",
            "1",
            r#""a" "#,
            r#" "a""#,
            r#""a"#,
            "\"a\u{1}b\"",
            r#""\x""#,
            r#""\ud83d""#,
            r#""a","text":"b""#,
            r#""a\""#,
            r#""a","x":{}"#,
            r#""a"}"#,
            "\"a\"\n",
            r#"{"a":"b""#,
        ] {
            assert!(!event("0", string).iter().any(|it| is_read(it)), "{string}");
        }
        let other = r#"{START}0{DELTA}signature_delta","signature":"a"{END}"#;
        assert!(!is_read(other) && !is_read("") && !is_read(START) && !is_read("}}"));
    }

    proptest::proptest! {
        // REQ: MDL-1
        #[test]
        fn short_cut_and_parser_read_the_same(text: String, index: u32, noise: String, at: usize) {
            let string = serde_json::to_string(&text).unwrap();
            for data in event(&index.to_string(), &string) {
                is_read(&data);
                let at = at % (data.len() + 1);
                if data.is_char_boundary(at) {
                    is_read(&format!("{}{noise}{}", &data[..at], &data[at..]));
                }
            }
        }
    }
}
