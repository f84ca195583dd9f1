//! How a request for Claude opens, by who serves it.
//!
//! Tools, system prompt and messages are the same everywhere; only what comes in
//! front of them differs, and where a model, a version and betas are named.

use std::sync::Arc;

use super::{request::RequestHead, view::ViewMessage, wire_format::WireFormat};
use crate::json::{JsonPiece, join};

/// The version of the API, as Bedrock wants it in the body.
const BEDROCK_VERSION: &str = "bedrock-2023-05-31";

/// The version of the API, as Vertex wants it in the body.
const VERTEX_VERSION: &str = "vertex-2023-10-16";

/// What goes in front of the members `system`, `tools` and `messages`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Opening {
    /// The members that change, from the opening brace on.
    pub(super) members: String,
    /// Headers that belong to this request.
    pub(super) headers: Arc<[(String, String)]>,
    /// What is sent outside the body: model and way of answering where the address names them, and
    /// betas of the header. Empty when the body says it all.
    pub(super) outside: String,
}

/// Returns the opening of a request to be sent in this format.
pub(super) fn open(format: WireFormat, head: &RequestHead, messages: &[ViewMessage]) -> Opening {
    let streams = if head.stream { r#","stream":true"# } else { "" };
    let ceiling = head.max_tokens;
    let mut outside = String::new();
    let mut members = match format {
        WireFormat::BedrockInvoke => {
            let betas = match head.parameters.quoted_betas() {
                none if none.is_empty() => none,
                betas => format!(r#","anthropic_beta":[{betas}]"#),
            };
            format!(r#"{{"anthropic_version":"{BEDROCK_VERSION}"{betas},"max_tokens":{ceiling}"#)
        }
        WireFormat::VertexRawPredict => {
            format!(r#"{{"anthropic_version":"{VERTEX_VERSION}","max_tokens":{ceiling}{streams}"#)
        }
        _ => {
            let mut digits = itoa::Buffer::new();
            join(&[
                JsonPiece::Json(r#"{"model":"#),
                JsonPiece::Text(&head.model),
                JsonPiece::Json(r#","max_tokens":"#),
                JsonPiece::Json(digits.format(ceiling)),
                JsonPiece::Json(streams),
            ])
        }
    };
    if matches!(format, WireFormat::BedrockInvoke | WireFormat::VertexRawPredict) {
        outside = format!("{} {}", head.stream, head.model);
    }
    head.parameters.for_messages(messages).push_members(&mut members);
    let in_header =
        (format != WireFormat::BedrockInvoke).then(|| head.parameters.beta_header()).flatten();
    if let Some(betas) = &in_header {
        outside = format!("{outside}\n{betas}");
    }
    let headers = in_header.map(|betas| ("anthropic-beta".to_owned(), betas.to_string()));
    Opening { members, headers: headers.into_iter().collect(), outside }
}

#[cfg(test)]
mod tests;
