//! The wire formats that models are spoken to in, and the one place that chooses between them.
//!
//! Everything outside names a [`WireFormat`] and gets the same types back, whoever answers: an
//! [`EncodedRequest`], a [`StreamReport`], a [`ModelAnswer`], a [`ModelFailure`].

use std::sync::Arc;

use http::HeaderMap;
use serde::{Deserialize, Serialize};

use super::{
    ModelAnswer, ModelFailure,
    bedrock::BedrockReader,
    failure, openai_chat,
    openai_chat::ChatReader,
    openai_responses,
    openai_responses::ResponsesReader,
    openai_shared,
    request::{EncodedHead, EncodedRequest, PrefixChain, encode},
    stream::{StreamDelta, StreamReader, StreamReport},
    view::View,
    whole,
};
use crate::{digest::Digest, time::Timestamp};

/// How a provider wants to be spoken to. The codes are stable.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WireFormat {
    /// The Messages API of Anthropic.
    #[default]
    AnthropicMessages,
    /// The same API behind `InvokeModel` of Bedrock: the model is named in the address, and a
    /// stream comes in frames of AWS. The newer Bedrock is [`WireFormat::AnthropicMessages`].
    BedrockInvoke,
    /// The same API behind `rawPredict` of Vertex: the model is named in the address.
    VertexRawPredict,
    /// Chat Completions of OpenAI, which compatible and local servers speak as well.
    OpenAiChat,
    /// The Responses API of OpenAI.
    OpenAiResponses,
}

/// A provider as the rules know it; its address and key are the caller's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provider {
    /// Names it in settings, records and outcomes.
    pub name: Arc<str>,
    /// How it is spoken to.
    pub format: WireFormat,
}

/// What requests in a format may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// A mark at the top level, for automatic caching.
    pub automatic_caching: bool,
    /// Tools that the provider runs itself, and their blocks in a conversation.
    pub server_tools: bool,
    /// Images and documents by address or by file id; without it only those sent whole.
    pub linked_media: bool,
    /// `…/count_tokens`.
    pub counts_tokens: bool,
    /// Reasoning goes back with its signature, as blocks of the Messages API.
    pub signed_thinking: bool,
    /// The type of the blocks that carry items of the format itself, if it has such.
    pub items: Option<&'static str>,
}

impl WireFormat {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::AnthropicMessages,
        Self::BedrockInvoke,
        Self::VertexRawPredict,
        Self::OpenAiChat,
        Self::OpenAiResponses,
    ];

    /// Where requests go, for a server at this base address. Of Vertex the base goes down to the
    /// location: `https://HOST/v1/projects/P/locations/L`.
    pub fn url(self, base: &str, model: &str, streamed: bool) -> String {
        let base = base.trim_end_matches('/');
        match self {
            Self::AnthropicMessages => format!("{base}/v1/messages"),
            Self::OpenAiChat => format!("{}/chat/completions", versioned(base)),
            Self::OpenAiResponses => format!("{}/responses", versioned(base)),
            Self::BedrockInvoke => {
                let call = if streamed { "invoke-with-response-stream" } else { "invoke" };
                format!("{base}/model/{}/{call}", escaped(model))
            }
            Self::VertexRawPredict => {
                let call = if streamed { "streamRawPredict" } else { "rawPredict" };
                format!("{base}/publishers/anthropic/models/{}:{call}", escaped(model))
            }
        }
    }

    /// What requests in this format may use. Blocks that it does not know are kept out of views.
    pub fn features(self) -> Features {
        let of_claude = Features {
            automatic_caching: true,
            server_tools: true,
            linked_media: true,
            counts_tokens: true,
            signed_thinking: true,
            items: None,
        };
        let elsewhere = Features {
            automatic_caching: false,
            server_tools: false,
            linked_media: false,
            counts_tokens: false,
            ..of_claude
        };
        match self {
            Self::AnthropicMessages => of_claude,
            Self::BedrockInvoke | Self::VertexRawPredict => elsewhere,
            // Reasoning is signed there by other means, and images by address are taken.
            Self::OpenAiChat => {
                Features { signed_thinking: false, linked_media: true, ..elsewhere }
            }
            Self::OpenAiResponses => Features {
                signed_thinking: false,
                linked_media: true,
                items: Some(openai_shared::encode::ITEM),
                ..elsewhere
            },
        }
    }

    /// The request for a view. See [`encode`].
    pub fn encode(
        self,
        head: &EncodedHead,
        view: &View,
        chain: &mut PrefixChain,
    ) -> EncodedRequest {
        match self {
            Self::AnthropicMessages | Self::BedrockInvoke | Self::VertexRawPredict => {
                encode(self, head, view, chain)
            }
            Self::OpenAiChat => openai_chat::encode(head, view, chain),
            Self::OpenAiResponses => openai_responses::encode(head, view, chain),
        }
    }

    /// Reads one stream: the answer to this request. Where a server gives calls no ids, or ids that
    /// may come again, they are made from the request.
    pub fn reader(self, request: Digest) -> AnswerReader {
        match self {
            Self::AnthropicMessages | Self::VertexRawPredict => {
                AnswerReader::Messages(Box::default())
            }
            Self::BedrockInvoke => AnswerReader::Bedrock(Box::default()),
            Self::OpenAiChat => AnswerReader::Chat(Box::new(ChatReader::new(request))),
            Self::OpenAiResponses => {
                AnswerReader::Responses(Box::new(ResponsesReader::new(request)))
            }
        }
    }

    /// The answer to this request in the body of a response with status 200 that is no stream.
    ///
    /// # Errors
    ///
    /// As [`whole::read_whole`].
    pub fn read_whole(self, body: &[u8], request: Digest) -> Result<ModelAnswer, ModelFailure> {
        match self {
            Self::AnthropicMessages | Self::BedrockInvoke | Self::VertexRawPredict => {
                whole::read_whole(body)
            }
            Self::OpenAiChat => openai_chat::read_whole(body, request),
            Self::OpenAiResponses => openai_responses::read_whole(body, request),
        }
    }

    /// The failure that a response with another status means. See [`failure::from_response`].
    pub fn read_refusal(
        self,
        base: &str,
        status: u16,
        headers: &HeaderMap,
        body: &[u8],
        now: Timestamp,
    ) -> ModelFailure {
        match self {
            Self::AnthropicMessages | Self::BedrockInvoke | Self::VertexRawPredict => {
                failure::from_response(base, status, headers, body, now)
            }
            Self::OpenAiChat | Self::OpenAiResponses => {
                openai_shared::failure::from_response(status, headers, body, now)
            }
        }
    }
}

/// Reads a stream of whatever format: bytes in, things to show and one report out.
#[derive(Clone, Debug)]
pub enum AnswerReader {
    /// Of [`WireFormat::AnthropicMessages`] and [`WireFormat::VertexRawPredict`].
    Messages(Box<StreamReader>),
    /// Of [`WireFormat::BedrockInvoke`].
    Bedrock(Box<BedrockReader>),
    /// Of [`WireFormat::OpenAiChat`].
    Chat(Box<ChatReader>),
    /// Of [`WireFormat::OpenAiResponses`].
    Responses(Box<ResponsesReader>),
}

impl AnswerReader {
    /// Feeds bytes. See [`StreamReader::push_chunk`].
    pub fn push_chunk(&mut self, bytes: &[u8], out: &mut Vec<StreamDelta>) {
        match self {
            Self::Messages(reader) => reader.push_chunk(bytes, out),
            Self::Bedrock(reader) => reader.push_chunk(bytes, out),
            Self::Chat(reader) => reader.push_chunk(bytes, out),
            Self::Responses(reader) => reader.push_chunk(bytes, out),
        }
    }

    /// True once the outcome is settled.
    pub fn is_complete(&self) -> bool {
        match self {
            Self::Messages(reader) => reader.is_complete(),
            Self::Bedrock(reader) => reader.is_complete(),
            Self::Chat(reader) => reader.is_complete(),
            Self::Responses(reader) => reader.is_complete(),
        }
    }

    /// The connection has ended, or [`AnswerReader::is_complete`].
    pub fn finish(self) -> StreamReport {
        match self {
            Self::Messages(reader) => reader.finish(),
            Self::Bedrock(reader) => reader.finish(),
            Self::Chat(reader) => reader.finish(),
            Self::Responses(reader) => reader.finish(),
        }
    }
}

/// The base address of a server that speaks a format of OpenAI. Customarily the version is part of
/// it (`https://api.openai.com/v1`), so it is added only where there is no path at all.
fn versioned(base: &str) -> String {
    let after_scheme = base.split_once("://").map_or(base, |(_, rest)| rest);
    match after_scheme.contains('/') {
        true => base.to_owned(),
        false => format!("{base}/v1"),
    }
}

/// A name as one segment of a path. Colons stand in names of Bedrock and are escaped as its own
/// clients do.
fn escaped(name: &str) -> String {
    name.bytes()
        .map(|it| match it {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'@' => {
                char::from(it).to_string()
            }
            _ => format!("%{it:02X}"),
        })
        .collect()
}
