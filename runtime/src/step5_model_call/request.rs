//! Writes requests for the Messages API.
//!
//! It has a cost rule of its own: blocks are encoded once, so a request is kept texts
//! joined, and the digest of a request is a chain of which the unchanged front is kept.

mod marks;

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
pub use marks::{CachePlan, PromptCaching};

use self::marks::BlockIndex;
use super::{
    adaptation::Parameters,
    envelope::{self, Opening},
    openai_shared::encode::Forms,
    view::{View, ViewMessage},
    wire_format::WireFormat,
};
use crate::{
    block::{Block, quote},
    digest::Digest,
    message::Role,
    tool::ToolSpec,
};

/// Stand in the chain where a message begins. No digest of a block takes these values but by
/// chance.
const USER: Digest = Digest(*b"ennead role user");
const ASSISTANT: Digest = Digest(*b"ennead role asst");

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
    /// The request, as JSON text.
    pub body: Bytes,
    /// Covers the head and every block: equal requests have equal digests.
    pub digest: Digest,
    /// Headers that go with it in addition to those of the provider; names in lower case.
    pub headers: Arc<[(String, String)]>,
}

/// The chain of the request before, so that only what is new is hashed.
#[derive(Clone, Debug, Default)]
pub struct PrefixChain {
    head: Digest,
    /// Each item (role or block) and the chain up to and with it.
    links: Vec<(Digest, Digest)>,
    /// The first item of the request before that is not in this one, at its place.
    changed: Option<usize>,
    /// Messages in the form of another provider.
    pub(super) forms: Forms,
}

impl EncodedHead {
    /// The bytes of a head. The same head gives the same bytes.
    pub fn new(head: RequestHead) -> Self {
        let mut stable = String::new();
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

    /// What never changes, as Chat Completions wants it.
    pub(super) fn in_chat_form(&self, make: fn(&RequestHead) -> String) -> &str {
        self.in_other_forms[0].get_or_init(|| make(&self.head))
    }

    /// What never changes, as the Responses API wants it.
    pub(super) fn in_responses_form(&self, make: fn(&RequestHead) -> String) -> &str {
        self.in_other_forms[1].get_or_init(|| make(&self.head))
    }

    /// The digest of system prompt and tools.
    pub(super) fn stable_digest(&self) -> Digest {
        self.stable_digest
    }

    /// The same system prompt and tools with other parameters; encodes nothing again.
    #[must_use]
    pub fn with(&self, model: &str, max_tokens: u32, stream: bool) -> Self {
        let same = &*self.head.model == model && self.head.max_tokens == max_tokens;
        if same && self.head.stream == stream {
            return self.clone();
        }
        let head = RequestHead { model: model.into(), max_tokens, stream, ..(*self.head).clone() };
        Self { head: Arc::new(head), ..self.clone() }
    }

    /// The same with these further parameters; encodes nothing again.
    #[must_use]
    pub fn with_parameters(&self, parameters: Parameters) -> Self {
        if *self.head.parameters == parameters {
            return self.clone();
        }
        let head = RequestHead { parameters: Arc::new(parameters), ..(*self.head).clone() };
        Self { head: Arc::new(head), ..self.clone() }
    }

    /// Whether it was made from an equal head.
    pub fn matches(&self, head: &RequestHead) -> bool {
        *self.head == *head
    }

    /// What it was made from.
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

/// The request for a view, given the chain of the request before; the chain is brought up to this
/// request. Bytes and digest do not depend on what the chain held. `format` is one of those that
/// Claude is served in.
pub fn encode(
    format: WireFormat,
    head: &EncodedHead,
    view: &View,
    chain: &mut PrefixChain,
) -> EncodedRequest {
    let Opening { members, headers, outside } = envelope::open(format, &head.head, &view.messages);
    let n_bytes = members.len() + head.stable.len() + 128 + size_of(&view.messages);
    let mut body = Vec::with_capacity(n_bytes);
    body.extend_from_slice(members.as_bytes());
    body.extend_from_slice(head.stable.as_bytes());
    body.extend_from_slice(br#","messages":["#);
    let mark = head.head.cache.caching.mark();
    let places = mark.map(|_| marks::places(&view.messages)).unwrap_or_default();
    for (i, message) in view.messages.iter().enumerate() {
        if 0 < i {
            body.push(b',');
        }
        let of_message = |it: BlockIndex| (it.0 == i).then_some(it.1);
        let marked = places.map(|it| it.and_then(of_message));
        push_message(message, mark.unwrap_or("}"), marked, &mut body);
    }
    body.extend_from_slice(b"]}");
    let mut before = Digest::of(members.as_bytes()).chain(head.stable_digest);
    if !outside.is_empty() {
        before = before.chain(Digest::of(outside.as_bytes()));
    }
    if let Some(mark) = mark {
        // Where the marks of messages are follows from the messages.
        before = before.chain(Digest::of(mark.as_bytes()));
    }
    let digest = chain.follow(before, &view.messages);
    EncodedRequest { body: body.into(), digest, headers }
}

impl PrefixChain {
    /// The place of the first item (role or block) of the request before that this one does not
    /// have there; `None` when it goes on from the one before.
    pub fn first_change(&self) -> Option<usize> {
        self.changed
    }

    /// The digest of head and messages; hashes only after the last item that is as before.
    pub(super) fn follow(&mut self, head: Digest, messages: &[ViewMessage]) -> Digest {
        // Behind another head nothing of the chain holds, but what was sent is still known.
        let mut holds = self.head == head;
        self.head = head;
        let items = messages.iter().flat_map(|message| {
            let role = match message.role {
                Role::User | Role::System => USER,
                Role::Assistant => ASSISTANT,
            };
            std::iter::once(role).chain(message.blocks.iter().map(Block::digest))
        });
        let n_before = self.links.len();
        let mut n_same = 0;
        let mut last = head;
        let mut n_items = 0;
        for item in items {
            match self.links.get_mut(n_items) {
                Some((same, after)) if *same == item => {
                    if !holds {
                        *after = last.chain(item);
                    }
                    last = *after;
                    n_same += usize::from(n_same == n_items);
                }
                _ => {
                    holds = false;
                    self.links.truncate(n_items);
                    last = last.chain(item);
                    self.links.push((item, last));
                }
            }
            n_items += 1;
        }
        self.links.truncate(n_items);
        self.changed = (n_same < n_before).then_some(n_same);
        last
    }
}

/// `mark` closes the blocks at the places `marked`.
fn push_message(message: &ViewMessage, mark: &str, marked: [Option<usize>; 2], body: &mut Vec<u8>) {
    let open: &[u8] = match message.role {
        Role::User | Role::System => br#"{"role":"user","content":["#,
        Role::Assistant => br#"{"role":"assistant","content":["#,
    };
    body.extend_from_slice(open);
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

/// Bytes that the messages will take, within a few.
fn size_of(messages: &[ViewMessage]) -> usize {
    let of_blocks = |it: &ViewMessage| -> usize {
        it.blocks.iter().map(|block| block.wire_open().len() + 2).sum()
    };
    messages.iter().map(|it| of_blocks(it) + 40).sum()
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
