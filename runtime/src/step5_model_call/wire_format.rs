//! The wire formats that models are asked in: their names, addresses and abilities.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The type of the blocks that carry items of the Responses API whole. Only that format and the
/// model that made them are sent them again.
pub(crate) const OPENAI_ITEM: &str = "openai_item";

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
    /// The wire format in which requests and answers are written.
    pub format: WireFormat,
}

/// What requests in a format may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Features {
    /// A mark at the top level, for automatic caching.
    pub automatic_caching: bool,
    /// Tools that the provider runs itself, and their blocks in a conversation.
    pub server_tools: bool,
    /// Images and documents by address or by file id; without it only those sent whole.
    pub linked_media: bool,
    /// Whether the format has an endpoint `…/count_tokens`.
    pub counts_tokens: bool,
    /// Reasoning goes back with its signature, as blocks of the Messages API.
    pub signed_thinking: bool,
    /// The type of the blocks that carry items of the format itself, if it has such.
    pub items: Option<&'static str>,
}

#[doc(hidden)]
impl WireFormat {
    /// All formats, in the order in which documents list them.
    pub const ALL: [Self; 5] = [
        Self::AnthropicMessages,
        Self::BedrockInvoke,
        Self::VertexRawPredict,
        Self::OpenAiChat,
        Self::OpenAiResponses,
    ];

    /// Returns where requests go, for a server at this base address, which may end in `/v1`. Of Vertex the base goes
    /// down to the location: `https://HOST/v1/projects/P/locations/L`.
    pub fn url(self, base: &str, model: &str, streamed: bool) -> String {
        let base = base.trim_end_matches('/');
        match self {
            Self::AnthropicMessages => {
                format!("{}/v1/messages", base.strip_suffix("/v1").unwrap_or(base))
            }
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

    /// Returns where the tokens of a request are counted; `None` where the format has no such endpoint.
    pub fn counting_url(self, base: &str) -> Option<String> {
        let counts = self.features().counts_tokens;
        // Of formats with this endpoint no address depends on the model.
        counts.then(|| format!("{}/count_tokens", self.url(base, "", false)))
    }

    /// Returns what requests in this format may use. Blocks that it does not know are kept out of views.
    pub(crate) fn features(self) -> Features {
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
                items: Some(OPENAI_ITEM),
                ..elsewhere
            },
        }
    }
}

/// The base address of a server that speaks a format of OpenAI. Customarily the version is part of
/// it (`https://api.openai.com/v1`), so it is added only where there is no path at all.
fn versioned(base: &str) -> String {
    let after_scheme = base.split_once("://").map_or(base, |(_, rest)| rest);
    if after_scheme.contains('/') { base.to_owned() } else { format!("{base}/v1") }
}

/// A name as one segment of a path. Colons are in names of Bedrock and are escaped as its own
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

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: MDL-8
    #[test]
    fn base_address_may_end_in_the_version_or_not() {
        let url = |format: WireFormat, base: &str| format.url(base, "m", true);
        for base in ["https://host", "https://host/", "https://host/v1", "https://host/v1/"] {
            let messages = url(WireFormat::AnthropicMessages, base);
            assert_eq!(messages, "https://host/v1/messages");
            let chat = url(WireFormat::OpenAiChat, base);
            assert_eq!(chat, "https://host/v1/chat/completions");
            assert_eq!(url(WireFormat::OpenAiResponses, base), "https://host/v1/responses");
        }
        let counting = |format: WireFormat| format.counting_url("https://host/v1/");
        let there = counting(WireFormat::AnthropicMessages);
        assert_eq!(there.as_deref(), Some("https://host/v1/messages/count_tokens"));
        for format in WireFormat::ALL.into_iter().skip(1) {
            assert_eq!(counting(format), None);
        }
        let proxied = url(WireFormat::AnthropicMessages, "http://gateway:1/anthropic/v1");
        assert_eq!(proxied, "http://gateway:1/anthropic/v1/messages");
    }
}
