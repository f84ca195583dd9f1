//! The texts of messages in one of the OpenAI formats, kept from one request to the next.
//!
//! Texts of what a view says is settled are kept as they are. Those after it are kept under the digest of
//! what they were made from, by place. The texts are kept next to the blocks, so a conversation takes its
//! own length again in memory.

use std::sync::Arc;

use crate::{
    digest::Digest,
    message::Role,
    shared::SharedList,
    step5_model_call::view::{Extent, SettledMessage, ViewMessage},
    wire_body::KeptTexts,
};

/// How a format joins a request.
pub(crate) struct RequestForm {
    /// Sets its texts and digests apart from those of other formats.
    pub(crate) mark: Digest,
    /// The members that change, from the opening brace on.
    pub(crate) parameters: String,
    /// The list elements that represent a message, joined by commas; may be empty.
    pub(crate) message: fn(&ViewMessage) -> String,
}

/// The texts of all messages of a request. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Forms {
    /// Texts of the settled messages.
    settled: SharedList<SettledForm>,
    /// How much was settled when they were made.
    up_to: Extent,
    /// Texts of the messages after them.
    rest: Vec<KeyedText>,
}

/// A text, and what it was made from: the format, the role and the blocks.
#[derive(Clone, Debug)]
struct KeyedText {
    key: Digest,
    text: Arc<str>,
}

/// The text of a settled message.
#[derive(Clone, Debug)]
struct SettledForm {
    text: KeyedText,
    /// Bytes of all texts up to and with it, each with a comma.
    n_bytes: usize,
}

impl KeyedText {
    /// Counts what is sent for it, with a comma: nothing for an empty text.
    fn n_bytes(&self) -> usize {
        if self.text.is_empty() { 0 } else { self.text.len() + 1 }
    }
}

impl Forms {
    /// Follows the messages of a request. Makes texts of those alone that it has none of.
    pub(super) fn follow(
        &mut self,
        form: &RequestForm,
        settled: &SharedList<SettledMessage>,
        rest: &[ViewMessage],
    ) {
        if !self.holds(form, settled) {
            let kept = self.settled.iter().map(|it| it.text.clone());
            let rest = kept.chain(self.rest.drain(..)).collect();
            *self = Self { rest, ..Self::default() };
        }
        let n_before = self.settled.len();
        let new = settled.iter_from(n_before).map(|it| &*it.message);
        let mut n = 0;
        for message in new.chain(rest) {
            let key = key(form, message);
            if self.rest.get(n).is_none_or(|it| it.key != key) {
                self.rest.truncate(n);
                self.rest.push(KeyedText { key, text: (form.message)(message).into() });
            }
            n += 1;
        }
        self.rest.truncate(n);
        let mut n_bytes = self.n_each();
        for text in self.rest.drain(..settled.len() - n_before) {
            n_bytes += text.n_bytes();
            self.settled.push(SettledForm { text, n_bytes });
        }
        self.up_to = settled.last().map(|it| it.up_to).unwrap_or_default();
    }

    /// Whether the texts of the settled messages are those of the messages that are settled now.
    fn holds(&self, form: &RequestForm, settled: &SharedList<SettledMessage>) -> bool {
        let Some(at) = self.settled.len().checked_sub(1) else { return true };
        let is_of_form = || {
            let first = self.settled.get(0).zip(settled.get(0));
            first.is_some_and(|(text, it)| text.text.key == key(form, &it.message))
        };
        settled.get(at).is_some_and(|it| it.up_to == self.up_to) && is_of_form()
    }

    /// Appends the texts of the messages that are not settled, as they are sent.
    pub(super) fn push_rest(&self, has_before: bool, out: &mut Vec<u8>) {
        let mut follows = has_before || 0 < self.n_each();
        for text in self.rest.iter().map(|it| &it.text).filter(|it| !it.is_empty()) {
            if follows {
                out.push(b',');
            }
            out.extend_from_slice(text.as_bytes());
            follows = true;
        }
    }

    /// Returns the texts of the settled messages, as they are sent. `has_before` is whether something is in front of
    /// them in their list.
    pub(super) fn settled_texts(&self, has_before: bool) -> Arc<dyn KeptTexts> {
        Arc::new(SettledForms { settled: self.settled.clone(), has_before })
    }

    /// Counts the bytes that are sent of all messages.
    pub(super) fn n_bytes(&self, has_before: bool) -> usize {
        let n_each = self.n_each() + self.rest.iter().map(KeyedText::n_bytes).sum::<usize>();
        without_first_comma(n_each, has_before)
    }

    /// Counts those of the settled messages.
    pub(super) fn n_settled(&self, has_before: bool) -> usize {
        without_first_comma(self.n_each(), has_before)
    }

    /// Counts the bytes of the settled messages, each with a comma.
    fn n_each(&self) -> usize {
        self.settled.last().map_or(0, |it| it.n_bytes)
    }
}

fn without_first_comma(n_each: usize, has_before: bool) -> usize {
    n_each.saturating_sub(usize::from(!has_before))
}

/// The texts of the settled messages, with commas.
#[derive(Debug)]
struct SettledForms {
    settled: SharedList<SettledForm>,
    has_before: bool,
}

impl KeptTexts for SettledForms {
    fn text(&self, element: usize, n: usize) -> Option<&str> {
        let SettledForm { text, n_bytes } = self.settled.get(element)?;
        let follows = self.has_before || text.n_bytes() < *n_bytes;
        match n {
            _ if text.text.is_empty() => None,
            0 => Some(if follows { "," } else { "" }),
            1 => Some(&text.text),
            _ => None,
        }
    }

    fn n_elements(&self) -> usize {
        self.settled.len()
    }
}

fn key(form: &RequestForm, message: &ViewMessage) -> Digest {
    let role = Digest::of(if message.role == Role::Assistant { b"a" } else { b"u" });
    let key = form.mark.chain(role);
    message.blocks.iter().fold(key, |key, block| key.chain(block.digest()))
}
