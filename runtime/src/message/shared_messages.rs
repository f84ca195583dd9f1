//! A conversation whose clones share its messages.
//!
//! A turn hands the conversation from step to step, and most of them ask for its length or for what is new. Only what
//! cuts somewhere needs all of it side by side; then a list is made, once.

use std::{
    fmt,
    ops::Deref,
    sync::{Arc, OnceLock},
};

use super::{Message, Messages};
use crate::shared::SharedList;

/// Messages, oldest first. Cloning takes time logarithmic in their number. As a slice, which takes time and memory
/// for each of them, they are made when first asked for.
#[derive(Clone, Default)]
pub struct SharedMessages {
    list: SharedList<Arc<Message>>,
    slice: OnceLock<Arc<[Arc<Message>]>>,
}

impl SharedMessages {
    /// Returns how many messages the conversation has.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns whether the conversation has no messages.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a message at the end.
    pub fn push(&mut self, message: Arc<Message>) {
        self.slice.take();
        self.list.push(message);
    }

    /// Returns the last message.
    pub fn last(&self) -> Option<&Arc<Message>> {
        self.list.last()
    }

    /// Returns the messages one after another, and makes no slice of them.
    pub fn walk(&self) -> impl DoubleEndedIterator<Item = &Arc<Message>> {
        self.list.iter()
    }

    /// Returns those from this place on.
    pub(crate) fn walk_from(&self, first: usize) -> impl Iterator<Item = &Arc<Message>> {
        self.list.iter_from(first)
    }

    /// Returns whether the first `n` messages of both are the same ones. Takes no time for those that clones share.
    pub(crate) fn shares(&self, other: &Self, n: usize) -> bool {
        self.list.shares(&other.list, n, Arc::ptr_eq)
    }

    /// Returns whether somebody has asked for the slice.
    #[cfg(test)]
    pub(crate) fn has_slice(&self) -> bool {
        self.slice.get().is_some()
    }
}

impl Deref for SharedMessages {
    type Target = [Arc<Message>];

    fn deref(&self) -> &[Arc<Message>] {
        self.slice.get_or_init(|| self.walk().cloned().collect())
    }
}

impl From<SharedList<Arc<Message>>> for SharedMessages {
    fn from(list: SharedList<Arc<Message>>) -> Self {
        Self { list, slice: OnceLock::new() }
    }
}

impl From<Messages> for SharedMessages {
    fn from(messages: Messages) -> Self {
        messages.into_iter().collect()
    }
}

impl FromIterator<Arc<Message>> for SharedMessages {
    fn from_iter<I: IntoIterator<Item = Arc<Message>>>(messages: I) -> Self {
        let mut list = SharedList::default();
        messages.into_iter().for_each(|it| list.push(it));
        list.into()
    }
}

impl PartialEq for SharedMessages {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.walk().eq(other.walk())
    }
}

impl Eq for SharedMessages {}

impl fmt::Debug for SharedMessages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.walk()).finish()
    }
}
