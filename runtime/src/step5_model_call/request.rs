//! Writes requests for the Messages API.
//!
//! It has a cost rule of its own: blocks are encoded once, a request refers to the texts of what is settled and
//! joins only those after it, and its digest is a chain of which the unchanged front is kept.

mod chain;
mod marks;
mod settled;

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

pub use chain::PrefixChain;
pub use marks::{CachePlan, PromptCaching};

use self::{marks::BlockIndex, settled::SettledTexts};
use super::{
    adaptation::Parameters,
    envelope::{self, Opening},
    view::{GrownView, SettledMessage, View, ViewMessage},
    wire_format::WireFormat,
};
use crate::{
    block::quote, digest::Digest, shared::SharedList, tool::ToolSpec, wire_body::WireBody,
};

/// Everything in front of the messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHead {
    /// Name of the model, as the provider knows it.
    pub model: Arc<str>,
    /// The output ceiling, in tokens.
    pub max_tokens: u32,
    /// Whether the answer is to come as a stream.
    pub stream: bool,
    /// The segments of the system prompt, in order; what never changes first. Blank ones are left
    /// out.
    pub system: Vec<String>,
    /// The tools, in the order in which they are to be sent; sorted by name by who lists them.
    pub tools: Vec<Arc<ToolSpec>>,
    /// What is marked for the provider's cache. A format without marks takes no notice.
    pub cache: CachePlan,
    /// Everything else, as the model takes it.
    pub parameters: Arc<Parameters>,
}

/// A head in bytes. Cheap to clone.
#[derive(Clone)]
pub struct EncodedHead {
    /// What it was made from. Ceiling, way of answering and model are those to be sent.
    head: Arc<RequestHead>,
    /// The members `system` and `tools`, each with a comma in front.
    stable: Arc<str>,
    stable_digest: Digest,
    /// The same in other formats, made when first asked for.
    in_other_forms: Arc<[OnceLock<String>; 2]>,
}

/// A request, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedRequest {
    /// The request, as JSON text. It refers to the texts of messages that are settled.
    pub body: WireBody,
    /// Its bytes, also where a walk over a recorded turn leaves it empty.
    pub n_bytes: u64,
    /// Covers the head and every block: equal requests have equal digests.
    pub digest: Digest,
    /// Headers that go with it in addition to those of the provider; names in lower case.
    pub headers: Arc<[(String, String)]>,
}

impl EncodedHead {
    /// Encodes a head. The same head gives the same bytes.
    pub fn new(head: RequestHead) -> Self {
        let of_tool = |it: &Arc<ToolSpec>| it.description.len() + it.input_schema.len() + 128;
        let n_bytes = head.system.iter().map(|it| it.len() + 64).sum::<usize>()
            + head.tools.iter().map(of_tool).sum::<usize>();
        let mut stable = String::with_capacity(n_bytes);
        let mark = head.cache.caching.mark();
        let end_of = |is_last: bool| mark.filter(|_| is_last).unwrap_or("}");
        let is_said = |it: &(usize, &String)| !it.1.trim().is_empty();
        let segments = head.system.iter().enumerate().filter(is_said);
        let last = segments.clone().take_while(|it| it.0 < head.cache.n_static).last();
        push_list(&mut stable, "system", segments, |out, segment| {
            out.push_str(r#"{"type":"text","text":"#);
            out.push_str(&quote(segment.1));
            out.push_str(end_of(Some(segment) == last));
        });
        let last = head.tools.len();
        push_list(&mut stable, "tools", (1..).zip(&head.tools), |out, (number, tool)| {
            out.push_str(r#"{"name":"#);
            out.push_str(&quote(tool.name.as_str()));
            out.push_str(r#","description":"#);
            out.push_str(&quote(&tool.description));
            out.push_str(r#","input_schema":"#);
            out.push_str(&tool.input_schema);
            out.push_str(end_of(number == last));
        });
        Self {
            head: Arc::new(head),
            stable_digest: Digest::of(stable.as_bytes()),
            stable: stable.into(),
            in_other_forms: Arc::default(),
        }
    }

    /// Returns what never changes, as Chat Completions wants it.
    pub(super) fn in_chat_form(&self, make: fn(&RequestHead) -> String) -> &str {
        self.in_other_forms[0].get_or_init(|| make(&self.head))
    }

    /// Returns what never changes, as the Responses API wants it.
    pub(super) fn in_responses_form(&self, make: fn(&RequestHead) -> String) -> &str {
        self.in_other_forms[1].get_or_init(|| make(&self.head))
    }

    /// Returns the digest of system prompt and tools.
    pub(super) fn stable_digest(&self) -> Digest {
        self.stable_digest
    }

    /// Returns the head with other parameters. System prompt and tools are the same, and nothing is encoded again.
    #[must_use]
    pub fn with(&self, model: &str, max_tokens: u32, stream: bool) -> Self {
        let same = &*self.head.model == model && self.head.max_tokens == max_tokens;
        if same && self.head.stream == stream {
            return self.clone();
        }
        let head = RequestHead { model: model.into(), max_tokens, stream, ..(*self.head).clone() };
        Self { head: Arc::new(head), ..self.clone() }
    }

    /// Returns the head with these further parameters. Nothing is encoded again.
    #[must_use]
    pub(crate) fn with_parameters(&self, parameters: Parameters) -> Self {
        if *self.head.parameters == parameters {
            return self.clone();
        }
        let head = RequestHead { parameters: Arc::new(parameters), ..(*self.head).clone() };
        Self { head: Arc::new(head), ..self.clone() }
    }

    /// Returns whether it was made from an equal head.
    pub fn matches(&self, head: &RequestHead) -> bool {
        *self.head == *head
    }

    /// Returns the head that it was made from.
    pub fn head(&self) -> &RequestHead {
        &self.head
    }
}

impl fmt::Debug for EncodedHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncodedHead")
            .field("model", &self.head.model)
            .field("max_tokens", &self.head.max_tokens)
            .field("stream", &self.head.stream)
            .field("stable", &self.stable_digest)
            .finish()
    }
}

/// Encodes the request for a view, given the chain of the request before; the chain is brought up to this request.
/// Bytes and digest do not depend on what the chain held. `format` is one of those that Claude is served in.
pub fn encode(
    format: WireFormat,
    head: &EncodedHead,
    view: &View,
    chain: &mut PrefixChain,
) -> EncodedRequest {
    encode_parts(format, head, (&SharedList::default(), &view.messages), chain, true)
}

/// Encodes the request for a view that continues another one. Where the body is not written, the request has an empty
/// one, and nothing of the settled part is looked at.
pub(super) fn encode_grown(
    format: WireFormat,
    head: &EncodedHead,
    view: &GrownView,
    chain: &mut PrefixChain,
    writes: bool,
) -> EncodedRequest {
    let is_split = view.settled.last().is_some();
    let is_marked = head.head.cache.caching.mark().is_some();
    if is_split && is_marked && marks::places(&view.rest.messages).contains(&None) {
        let whole = view.whole().messages;
        return encode_parts(format, head, (&SharedList::default(), &whole), chain, writes);
    }
    encode_parts(format, head, (&view.settled, &view.rest.messages), chain, writes)
}

fn encode_parts(
    format: WireFormat,
    head: &EncodedHead,
    (settled, rest): (&SharedList<SettledMessage>, &[ViewMessage]),
    chain: &mut PrefixChain,
    writes: bool,
) -> EncodedRequest {
    const MESSAGES: &str = r#","messages":["#;
    // It looks at the newest messages alone, which are never settled.
    let Opening { members, headers, outside } = envelope::open(format, &head.head, rest);
    let mark = head.head.cache.caching.mark();
    let places = mark.map(|_| marks::places(rest)).unwrap_or_default();
    let close = mark.unwrap_or("}");
    let n_settled = settled.last().map_or(0, |it| it.up_to.n_bytes);
    let n_rest: usize = rest.iter().map(|it| it.wire_len() + 1).sum();
    // After each message but the last there is a comma.
    let n_messages = (n_settled + n_rest).saturating_sub(1);
    let n_marks = places.iter().flatten().count() * (close.len() - 1);
    let n_bytes =
        members.len() + head.stable.len() + MESSAGES.len() + n_messages + n_marks + "]}".len();
    let body = if writes {
        let front = [&*members, &*head.stable, MESSAGES].concat().into_bytes();
        // What is settled bears no mark.
        let n_kept = n_settled.saturating_sub(1);
        let mut back = Vec::with_capacity(n_bytes - n_kept - front.len());
        for (i, message) in rest.iter().enumerate() {
            let of_message = |it: BlockIndex| (it.0 == i).then_some(it.1);
            let marked = places.map(|it| it.and_then(of_message));
            back.extend_from_slice(message.opening(0 < i || 0 < n_settled).as_bytes());
            push_blocks(message, close, marked, &mut back);
        }
        back.extend_from_slice(b"]}");
        SettledTexts::body(front, (settled, n_kept), back)
    } else {
        WireBody::default()
    };
    let mut before = Digest::of(members.as_bytes()).chain(head.stable_digest);
    if !outside.is_empty() {
        before = before.chain(Digest::of(outside.as_bytes()));
    }
    if let Some(mark) = mark {
        // Where the marks of messages are follows from the messages.
        before = before.chain(Digest::of(mark.as_bytes()));
    }
    let digest = chain.follow(before, settled, rest);
    EncodedRequest { body, n_bytes: n_bytes as u64, digest, headers }
}

/// `mark` closes the blocks at the places `marked`.
fn push_blocks(message: &ViewMessage, mark: &str, marked: [Option<usize>; 2], body: &mut Vec<u8>) {
    for (i, block) in message.blocks.iter().enumerate() {
        if 0 < i {
            body.push(b',');
        }
        if marked.contains(&Some(i)) {
            body.extend_from_slice(block.wire_open().as_bytes());
            body.extend_from_slice(mark.as_bytes());
        } else {
            block.push_wire(body);
        }
    }
    body.extend_from_slice(b"]}");
}

/// Appends `,"name":[…]`, or nothing for an empty list.
fn push_list<T>(
    out: &mut String,
    name: &str,
    items: impl Iterator<Item = T>,
    mut push: impl FnMut(&mut String, T),
) {
    let mut n_items = 0;
    for item in items {
        match n_items {
            0 => out.push_str(&format!(r#","{name}":["#)),
            _ => out.push(','),
        }
        push(out, item);
        n_items += 1;
    }
    if 0 < n_items {
        out.push(']');
    }
}

#[cfg(test)]
mod tests;
