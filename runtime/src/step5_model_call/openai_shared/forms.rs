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
    /// Bytes of all texts up to and with it, each with a comma after it.
    n_bytes: usize,
}

impl KeyedText {
    /// What is sent for it, with a comma: nothing for an empty text.
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
        let mut n_bytes = self.n_settled();
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

    /// Returns the texts in order, without those that are empty.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        let settled = self.settled.iter().map(|it| &it.text);
        settled.chain(&self.rest).map(|it| &*it.text).filter(|it| !it.is_empty())
    }

    /// Counts the bytes of all texts, each with a comma after it.
    pub(super) fn n_bytes(&self) -> usize {
        self.n_settled() + self.rest.iter().map(KeyedText::n_bytes).sum::<usize>()
    }

    fn n_settled(&self) -> usize {
        self.settled.last().map_or(0, |it| it.n_bytes)
    }
}

fn key(form: &RequestForm, message: &ViewMessage) -> Digest {
    let role = Digest::of(if message.role == Role::Assistant { b"a" } else { b"u" });
    let key = form.mark.chain(role);
    message.blocks.iter().fold(key, |key, block| key.chain(block.digest()))
}
