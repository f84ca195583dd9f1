//! Events in the very words of the provider.
//!
//! It is a short cut and nothing else: an event as the Messages API writes it, its
//! fields in order and without white space, is read by comparing bytes. Nearly all events of a
//! stream are such: deltas, begins and ends of blocks, pings. Whatever looks different is left to the parser of
//! `wire`, which comes to the same; a test holds the two against each other.

use std::borrow::Cow;

use super::{block_builder::BlockBuilder, wire::Addition};

const KIND: &str = r#"{"type":""#;
const DELTA: &str = r#"content_block_delta","index":"#;
const DELTA_KIND: &str = r#","delta":{"type":""#;
const BLOCK_START: &str = r#"content_block_start","index":"#;
const BLOCK: &str = r#","content_block":"#;
const BLOCK_STOP: &str = r#"content_block_stop","index":"#;

/// Digits of an index that is read here.
const MAX_DIGITS: usize = 9;

/// An event that needs no parser.
#[derive(Debug)]
pub(super) enum Plain<'a> {
    /// Text, reasoning or input is added to the block at this index.
    Delta(u64, Addition<'a>),
    /// A block of this many bytes begins at this index.
    BlockStart(u64, usize, Box<BlockBuilder>),
    /// The block at this index is whole.
    BlockStop(u64),
    /// The message is whole.
    MessageStop,
    Ping,
}

/// Reads the event, if it is one of these, and written as expected.
pub(super) fn event(data: &str) -> Option<Plain<'_>> {
    let kind = data.strip_prefix(KIND)?;
    if let Some(rest) = kind.strip_prefix(DELTA) {
        let (index, rest) = number(rest)?;
        Some(Plain::Delta(index, delta(rest.strip_prefix(DELTA_KIND)?.strip_suffix("}}")?)?))
    } else if let Some(rest) = kind.strip_prefix(BLOCK_STOP) {
        let (index, rest) = number(rest)?;
        (rest == "}").then_some(Plain::BlockStop(index))
    } else if let Some(rest) = kind.strip_prefix(BLOCK_START) {
        let (index, rest) = number(rest)?;
        let raw = rest.strip_prefix(BLOCK)?.strip_suffix('}')?;
        // Where more than the block is there, it cannot be read as one. A line that ends within
        // it may end within a string, and would be mended.
        let is_object = raw.starts_with('{') && raw.ends_with('}') && !raw.contains(['\n', '\r']);
        let builder = BlockBuilder::start(raw).ok().filter(|_| is_object)?;
        Some(Plain::BlockStart(index, raw.len(), builder))
    } else {
        match kind {
            r#"message_stop"}"# => Some(Plain::MessageStop),
            r#"ping"}"# => Some(Plain::Ping),
            _ => None,
        }
    }
}

/// A delta from its kind on.
fn delta(rest: &str) -> Option<Addition<'_>> {
    if let Some(text) = rest.strip_prefix(r#"text_delta","text":"#) {
        Some(Addition::Text(Some(string(text)?)))
    } else if let Some(json) = rest.strip_prefix(r#"input_json_delta","partial_json":"#) {
        Some(Addition::Json(Some(string(json)?)))
    } else if let Some(thinking) = rest.strip_prefix(r#"thinking_delta","thinking":"#) {
        Some(Addition::Thinking(Some(string(thinking)?)))
    } else {
        None
    }
}

/// A whole number at the start of a text, as JSON writes it, and what follows.
fn number(text: &str) -> Option<(u64, &str)> {
    let mut number = 0;
    for (i, byte) in text.bytes().enumerate().take(MAX_DIGITS + 1) {
        if byte.is_ascii_digit() {
            number = 10 * number + u64::from(byte - b'0');
            continue;
        }
        let is_json = i == 1 || (1 < i && !text.starts_with('0'));
        return is_json.then(|| (number, &text[i..]));
    }
    None
}

/// A text that is one JSON string and nothing else.
fn string(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    // No early end, so that many bytes are looked at in one step.
    let is_plain = |all, byte: u8| all & (byte >= b' ') & (byte != b'"') & (byte != b'\\');
    if inner.bytes().fold(true, is_plain) {
        Some(inner.into())
    } else {
        Some(Cow::Owned(serde_json::from_str(json).ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::wire::{MessagesEvent, WireText},
        *,
    };

    /// What the short cut reads is what the parser reads. Whether it reads it at all.
    fn is_read(data: &str) -> bool {
        let Some(plain) = event(data) else { return false };
        let mut parsed: MessagesEvent<'_> =
            serde_json::from_str(data).unwrap_or_else(|_| panic!("{data}"));
        let (name, index) = match plain {
            Plain::Delta(index, read) => {
                let addition = parsed.delta.take().map(|it| it.addition());
                assert_eq!(format!("{:?}", Some(read)), format!("{addition:?}"), "{data}");
                ("content_block_delta", Some(index))
            }
            Plain::BlockStart(index, n_bytes, read) => {
                let raw = parsed.content_block.take().unwrap().get();
                assert_eq!((n_bytes, read), (raw.len(), BlockBuilder::start(raw).unwrap()));
                ("content_block_start", Some(index))
            }
            Plain::BlockStop(index) => ("content_block_stop", Some(index)),
            Plain::MessageStop => ("message_stop", None),
            Plain::Ping => ("ping", None),
        };
        // Nothing else is in it.
        let read =
            MessagesEvent { kind: Some(WireText(name.into())), index, ..MessagesEvent::default() };
        assert_eq!(format!("{read:?}"), format!("{parsed:?}"), "{data}");
        true
    }

    const DELTAS: [(&str, &str); 3] = [
        ("text_delta", "text"),
        ("input_json_delta", "partial_json"),
        ("thinking_delta", "thinking"),
    ];

    fn deltas(index: &str, string: &str) -> Vec<String> {
        let delta = |(kind, field)| {
            format!(
                r#"{{"type":"content_block_delta","index":{index},"delta":{{"type":"{kind}","{field}":{string}}}}}"#
            )
        };
        DELTAS.map(delta).into()
    }

    fn start(index: &str, block: &str) -> String {
        format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#)
    }

    fn stop(index: &str) -> String {
        format!(r#"{{"type":"content_block_stop","index":{index}}}"#)
    }

    const MESSAGE_STOP: &str = r#"{"type":"message_stop"}"#;

    // REQ: MDL-1
    #[test]
    fn usual_events_are_read_without_the_parser() {
        for index in ["0", "7", "10", "123456789"] {
            assert!(is_read(&stop(index)), "{index}");
            for block in [
                r#"{"type":"text","text":""}"#,
                r#"{"type":"tool_use","id":"t","name":"n","input":{}}"#,
                r#"{ "type":"new", "x": [{}],"y":{"z":null} }"#,
            ] {
                assert!(is_read(&start(index, block)), "{index} {block}");
            }
            for string in
                [r#""""#, r#"" a, b ""#, r#""naïve 😀""#, r#""\n\"x\" \\ \u0041\ud83d\ude00""#]
            {
                assert!(deltas(index, string).iter().all(|it| is_read(it)), "{index} {string}");
            }
        }
        assert!(is_read(MESSAGE_STOP) && is_read(r#"{"type":"ping"}"#));
    }

    // REQ: MDL-1
    #[test]
    fn whatever_looks_different_is_left_to_the_parser() {
        for index in ["", "00", "01", "-1", "1.5", "1e2", "1234567890", "null", " 1", "1 "] {
            assert!(!is_read(&stop(index)), "{index}");
            assert!(!is_read(&start(index, r#"{"type":"text","text":""}"#)), "{index}");
            assert!(!deltas(index, r#""a""#).iter().any(|it| is_read(it)), "{index}");
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
            assert!(!deltas("0", string).iter().any(|it| is_read(it)), "{string}");
        }
        for block in [
            "",
            "{}",
            "[]",
            "null",
            r#"{"type":1}"#,
            r#"{"type":"tool_use"}"#,
            r#" {"type":"text","text":""}"#,
            r#"{"type":"text","text":""} "#,
            r#"{"type":"text","text":""},"x":{}"#,
            r#"{"type":"text","text":""}}"#,
            "{\"type\":\"text\",\"text\":\"a\nb\"}",
            r#"{"type":"text","text":"#,
        ] {
            assert!(!is_read(&start("0", block)), "{block}");
        }
        for other in [
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"a"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","thinking":"a"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta"}}"#,
            r#"{"type":"content_block_stop","index":0"#,
            r#"{"type":"content_block_stop","index":0,"x":1}"#,
            r#"{"type":"content_block_stop"}"#,
            r#"{"type":"message_stop" }"#,
            r#"{"type":"message_stop"}}"#,
            r#"{"type":"message_stop","x":1}"#,
            r#"{"type":"message_start"}"#,
            r#"{"type":"ping"#,
            KIND,
            "",
            "}}",
        ] {
            assert!(!is_read(other), "{other}");
        }
    }

    proptest::proptest! {
        // REQ: MDL-1
        #[test]
        fn short_cut_and_parser_read_the_same(text: String, index: u32, noise: String, at: usize) {
            let string = serde_json::to_string(&text).unwrap();
            let index = index.to_string();
            let block = format!(r#"{{"type":"text","text":{string}}}"#);
            let rest = [start(&index, &block), stop(&index), MESSAGE_STOP.to_owned()];
            for data in deltas(&index, &string).into_iter().chain(rest) {
                is_read(&data);
                let at = at % (data.len() + 1);
                if data.is_char_boundary(at) {
                    is_read(&format!("{}{noise}{}", &data[..at], &data[at..]));
                }
            }
        }
    }
}
