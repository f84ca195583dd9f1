//! The events of the Messages stream as flat, borrowed structs.
//!
//! One struct for all events: an internally tagged enum would read each event twice and copy what
//! it holds.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::tokens::Usage;

/// A text that is borrowed when it holds no escapes. (`Option<Cow<str>>` alone always copies.)
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// Any event.
#[derive(Debug, Deserialize)]
pub(super) struct Event<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Option<Text<'a>>,
    pub(super) index: Option<u64>,
    #[serde(borrow)]
    pub(super) message: Option<Start<'a>>,
    #[serde(borrow)]
    pub(super) content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) delta: Option<Delta<'a>>,
    pub(super) usage: Option<ReportedUsage>,
    #[serde(borrow)]
    pub(super) error: Option<ErrorBody<'a>>,
}

/// The message that begins.
#[derive(Debug, Deserialize)]
pub(super) struct Start<'a> {
    #[serde(borrow)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) model: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) stop_reason: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) stop_sequence: Option<Text<'a>>,
    pub(super) usage: Option<ReportedUsage>,
}

/// What is added to a block or to the message.
#[derive(Debug, Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) text: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) partial_json: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) thinking: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) signature: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) citation: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) stop_reason: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) stop_sequence: Option<Text<'a>>,
}

/// The `error` of an error event or of a body.
#[derive(Debug, Deserialize)]
pub(crate) struct ErrorBody<'a> {
    #[serde(rename = "type", borrow)]
    pub(crate) kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) message: Option<Text<'a>>,
    /// Of servers that speak the other dialect; may be a number there.
    #[serde(borrow)]
    pub(crate) code: Option<&'a RawValue>,
}

/// The amounts that a provider named so far, cumulative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct ReportedUsage {
    pub(crate) input_tokens: Option<u64>,
    pub(crate) cache_creation_input_tokens: Option<u64>,
    pub(crate) cache_read_input_tokens: Option<u64>,
    pub(crate) output_tokens: Option<u64>,
}

impl ReportedUsage {
    /// Later amounts replace earlier ones; what is not named stays.
    pub(super) fn replace_with(&mut self, later: ReportedUsage) {
        self.input_tokens = later.input_tokens.or(self.input_tokens);
        self.cache_creation_input_tokens =
            later.cache_creation_input_tokens.or(self.cache_creation_input_tokens);
        self.cache_read_input_tokens =
            later.cache_read_input_tokens.or(self.cache_read_input_tokens);
        self.output_tokens = later.output_tokens.or(self.output_tokens);
    }

    pub(crate) fn usage(&self) -> Usage {
        Usage {
            input_tokens: self.input_tokens.unwrap_or(0),
            cache_creation_input_tokens: self.cache_creation_input_tokens.unwrap_or(0),
            cache_read_input_tokens: self.cache_read_input_tokens.unwrap_or(0),
            output_tokens: self.output_tokens.unwrap_or(0),
        }
    }
}

/// The `type` alone, for events whose fields have shapes that nobody expected.
#[derive(Debug, Deserialize)]
pub(super) struct KindOnly<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Option<Text<'a>>,
}

/// A block delta of which only the kind can be read.
#[derive(Debug, Deserialize)]
pub(super) struct OddDelta<'a> {
    pub(super) index: u64,
    #[serde(borrow)]
    pub(super) delta: KindOnly<'a>,
}

/// A block as it begins. What this version does not know is kept in `rest`, as JSON members with
/// a comma before each.
#[derive(Debug, Default)]
pub(super) struct BlockStart<'a> {
    pub(super) kind: Option<Text<'a>>,
    pub(super) text: Option<Text<'a>>,
    pub(super) thinking: Option<Text<'a>>,
    pub(super) signature: Option<Text<'a>>,
    pub(super) id: Option<Text<'a>>,
    pub(super) name: Option<Text<'a>>,
    pub(super) input: Option<&'a RawValue>,
    pub(super) citations: Option<Vec<&'a RawValue>>,
    pub(super) rest: String,
}

impl<'de: 'a, 'a> Deserialize<'de> for BlockStart<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(BlockStartVisitor)
    }
}

struct BlockStartVisitor;

impl<'de> Visitor<'de> for BlockStartVisitor {
    type Value = BlockStart<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a block object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut start = BlockStart::default();
        while let Some(Text(key)) = map.next_key()? {
            match key.as_ref() {
                "type" => start.kind = map.next_value()?,
                "text" => start.text = map.next_value()?,
                "thinking" => start.thinking = map.next_value()?,
                "signature" => start.signature = map.next_value()?,
                "id" => start.id = map.next_value()?,
                "name" => start.name = map.next_value()?,
                "input" => start.input = map.next_value()?,
                "citations" => start.citations = map.next_value()?,
                "cache_control" => {
                    // A mark belongs to a request, never to a block.
                    map.next_value::<IgnoredAny>()?;
                }
                other => {
                    let value: &RawValue = map.next_value()?;
                    start.rest.push(',');
                    start.rest.push_str(&crate::block::quote(other));
                    start.rest.push(':');
                    start.rest.push_str(value.get());
                }
            }
        }
        Ok(start)
    }
}
