//! The events of the Messages stream as flat, borrowed structs.
//!
//! One struct for all events: an internally tagged enum would read each event twice and copy what
//! it holds.

use std::{borrow::Cow, fmt, sync::Arc};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::tokens::Usage;

/// A text that is borrowed when it holds no escapes. (`Option<Cow<str>>` alone always copies.)
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct WireText<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// Any event. Moved several times while it is read, so what only some events hold is boxed.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(Default))]
pub(super) struct MessagesEvent<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Option<WireText<'a>>,
    pub(super) index: Option<u64>,
    #[serde(borrow)]
    pub(super) message: Option<Box<Start<'a>>>,
    #[serde(borrow)]
    pub(super) content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) delta: Option<Box<MessagesDelta<'a>>>,
    pub(super) usage: Option<ReportedUsage>,
    #[serde(borrow)]
    pub(super) error: Option<Box<ErrorBody<'a>>>,
}

/// The message that begins.
#[derive(Debug, Deserialize)]
pub(super) struct Start<'a> {
    #[serde(borrow)]
    pub(super) id: Option<WireText<'a>>,
    #[serde(borrow)]
    pub(super) model: Option<WireText<'a>>,
    #[serde(borrow)]
    pub(super) stop_reason: Option<WireText<'a>>,
    #[serde(borrow)]
    pub(super) stop_sequence: Option<WireText<'a>>,
    pub(super) usage: Option<ReportedUsage>,
}

/// What is added to a block or to the message.
#[derive(Debug, Default, Deserialize)]
pub(super) struct MessagesDelta<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Option<WireText<'a>>,
    #[serde(borrow)]
    pub(super) text: Option<WireText<'a>>,
    #[serde(borrow)]
    pub(super) partial_json: Option<WireText<'a>>,
    #[serde(borrow)]
    pub(super) thinking: Option<WireText<'a>>,
    #[serde(borrow)]
    pub(super) signature: Option<WireText<'a>>,
    #[serde(borrow)]
    pub(super) citation: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) stop_reason: Option<WireText<'a>>,
    #[serde(borrow)]
    pub(super) stop_sequence: Option<WireText<'a>>,
    #[serde(borrow)]
    pub(super) stop_details: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) content: Option<WireText<'a>>,
}

/// What a delta adds to a block, by its kind. What the kind demands may be missing.
#[derive(Debug)]
pub(super) enum Addition<'a> {
    Text(Option<Cow<'a, str>>),
    Thinking(Option<Cow<'a, str>>),
    Signature(Option<Cow<'a, str>>),
    /// A piece of the input of a tool.
    Json(Option<Cow<'a, str>>),
    Content(Option<Cow<'a, str>>),
    Citation(Option<&'a RawValue>),
    /// A kind that this version does not know.
    Unknown,
}

impl<'a> MessagesDelta<'a> {
    pub(super) fn addition(self) -> Addition<'a> {
        let text = |it: Option<WireText<'a>>| it.map(|it| it.0);
        match self.kind.as_ref().map(|it| it.0.as_ref()).unwrap_or_default() {
            "text_delta" => Addition::Text(text(self.text)),
            "thinking_delta" => Addition::Thinking(text(self.thinking)),
            "signature_delta" => Addition::Signature(text(self.signature)),
            "input_json_delta" => Addition::Json(text(self.partial_json)),
            "compaction_delta" => Addition::Content(text(self.content)),
            "citations_delta" => Addition::Citation(self.citation),
            _ => Addition::Unknown,
        }
    }
}

impl Addition<'_> {
    /// Counts the bytes that it adds.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Text(it)
            | Self::Thinking(it)
            | Self::Signature(it)
            | Self::Json(it)
            | Self::Content(it) => it.as_ref().map_or(0, |it| it.len()),
            Self::Citation(it) => it.map_or(0, |it| it.get().len()),
            Self::Unknown => 0,
        }
    }
}

/// Returns why a model refused, in words; `None` unless the details hold anything that can be read.
pub(crate) fn refusal_of(details: Option<&RawValue>) -> Option<Arc<str>> {
    let details: StopDetails<'_> = serde_json::from_str(details?.get()).ok()?;
    let reasons = [details.category, details.explanation].into_iter().flatten();
    let reasons: Vec<_> = reasons.map(|it| it.0).filter(|it| !it.is_empty()).collect();
    (!reasons.is_empty()).then(|| reasons.join(": ").into())
}

#[derive(Deserialize)]
struct StopDetails<'a> {
    #[serde(borrow)]
    category: Option<WireText<'a>>,
    #[serde(borrow)]
    explanation: Option<WireText<'a>>,
}

/// The `error` of an error event or of a body.
#[derive(Debug, Deserialize)]
pub(crate) struct ErrorBody<'a> {
    #[serde(rename = "type", borrow)]
    pub(crate) kind: Option<WireText<'a>>,
    #[serde(borrow)]
    pub(crate) message: Option<WireText<'a>>,
    /// Of servers that speak the other dialect; may be a number there.
    #[serde(borrow)]
    pub(crate) code: Option<&'a RawValue>,
}

/// The amounts that a provider named so far, cumulative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct ReportedUsage {
    #[serde(default, deserialize_with = "count")]
    pub(crate) input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    pub(crate) cache_creation_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "if_readable")]
    pub(crate) cache_creation: Option<CacheCreation>,
    #[serde(default, deserialize_with = "count")]
    pub(crate) cache_read_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    pub(crate) output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "if_readable")]
    pub(crate) output_tokens_details: Option<OutputDetails>,
    #[serde(default, deserialize_with = "if_readable")]
    pub(crate) server_tool_use: Option<ServerToolUse>,
}

/// What the output was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct OutputDetails {
    thinking_tokens: Option<u64>,
}

/// What the provider's own tools did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct ServerToolUse {
    #[serde(default, deserialize_with = "count")]
    web_search_requests: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    web_fetch_requests: Option<u64>,
}

impl ServerToolUse {
    /// A stream may name each kind of request in an event of its own.
    fn merge_over(self, known: Self) -> Self {
        Self {
            web_search_requests: self.web_search_requests.or(known.web_search_requests),
            web_fetch_requests: self.web_fetch_requests.or(known.web_fetch_requests),
        }
    }
}

/// Details in another shape than the known one are not a reason to lose an answer.
fn if_readable<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).ok())
}

/// An amount, which some servers write as `5.0`. What is not an amount, or more than anybody can have
/// used, is none.
fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    const MAX: f64 = (1_u64 << 53) as f64;
    let value = serde_json::Value::deserialize(deserializer)?;
    let whole = value.as_u64().filter(|it| *it <= MAX as u64);
    Ok(whole.or_else(|| value.as_f64().filter(|it| (0.0..=MAX).contains(it)).map(|it| it as u64)))
}

/// What was written to the cache, by how long it is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct CacheCreation {
    ephemeral_1h_input_tokens: Option<u64>,
}

impl ReportedUsage {
    /// Replaces earlier amounts by later ones. What is not named stays.
    pub(super) fn replace_with(&mut self, later: ReportedUsage) {
        self.input_tokens = later.input_tokens.or(self.input_tokens);
        self.cache_creation_input_tokens =
            later.cache_creation_input_tokens.or(self.cache_creation_input_tokens);
        self.cache_creation = later.cache_creation.or(self.cache_creation);
        self.cache_read_input_tokens =
            later.cache_read_input_tokens.or(self.cache_read_input_tokens);
        self.output_tokens = later.output_tokens.or(self.output_tokens);
        self.output_tokens_details = later.output_tokens_details.or(self.output_tokens_details);
        let (known, reasons) = (self.server_tool_use, later.server_tool_use);
        self.server_tool_use = reasons.map(|it| it.merge_over(known.unwrap_or_default())).or(known);
    }

    pub(crate) fn usage(&self) -> Usage {
        let details = self.output_tokens_details.unwrap_or_default();
        let server = self.server_tool_use.unwrap_or_default();
        Usage {
            input_tokens: self.input_tokens.unwrap_or(0),
            cache_creation_input_tokens: self.cache_creation_input_tokens.unwrap_or(0),
            cache_creation_1h_input_tokens: self
                .cache_creation
                .and_then(|it| it.ephemeral_1h_input_tokens)
                .unwrap_or(0),
            cache_read_input_tokens: self.cache_read_input_tokens.unwrap_or(0),
            output_tokens: self.output_tokens.unwrap_or(0),
            thinking_tokens: details.thinking_tokens.unwrap_or(0),
            web_search_requests: server.web_search_requests.unwrap_or(0),
            web_fetch_requests: server.web_fetch_requests.unwrap_or(0),
        }
    }
}

/// The `type` alone, for events whose fields have unexpected shapes.
#[derive(Debug, Deserialize)]
pub(super) struct KindOnly<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Option<WireText<'a>>,
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
    pub(super) kind: Option<WireText<'a>>,
    pub(super) text: Option<WireText<'a>>,
    pub(super) thinking: Option<WireText<'a>>,
    pub(super) signature: Option<WireText<'a>>,
    pub(super) id: Option<WireText<'a>>,
    pub(super) name: Option<WireText<'a>>,
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
        while let Some(WireText(key)) = map.next_key()? {
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

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: MDL-1
    #[test]
    fn requests_of_server_tools_are_kept_whichever_event_names_them_and_however() {
        let read = |json: &str| serde_json::from_str::<ReportedUsage>(json).unwrap();
        let mut usage =
            read(r#"{"server_tool_use":{"web_search_requests":1,"web_fetch_requests":2}}"#);
        usage.replace_with(read(r#"{"server_tool_use":{"web_search_requests":3.0,"new":"x"}}"#));
        usage.replace_with(read(r#"{"output_tokens":7,"server_tool_use":null}"#));
        let found = usage.usage();
        assert_eq!((found.web_search_requests, found.web_fetch_requests), (3, 2));
        assert_eq!(found.output_tokens, 7);
    }
}
