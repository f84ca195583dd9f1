//! What the body and the headers of an error answer say, no matter who wrote them.
//!
//! Every provider, and every gateway in front of one, has a shape of its own; after
//! this there is one.

use http::HeaderMap;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::step5_model_call::{
    bedrock,
    failure::header,
    stream::wire::{ErrorBody, WireText},
};

/// Characters of a body that is not an error object which are shown to people.
pub(super) const MAX_SHOWN_CHARS: usize = 300;

#[derive(Debug, Default)]
pub(super) struct ProviderError {
    /// The type of the error in the words of the Messages API; empty when there is none.
    pub(super) kind: String,
    /// The code of servers that speak the other dialect; empty when there is none.
    pub(super) code: String,
    /// For people, with the provider's name for the request after it.
    pub(super) message: String,
}

/// `{"error":{…},"request_id":…}` of the Messages API and of Vertex, `{"message":…}` of Bedrock.
#[derive(Default, Deserialize)]
struct ErrorResponse<'a> {
    #[serde(borrow)]
    error: Option<ErrorBody<'a>>,
    #[serde(borrow, alias = "Message")]
    message: Option<WireText<'a>>,
    #[serde(borrow)]
    request_id: Option<WireText<'a>>,
}

impl ProviderError {
    /// Reads an answer that is an error.
    pub(super) fn read(headers: &HeaderMap, body: &str) -> Self {
        let header = |name: &str| header(headers, name);
        // Vertex puts the error of a stream into a list.
        let object = body.trim().strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        let body_of: ErrorResponse<'_> =
            serde_json::from_str(object.unwrap_or(body)).unwrap_or_default();
        let text =
            |text: Option<WireText<'_>>| text.map(|it| it.0.into_owned()).unwrap_or_default();
        let (mut kind, code, mut message) = match body_of.error {
            Some(error) => {
                let code = error.code.map_or("", RawValue::get).trim_matches('"').to_owned();
                (text(error.kind), code, text(error.message))
            }
            None => (String::new(), String::new(), text(body_of.message)),
        };
        // `ThrottlingException:http://internal.amazon.com/…`
        if let Some(name) = header("x-amzn-errortype").filter(|_| kind.is_empty()) {
            let name = name.split(':').next().unwrap_or(name);
            kind = bedrock::error_kind(name).to_owned();
            message = if message.is_empty() { name.to_owned() } else { message };
        }
        if message.is_empty() {
            message = body_excerpt(body);
        }
        let named = ["request-id", "x-request-id", "x-amzn-requestid"].into_iter().find_map(header);
        let request = body_of.request_id.map(|it| it.0.into_owned());
        if let Some(request) = request.as_deref().or(named).filter(|it| !it.is_empty()) {
            message = format!("{message} (request {request})");
        }
        Self { kind, code, message }
    }
}

/// Returns a body that is not an error object, as far as it helps a person: the title of a page, or its begin.
pub(in crate::step5_model_call) fn body_excerpt(body: &str) -> String {
    let body = body.trim();
    if body.is_empty() {
        return "no body".into();
    }
    let is_page = body.starts_with('<');
    let title = body.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
    let text = title.filter(|_| is_page).map_or(body, |(title, _)| title.trim());
    text.chars().take(MAX_SHOWN_CHARS).collect()
}
