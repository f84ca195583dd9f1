//! Events and items of the Responses API as flat, borrowed structs. What a member holds differs
//! between events, so most are kept raw and read when it is known what they are.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::step5_model_call::{
    openai_shared::reader::lenient,
    stream::wire::{ReportedUsage, WireText},
};

#[derive(Debug, Deserialize)]
pub(super) struct ResponsesEvent<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Option<WireText<'a>>,
    #[serde(borrow)]
    sequence_number: Option<&'a RawValue>,
    #[serde(borrow)]
    output_index: Option<&'a RawValue>,
    #[serde(borrow)]
    summary_index: Option<&'a RawValue>,
    #[serde(borrow)]
    item_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) item: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) response: Option<&'a RawValue>,
}

impl<'a> ResponsesEvent<'a> {
    /// Returns its number; `None` if the server does not count.
    pub(super) fn number(&self) -> Option<u64> {
        lenient(self.sequence_number)
    }

    pub(super) fn output_index(&self) -> Option<u64> {
        lenient(self.output_index)
    }

    pub(super) fn is_further_summary(&self) -> bool {
        lenient::<u64>(self.summary_index).is_some_and(|it| 0 < it)
    }

    pub(super) fn item_id(&self) -> Option<WireText<'a>> {
        lenient(self.item_id)
    }

    pub(super) fn delta(&self) -> Option<WireText<'a>> {
        lenient(self.delta)
    }

    pub(super) fn arguments(&self) -> Option<WireText<'a>> {
        lenient(self.arguments)
    }
}

/// The response, as it begins or as it ends.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Response<'a> {
    #[serde(borrow)]
    pub(super) id: Option<WireText<'a>>,
    #[serde(borrow)]
    pub(super) model: Option<WireText<'a>>,
    #[serde(borrow)]
    pub(super) status: Option<WireText<'a>>,
    #[serde(borrow)]
    pub(super) output: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow)]
    incomplete_details: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct Details<'a> {
    #[serde(borrow)]
    reason: Option<WireText<'a>>,
}

#[derive(Debug, Deserialize)]
struct ResponseUsage {
    input_tokens: Option<u64>,
    input_tokens_details: Option<InputDetails>,
    output_tokens: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct InputDetails {
    cached_tokens: Option<u64>,
}

impl<'a> Response<'a> {
    /// Returns whether it lacks all that a response must have.
    pub(super) fn is_nothing(&self) -> bool {
        self.status.is_none() && self.output.is_none() && self.error.is_none()
    }

    /// Returns why it is incomplete.
    pub(super) fn reason(&self) -> Option<WireText<'a>> {
        lenient::<Details<'_>>(self.incomplete_details)?.reason
    }

    /// Returns the amounts. What was read from a cache is counted in `input_tokens`, and is not input that must be paid
    /// for in full.
    pub(super) fn usage(&self) -> Option<ReportedUsage> {
        let usage: ResponseUsage = lenient(self.usage)?;
        let cached = usage.input_tokens_details.and_then(|it| it.cached_tokens);
        let input = usage.input_tokens.map(|it| it.saturating_sub(cached.unwrap_or(0)));
        Some(ReportedUsage {
            input_tokens: input,
            cache_creation_input_tokens: None,
            cache_read_input_tokens: cached,
            output_tokens: usage.output_tokens,
            ..ReportedUsage::default()
        })
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct OutputItem<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Option<WireText<'a>>,
    #[serde(borrow)]
    pub(super) id: Option<WireText<'a>>,
    #[serde(borrow)]
    pub(super) call_id: Option<WireText<'a>>,
    #[serde(borrow)]
    pub(super) name: Option<WireText<'a>>,
    #[serde(borrow)]
    pub(super) arguments: Option<WireText<'a>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    encrypted_content: Option<&'a RawValue>,
}

/// A part of a message item.
#[derive(Debug, Deserialize)]
pub(super) struct MessagePart<'a> {
    #[serde(borrow)]
    pub(super) text: Option<WireText<'a>>,
    #[serde(borrow)]
    pub(super) refusal: Option<WireText<'a>>,
}

impl<'a> OutputItem<'a> {
    pub(super) fn read(raw: &'a str) -> Option<Self> {
        serde_json::from_str(raw).ok().filter(|_| raw.trim_start().starts_with('{'))
    }

    pub(super) fn kind(&self) -> &str {
        self.kind.as_ref().map_or("", |it| it.0.as_ref())
    }

    pub(super) fn parts(&self) -> Vec<MessagePart<'a>> {
        lenient(self.content).unwrap_or_default()
    }

    /// Returns whether reasoning holds something that a server can continue from; a summary alone it would look up by
    /// an id that it does not know.
    pub(super) fn can_go_back(&self) -> bool {
        lenient::<WireText<'_>>(self.encrypted_content).is_some_and(|it| !it.0.is_empty())
            || !self.parts().is_empty()
    }
}
