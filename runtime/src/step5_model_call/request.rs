//! Writes requests for the Messages API.
//!
//! Alone because its cost rule is its own: blocks are encoded once, so a request is kept texts
//! joined, and the digest of a request is a chain of which the unchanged front is kept.

use std::{fmt, sync::Arc};

use bytes::Bytes;

use super::view::{View, ViewMessage};
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
    /// The model.
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
}

/// A head in bytes. Cheap to clone.
#[derive(Clone)]
pub struct EncodedHead {
    /// What it was made from. Ceiling, way of answering and model are those to be sent.
    head: Arc<RequestHead>,
    /// The members `system` and `tools`, each with a comma in front.
    stable: Arc<str>,
    stable_digest: Digest,
}

/// A request, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedRequest {
    /// The JSON text.
    pub body: Bytes,
    /// Covers the head and every block: equal requests have equal digests.
    pub digest: Digest,
}

/// The chain of the request before, so that only what is new is hashed.
#[derive(Clone, Debug, Default)]
pub struct PrefixChain {
    head: Digest,
    /// Each item (role or block) and the chain up to and with it.
    links: Vec<(Digest, Digest)>,
}

impl EncodedHead {
    /// The bytes of a head. The same head gives the same bytes.
    pub fn new(head: RequestHead) -> Self {
        let mut stable = String::new();
        let segments = head.system.iter().filter(|it| !it.trim().is_empty());
        push_list(&mut stable, "system", segments, |out, segment| {
            out.push_str(r#"{"type":"text","text":"#);
            out.push_str(&quote(segment));
            // The place of a cache mark.
            out.push('}');
        });
        push_list(&mut stable, "tools", head.tools.iter(), |out, tool| {
            out.push_str(r#"{"name":"#);
            out.push_str(&quote(tool.name.as_str()));
            out.push_str(r#","description":"#);
            out.push_str(&quote(&tool.description));
            out.push_str(r#","input_schema":"#);
            out.push_str(&tool.input_schema);
            // The place of a cache mark.
            out.push('}');
        });
        Self {
            head: Arc::new(head),
            stable_digest: Digest::of(stable.as_bytes()),
            stable: stable.into(),
        }
    }

    /// The same system prompt and tools with other parameters; encodes nothing again.
    #[must_use]
    pub fn with(&self, model: &str, max_tokens: u32, stream: bool) -> Self {
        let same = &*self.head.model == model && self.head.max_tokens == max_tokens;
        if same && self.head.stream == stream {
            return self.clone();
        }
        let RequestHead { system, tools, .. } = &*self.head;
        let (system, tools) = (system.clone(), tools.clone());
        let head = RequestHead { model: model.into(), max_tokens, stream, system, tools };
        Self { head: Arc::new(head), ..self.clone() }
    }

    /// Whether it was made from an equal head.
    pub fn is_of(&self, head: &RequestHead) -> bool {
        *self.head == *head
    }

    /// What it was made from.
    pub fn head(&self) -> &RequestHead {
        &self.head
    }

    /// The members that change, from the opening brace on.
    fn parameters(&self) -> String {
        let stream = if self.head.stream { r#","stream":true"# } else { "" };
        let model = quote(&self.head.model);
        format!(r#"{{"model":{model},"max_tokens":{}{stream}"#, self.head.max_tokens)
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
/// request. Bytes and digest do not depend on what the chain held.
pub fn encode(head: &EncodedHead, view: &View, chain: &mut PrefixChain) -> EncodedRequest {
    let parameters = head.parameters();
    let n_bytes = parameters.len() + head.stable.len() + 16 + size_of(&view.messages);
    let mut body = Vec::with_capacity(n_bytes);
    body.extend_from_slice(parameters.as_bytes());
    body.extend_from_slice(head.stable.as_bytes());
    body.extend_from_slice(br#","messages":["#);
    for (i, message) in view.messages.iter().enumerate() {
        if 0 < i {
            body.push(b',');
        }
        push_message(message, &mut body);
    }
    body.extend_from_slice(b"]}");
    let head = Digest::of(parameters.as_bytes()).chain(head.stable_digest);
    let digest = chain.follow(head, &view.messages);
    EncodedRequest { body: body.into(), digest }
}

impl PrefixChain {
    /// The digest of head and messages; hashes only behind the last item that is as before.
    fn follow(&mut self, head: Digest, messages: &[ViewMessage]) -> Digest {
        if self.head != head {
            self.head = head;
            self.links.clear();
        }
        let items = messages.iter().flat_map(|message| {
            let role = match message.role {
                Role::User | Role::System => USER,
                Role::Assistant => ASSISTANT,
            };
            std::iter::once(role).chain(message.blocks.iter().map(Block::digest))
        });
        let mut last = head;
        let mut n_items = 0;
        for item in items {
            match self.links.get(n_items) {
                Some((same, after)) if *same == item => last = *after,
                _ => {
                    self.links.truncate(n_items);
                    last = last.chain(item);
                    self.links.push((item, last));
                }
            }
            n_items += 1;
        }
        self.links.truncate(n_items);
        last
    }
}

fn push_message(message: &ViewMessage, body: &mut Vec<u8>) {
    let open: &[u8] = match message.role {
        Role::User | Role::System => br#"{"role":"user","content":["#,
        Role::Assistant => br#"{"role":"assistant","content":["#,
    };
    body.extend_from_slice(open);
    for (i, block) in message.blocks.iter().enumerate() {
        if 0 < i {
            body.push(b',');
        }
        // A cache mark would stand between `wire_open` and the brace.
        block.push_wire(body);
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
