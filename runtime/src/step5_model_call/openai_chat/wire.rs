//! The chunks of Chat Completions as flat, borrowed structs. Where servers differ in the shape of a
//! member, it is kept raw and read for what it is.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::step5_model_call::{
    openai_shared::reader::lenient,
    stream::wire::{ReportedUsage, WireText},
};

/// A chunk of a stream, or a whole answer.
#[derive(Debug, Deserialize)]
pub(super) struct ChatChunk<'a> {
    #[serde(borrow)]
    pub(super) id: Option<WireText<'a>>,
    #[serde(borrow)]
    pub(super) object: Option<WireText<'a>>,
    #[serde(borrow)]
    pub(super) model: Option<WireText<'a>>,
    #[serde(borrow)]
    pub(super) choices: Option<Vec<ChatChoice<'a>>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ChatChoice<'a> {
    pub(super) index: Option<u64>,
    #[serde(borrow)]
    delta: Option<ChatDelta<'a>>,
    #[serde(borrow)]
    message: Option<ChatDelta<'a>>,
    #[serde(borrow)]
    pub(super) finish_reason: Option<WireText<'a>>,
}

/// What is added to the message, or the whole of it.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ChatDelta<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) refusal: Option<WireText<'a>>,
    #[serde(borrow)]
    reasoning_content: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) tool_calls: Option<Vec<Fragment<'a>>>,
    /// How calls looked before there could be several.
    #[serde(borrow)]
    pub(super) function_call: Option<Function<'a>>,
}

/// A piece of a call.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Fragment<'a> {
    pub(super) index: Option<u64>,
    #[serde(borrow)]
    pub(super) id: Option<WireText<'a>>,
    #[serde(borrow)]
    pub(super) function: Option<Function<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Function<'a> {
    #[serde(borrow)]
    pub(super) name: Option<WireText<'a>>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// A part of a content that is a list.
#[derive(Debug, Deserialize)]
struct ContentPart<'a> {
    #[serde(borrow)]
    text: Option<WireText<'a>>,
}

#[derive(Debug, Deserialize)]
struct ChatUsage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
    /// The name for cached tokens at some servers.
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct PromptDetails {
    cached_tokens: Option<u64>,
}

impl<'a> ChatChunk<'a> {
    /// Returns the error object, if this is one: under `error`, or the chunk itself.
    pub(super) fn error(&self, whole: &'a str) -> Option<&'a str> {
        match self.error {
            Some(error) => Some(error.get()),
            None => self.object.as_ref().filter(|it| it.0 == "error").map(|_| whole),
        }
    }

    /// Returns the amounts so far. What was read from a cache is counted in `prompt_tokens`, and is not input that must
    /// be paid for in full.
    pub(super) fn usage(&self) -> Option<ReportedUsage> {
        let usage: ChatUsage = lenient(self.usage)?;
        let details = usage.prompt_tokens_details.and_then(|it| it.cached_tokens);
        let cached = details.or(usage.prompt_cache_hit_tokens);
        let input = usage.prompt_tokens.map(|it| it.saturating_sub(cached.unwrap_or(0)));
        Some(ReportedUsage {
            input_tokens: input,
            cache_creation_input_tokens: None,
            cache_read_input_tokens: cached,
            output_tokens: usage.completion_tokens,
            ..ReportedUsage::default()
        })
    }
}

impl<'a> ChatChoice<'a> {
    /// Takes what is added; some servers send a whole message in a stream.
    pub(super) fn delta(&mut self) -> ChatDelta<'a> {
        self.delta.take().or(self.message.take()).unwrap_or_default()
    }
}

impl<'a> ChatDelta<'a> {
    pub(super) fn content(&self) -> Option<Cow<'a, str>> {
        text_of(self.content)
    }

    pub(super) fn reasoning(&self) -> Option<Cow<'a, str>> {
        text_of(self.reasoning_content).or_else(|| text_of(self.reasoning))
    }
}

impl<'a> Function<'a> {
    /// Returns the text of the arguments. Some servers send them as an object and not as a text.
    pub(super) fn arguments(&self) -> Cow<'a, str> {
        let raw = self.arguments.filter(|it| it.get() != "null");
        let as_text = lenient(raw).map(|WireText(text)| text);
        as_text.or(raw.map(|it| Cow::Borrowed(it.get()))).unwrap_or_default()
    }
}

/// A text, or the texts of a list of parts; parts without text are passed over.
fn text_of<'a>(raw: Option<&'a RawValue>) -> Option<Cow<'a, str>> {
    let as_parts = || {
        let parts: Vec<ContentPart<'_>> = lenient(raw)?;
        Some(parts.into_iter().filter_map(|it| it.text).map(|it| it.0).collect::<String>().into())
    };
    lenient(raw).map(|WireText(text)| text).or_else(as_parts)
}
