//! Step 5: the model answers.
//!
//! Building the request, reading the stream and naming what went wrong are pure and work on bytes;
//! sending them is `ports::Transport`'s part.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{block::Block, ids::ToolUseId, tokens::Usage};

pub(crate) mod adaptation;
pub mod bedrock;
pub mod cache_watch;
mod envelope;
pub mod failure;
#[cfg(test)]
pub(crate) mod fixture;
pub(crate) mod model_name;
pub mod named_limits;
pub mod openai_chat;
pub mod openai_responses;
mod openai_shared;
pub mod provider;
pub mod purpose;
pub mod request;
pub mod sse;
pub mod stream;
pub mod view;
pub mod whole;
#[cfg(test)]
mod wire_cases;
pub mod wire_format;

/// A whole answer of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelAnswer {
    /// The provider's id of the response.
    pub message_id: Arc<str>,
    /// The model that answered.
    pub model: Arc<str>,
    /// Its content, in order, with the bytes it came in.
    pub blocks: Vec<Block>,
    /// Why the model stopped.
    pub stop_reason: StopReason,
    /// The sequence that stopped it, if one did.
    pub stop_sequence: Option<Arc<str>>,
    /// Why it refused, in the provider's words; for people.
    pub refusal: Option<Arc<str>>,
    /// Tokens of the call, as the provider reported them.
    pub usage: Usage,
    /// Tool uses whose input is not a JSON object. Their block holds `{}`; they never run.
    pub invalid_inputs: Vec<(ToolUseId, InvalidInput)>,
}

#[cfg(any(test, feature = "conformance"))]
impl ModelAnswer {
    /// Returns the calls that may run, in order: only of an answer that stopped for tools, and only with an input that
    /// is an object.
    pub(crate) fn executable_tools(&self) -> impl Iterator<Item = &ToolUseId> {
        let wants_tools = self.stop_reason == StopReason::ToolUse;
        let calls = self.blocks.iter().filter(move |_| wants_tools).filter_map(Block::as_tool_use);
        calls
            .map(|(id, ..)| id)
            .filter(|call| self.invalid_inputs.iter().all(|(id, _)| id != *call))
    }
}

/// Why a model stopped. Unknown reasons are kept as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The model has finished its answer.
    EndTurn,
    /// The model wants tools to be run.
    ToolUse,
    /// The output ceiling cut it.
    MaxTokens,
    /// A stop sequence came up.
    StopSequence,
    /// A server tool needs another request.
    PauseTurn,
    /// The model refuses to answer.
    Refusal,
    /// The window is full.
    ContextWindowExceeded,
    /// Something this version does not know.
    Other(Arc<str>),
}

impl StopReason {
    /// Reads the word on the wire.
    pub(crate) fn read(word: &str) -> Self {
        match word {
            "end_turn" => Self::EndTurn,
            "tool_use" => Self::ToolUse,
            "max_tokens" => Self::MaxTokens,
            "stop_sequence" => Self::StopSequence,
            "pause_turn" => Self::PauseTurn,
            "refusal" => Self::Refusal,
            "model_context_window_exceeded" => Self::ContextWindowExceeded,
            other => Self::Other(other.into()),
        }
    }

    /// Returns the word on the wire; empty when the provider gave none.
    pub(crate) fn as_wire(&self) -> &str {
        match self {
            Self::EndTurn => "end_turn",
            Self::ToolUse => "tool_use",
            Self::MaxTokens => "max_tokens",
            Self::StopSequence => "stop_sequence",
            Self::PauseTurn => "pause_turn",
            Self::Refusal => "refusal",
            Self::ContextWindowExceeded => "model_context_window_exceeded",
            Self::Other(word) => word,
        }
    }
}

/// Why the input of a tool use cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InvalidInput {
    /// The input is not JSON.
    InvalidJson,
    /// The input is JSON, but not an object.
    NotAnObject,
}

/// Why there is no answer. Classified once (MDL-10); `code` is stable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelFailure {
    /// The class of the failure.
    pub class: FailureClass,
    /// HTTP status, if there was one.
    pub status: Option<u16>,
    /// The message of the provider or the transport, for people.
    pub message: String,
    /// How long the provider asked to wait, in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// Text that was already shown when it broke.
    pub partial_text: String,
}

/// The classes of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailureClass {
    /// The provider answered with status 429.
    RateLimit,
    /// The key has used up what it may for longer than a turn waits, or is held back for others' sake.
    Quota,
    /// 529, or an `overloaded_error` in the stream.
    Overloaded,
    /// The prompt is too long for the model.
    ContextOverflow,
    /// Input and output ceiling together are too long for the model.
    OutputOverflow,
    /// The output ceiling cut the answer.
    MaxOutput,
    /// The account has nothing left to pay with: 402, an empty balance.
    Billing,
    /// 401, 403: the key is wrong or may not.
    Auth,
    /// 400 and the like: asking again cannot help.
    InvalidRequest,
    /// No connection could be made: nothing was sent.
    Unreachable,
    /// The connection broke, or the server had an error, before the answer began.
    Network,
    /// Nothing that belongs to an answer came for too long.
    Timeout,
    /// The stream broke before its end.
    StreamBroken,
    /// Status 200, and what came is not an answer in the format that was asked for.
    BadAnswer,
    /// The answer of the model ended without content.
    EmptyAnswer,
    /// A server tool needs another request. No failure: what there is goes back and is continued.
    PauseTurn,
    /// The model refuses to answer.
    Refusal,
    /// A bug of ours.
    Internal,
}

impl FailureClass {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 18] = [
        Self::RateLimit,
        Self::Quota,
        Self::Overloaded,
        Self::Unreachable,
        Self::Network,
        Self::Timeout,
        Self::StreamBroken,
        Self::BadAnswer,
        Self::EmptyAnswer,
        Self::PauseTurn,
        Self::Refusal,
        Self::MaxOutput,
        Self::OutputOverflow,
        Self::ContextOverflow,
        Self::Billing,
        Self::Auth,
        Self::InvalidRequest,
        Self::Internal,
    ];

    /// Returns whether the model answered, and the answer cannot be used.
    pub(crate) fn is_of_answer(self) -> bool {
        matches!(
            self,
            Self::BadAnswer | Self::EmptyAnswer | Self::PauseTurn | Self::Refusal | Self::MaxOutput
        )
    }

    /// Returns the code, as on the wire.
    pub fn code(self) -> &'static str {
        match self {
            FailureClass::RateLimit => "rate_limit",
            FailureClass::Quota => "quota",
            FailureClass::Overloaded => "overloaded",
            FailureClass::ContextOverflow => "context_overflow",
            FailureClass::OutputOverflow => "output_overflow",
            FailureClass::MaxOutput => "max_output",
            FailureClass::Billing => "billing",
            FailureClass::Auth => "auth",
            FailureClass::InvalidRequest => "invalid_request",
            FailureClass::Unreachable => "unreachable",
            FailureClass::Network => "network",
            FailureClass::Timeout => "timeout",
            FailureClass::StreamBroken => "stream_broken",
            FailureClass::BadAnswer => "bad_answer",
            FailureClass::EmptyAnswer => "empty_answer",
            FailureClass::PauseTurn => "pause_turn",
            FailureClass::Refusal => "refusal",
            FailureClass::Internal => "internal",
        }
    }
}
