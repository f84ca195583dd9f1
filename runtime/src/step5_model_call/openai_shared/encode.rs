//! What a view is made of, seen as the OpenAI formats see it, and the joining of a request.
//!
//! Both formats have the same limits: a result of a tool is text, images belong to
//! the user, and reasoning of another provider is not sent.
//!
//! Cost: a message is put into a format once, and its text is kept ([`forms`](super::forms)). A request
//! refers to the texts of what the view says is settled, of which nothing is hashed, encoded or copied
//! again. System prompt and tools are encoded once for a session.

use std::{borrow::Cow, sync::Arc};

use serde_json::Value;

use super::forms::RequestForm;
use crate::{
    block::{Block, BlockKind, quote},
    digest::Digest,
    shared::SharedList,
    step5_model_call::{
        request::{EncodedHead, EncodedRequest, PrefixChain},
        view::{SettledMessage, ViewMessage},
    },
    wire_body::WireBody,
};

/// Precedes the text of a result that is an error: these formats have no field for it.
const ERROR_PREFIX: &str = "Error: ";

/// Encodes the request for the messages of a view, those that are settled and the rest, given the chain of the request
/// before; the chain is brought up to this request. Bytes and digest do not depend on what the chain held. `stable` is
/// what never changes, up to the opened list of messages. Where the body is not written, the request has an empty one,
/// and nothing of the settled part is looked at.
pub(crate) fn join(
    head: &EncodedHead,
    (form, stable): (RequestForm, &str),
    (settled, rest): (&SharedList<SettledMessage>, &[ViewMessage]),
    chain: &mut PrefixChain,
    writes: bool,
) -> EncodedRequest {
    chain.forms.follow(&form, settled, rest);
    // A comma is in front of each text, but the first where the list is empty.
    let has_before = !stable.ends_with('[');
    let n_kept = chain.forms.n_settled(has_before);
    let n_front = form.parameters.len() + stable.len();
    let n_back = chain.forms.n_bytes(has_before) - n_kept + "]}".len();
    let body = if writes {
        let front = [&*form.parameters, stable].concat().into_bytes();
        let mut back = Vec::with_capacity(n_back);
        chain.forms.push_rest(has_before, &mut back);
        back.extend_from_slice(b"]}");
        WireBody::with_kept(front, (chain.forms.settled_texts(has_before), n_kept), back)
    } else {
        WireBody::default()
    };
    let parameters = form.mark.chain(Digest::of(form.parameters.as_bytes()));
    let digest = chain.follow(parameters.chain(head.stable_digest()), settled, rest);
    let n_bytes = (n_front + n_kept + n_back) as u64;
    EncodedRequest { body, n_bytes, digest, headers: Arc::default() }
}

/// Returns the system prompt as one text; `None` when there is none.
pub(crate) fn system_text(segments: &[String]) -> Option<String> {
    let segments: Vec<&str> =
        segments.iter().map(String::as_str).filter(|it| !it.trim().is_empty()).collect();
    (!segments.is_empty()).then(|| segments.join("\n\n"))
}

/// A part of what the user says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UserPart<'a> {
    Text(Cow<'a, str>),
    /// The address of an image, or an image as a data URL.
    Image(String),
    /// A document as a data URL.
    File {
        name: String,
        data: String,
    },
}

/// A message of the user: first the results of tools, then the texts.
#[derive(Debug, Default)]
pub(crate) struct UserMessage<'a> {
    /// Results in order: id of the call and text.
    pub(crate) results: Vec<(&'a str, Cow<'a, str>)>,
    pub(crate) parts: Vec<UserPart<'a>>,
}

impl<'a> UserMessage<'a> {
    pub(crate) fn of(message: &'a ViewMessage) -> Self {
        let mut this = Self::default();
        let mut own_texts = Vec::new();
        for block in &message.blocks {
            match block.kind() {
                BlockKind::ToolResult { id, text, is_error } => {
                    let text = if *is_error {
                        Cow::Owned(format!("{ERROR_PREFIX}{text}"))
                    } else {
                        Cow::Borrowed(&**text)
                    };
                    this.results.push((id.as_str(), text));
                    this.media_of_result(id.as_str(), block);
                }
                BlockKind::Text(text) => own_texts.push(UserPart::Text(Cow::Borrowed(text))),
                BlockKind::Opaque { kind } => {
                    let value = json_of(block);
                    let stub =
                        || UserPart::Text(format!("[a block of type {kind} is left out]").into());
                    own_texts.push(media(&value).unwrap_or_else(stub));
                }
                // Never in a message of the user.
                BlockKind::Thinking { .. }
                | BlockKind::RedactedThinking
                | BlockKind::ToolUse { .. }
                | BlockKind::StopRequest
                | BlockKind::Error(_) => {}
            }
        }
        this.parts.append(&mut own_texts);
        this
    }

    /// Images and documents in a result: the result itself can only be text, so they are in
    /// what the user says next, with the call they belong to.
    fn media_of_result(&mut self, call: &str, block: &Block) {
        // Nearly every result is text, and long ones are not to be read again.
        if block.wire_open().contains(r#""content":""#) {
            return;
        }
        let value = json_of(block);
        let content = value["content"].as_array().map_or(&[][..], Vec::as_slice);
        let media: Vec<UserPart<'a>> =
            content.iter().filter(|it| it["type"] != "text").filter_map(media).collect();
        if !media.is_empty() {
            self.parts.push(UserPart::Text(format!("[from the result of call {call}]").into()));
            self.parts.extend(media);
        }
    }

    /// Joins all parts to one text; `None` unless they are texts.
    pub(crate) fn only_text(&self) -> Option<String> {
        let text = |it: &UserPart<'a>| match it {
            UserPart::Text(text) => Some(text.to_string()),
            UserPart::Image(_) | UserPart::File { .. } => None,
        };
        let texts: Option<Vec<String>> = self.parts.iter().map(text).collect();
        Some(texts?.join("\n\n"))
    }
}

fn json_of(block: &Block) -> Value {
    let mut wire = Vec::with_capacity(block.wire_open().len() + 1);
    block.push_wire(&mut wire);
    serde_json::from_slice(&wire).unwrap_or_default()
}

/// An image or a document; `None` when it is neither, or its source is kept at another provider.
fn media(block: &Value) -> Option<UserPart<'static>> {
    let source = &block["source"];
    let word = |name: &str| source[name].as_str();
    let data_url = || Some(format!("data:{};base64,{}", word("media_type")?, word("data")?));
    match (block["type"].as_str()?, word("type")?) {
        ("image", "base64") => data_url().map(UserPart::Image),
        ("image", "url") => word("url").map(|it| UserPart::Image(it.to_owned())),
        ("document", "text") => word("data").map(|it| UserPart::Text(it.to_owned().into())),
        ("document", "url") => {
            Some(UserPart::Text(format!("[document at {}]", word("url")?).into()))
        }
        ("document", "base64") => {
            let name = block["title"].as_str().unwrap_or("document.pdf").to_owned();
            Some(UserPart::File { name, data: data_url()? })
        }
        _ => None,
    }
}

/// Returns the id of a call as it is sent: a longer one than the format takes is replaced by its digest.
pub(crate) fn sent_id(id: &str, max_chars: usize) -> String {
    if id.len() <= max_chars {
        quote(id)
    } else {
        quote(&format!("call_{}", Digest::of(id.as_bytes())))
    }
}

/// Joins the texts of a list by commas.
pub(crate) fn joined(items: impl IntoIterator<Item = String>) -> String {
    items.into_iter().collect::<Vec<_>>().join(",")
}
