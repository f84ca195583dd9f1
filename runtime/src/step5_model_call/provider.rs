//! What each wire format is encoded and read by: the one place that chooses between them.
//!
//! Everything outside names a [`WireFormat`] and gets the same types back, no matter who answers:
//! an [`EncodedRequest`], a [`StreamReport`], a [`ModelAnswer`], a [`ModelFailure`].

use http::HeaderMap;

use super::{
    ModelAnswer, ModelFailure,
    bedrock::BedrockReader,
    failure, openai_chat, openai_responses, openai_shared,
    openai_shared::{encode::join, forms::RequestForm, reader::FormatReader},
    request::{EncodedHead, EncodedRequest, PrefixChain, encode, encode_grown},
    stream::{StreamDelta, StreamReader, StreamReport},
    view::{GrownView, View},
    whole,
    wire_format::WireFormat,
};
use crate::{digest::Digest, shared::SharedList, time::Timestamp};

#[doc(hidden)]
impl WireFormat {
    /// Encodes the request for a view. See [`encode`].
    pub fn encode(
        self,
        head: &EncodedHead,
        view: &View,
        chain: &mut PrefixChain,
    ) -> EncodedRequest {
        match self.openai_form(head) {
            None => encode(self, head, view, chain),
            Some(form) => join(head, form, (&SharedList::default(), &view.messages), chain, true),
        }
    }

    /// Encodes the request for a view that continues another one. Where the body is not wanted, it may be left empty;
    /// digest and size are those of the whole.
    pub(crate) fn encode_grown(
        self,
        head: &EncodedHead,
        view: &GrownView,
        chain: &mut PrefixChain,
        writes: bool,
    ) -> EncodedRequest {
        match self.openai_form(head) {
            None => encode_grown(self, head, view, chain, writes),
            Some(form) => join(head, form, (&view.settled, &view.rest.messages), chain, writes),
        }
    }

    /// Returns the form of the formats that join kept texts; `None` for the Messages API.
    fn openai_form(self, head: &EncodedHead) -> Option<(RequestForm, &str)> {
        match self {
            Self::AnthropicMessages | Self::BedrockInvoke | Self::VertexRawPredict => None,
            Self::OpenAiChat => Some(openai_chat::form(head)),
            Self::OpenAiResponses => Some(openai_responses::form(head)),
        }
    }

    /// Reads one stream: the answer to this request. Where a server gives calls no ids, or ids that
    /// may come again, they are made from the request.
    pub fn reader(self, request: Digest) -> AnswerReader {
        AnswerReader(match self {
            Self::AnthropicMessages | Self::VertexRawPredict => ByFormat::Messages(Box::default()),
            Self::BedrockInvoke => ByFormat::Bedrock(Box::default()),
            Self::OpenAiChat => {
                ByFormat::Chat(Box::new(FormatReader::new(openai_chat::Chat::new(request))))
            }
            Self::OpenAiResponses => {
                let format = openai_responses::Responses::new(request);
                ByFormat::Responses(Box::new(FormatReader::new(format)))
            }
        })
    }

    /// Reads the answer to this request in the body of a response with status 200 that is not a stream.
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

    /// Returns the failure that a response with another status means, which came from this address. The status and
    /// the body are read as [`failure`] describes.
    pub fn read_refusal(
        self,
        url: &str,
        status: u16,
        headers: &HeaderMap,
        body: &[u8],
        now: Timestamp,
    ) -> ModelFailure {
        let failure = match self {
            Self::AnthropicMessages | Self::BedrockInvoke | Self::VertexRawPredict => {
                failure::from_response(url, status, headers, body, now)
            }
            Self::OpenAiChat | Self::OpenAiResponses => {
                openai_shared::failure::from_response(status, headers, body, now)
            }
        };
        failure::named(url, failure)
    }
}

/// Reads a stream of any format: bytes in, things to show and one report out.
#[derive(Clone, Debug)]
pub struct AnswerReader(ByFormat);

#[derive(Clone, Debug)]
enum ByFormat {
    Messages(Box<StreamReader>),
    Bedrock(Box<BedrockReader>),
    Chat(Box<FormatReader<openai_chat::Chat>>),
    Responses(Box<FormatReader<openai_responses::Responses>>),
}

impl AnswerReader {
    /// Shows the events of the Messages API as they come, too. The other formats have none to show.
    pub fn keep_events(&mut self) {
        match &mut self.0 {
            ByFormat::Messages(reader) => reader.keep_events(),
            ByFormat::Bedrock(reader) => reader.keep_events(),
            ByFormat::Chat(_) | ByFormat::Responses(_) => {}
        }
    }

    /// Feeds bytes. See [`StreamReader::push_chunk`].
    pub fn push_chunk(&mut self, bytes: &[u8], out: &mut Vec<StreamDelta>) {
        match &mut self.0 {
            ByFormat::Messages(reader) => reader.push_chunk(bytes, out),
            ByFormat::Bedrock(reader) => reader.push_chunk(bytes, out),
            ByFormat::Chat(reader) => reader.push_chunk(bytes, out),
            ByFormat::Responses(reader) => reader.push_chunk(bytes, out),
        }
    }

    /// Returns a number that grows with everything that belongs to an answer, and not with what only keeps a connection
    /// open.
    pub fn progress(&self) -> usize {
        match &self.0 {
            ByFormat::Messages(reader) => reader.progress(),
            ByFormat::Bedrock(reader) => reader.progress(),
            ByFormat::Chat(reader) => reader.progress(),
            ByFormat::Responses(reader) => reader.progress(),
        }
    }

    /// Returns whether the outcome is settled.
    pub fn is_complete(&self) -> bool {
        match &self.0 {
            ByFormat::Messages(reader) => reader.is_complete(),
            ByFormat::Bedrock(reader) => reader.is_complete(),
            ByFormat::Chat(reader) => reader.is_complete(),
            ByFormat::Responses(reader) => reader.is_complete(),
        }
    }

    /// Ends the reader, since the connection has ended or [`AnswerReader::is_complete`].
    pub fn finish(self) -> StreamReport {
        match self.0 {
            ByFormat::Messages(reader) => reader.finish(),
            ByFormat::Bedrock(reader) => reader.finish(),
            ByFormat::Chat(reader) => reader.finish(),
            ByFormat::Responses(reader) => reader.finish(),
        }
    }
}
