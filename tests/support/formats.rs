//! The wire formats, with the rules of their providers, and the requests that a history makes in them.

use std::sync::Arc;

use ennead_runtime::{
    message::Messages,
    step5_model_call::{
        request::{CachePlan, EncodedHead, PrefixChain, RequestHead},
        view::{ViewTarget, compile_for},
        wire_format::WireFormat,
    },
};
use serde_json::Value;

use super::provider_rules;

/// Checks a request by the rules of one format.
pub(crate) type Rules = fn(&Value) -> Result<(), String>;

/// The formats, and what a request in each is held to.
pub(crate) const FORMATS: [(WireFormat, Rules); 3] = [
    (WireFormat::AnthropicMessages, provider_rules::messages),
    (WireFormat::OpenAiChat, provider_rules::chat),
    (WireFormat::OpenAiResponses, provider_rules::responses),
];

/// Returns the body of the next request of a history in this format.
pub(crate) fn request(history: &Messages, format: WireFormat) -> Vec<u8> {
    let head = EncodedHead::new(RequestHead {
        model: "m".into(),
        max_tokens: 1_000,
        stream: true,
        system: vec!["be brief".into()],
        tools: Vec::new(),
        cache: CachePlan::default(),
        parameters: Arc::default(),
    });
    let mut view = compile_for(history, ViewTarget { format, model: Some("m") });
    view.end_with_user();
    format.encode(&head, &view, &mut PrefixChain::default()).body.to_bytes().to_vec()
}
