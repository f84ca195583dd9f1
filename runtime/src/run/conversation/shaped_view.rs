//! What the shapers left of a history, and what was said since.

use std::sync::Arc;

use crate::{message::SharedMessages, run::history::History};

/// What the shapers left of the first messages of the history.
#[derive(Clone, Debug)]
pub struct ShapedView {
    /// The messages that remain, oldest first.
    pub messages: SharedMessages,
    /// Messages of the history that they represent.
    pub covered: usize,
    /// These messages and those of the history after them, up to this one.
    grown: (SharedMessages, usize),
}

impl ShapedView {
    /// Makes a view of these messages, which represent the first `covered` of the history.
    pub(crate) fn new(messages: SharedMessages, covered: usize) -> Self {
        Self { grown: (messages.clone(), covered), messages, covered }
    }

    /// Returns the messages, and after them those of the history that they do not represent. Looks only at what the
    /// history has more than at the last call.
    pub(crate) fn grown(&mut self, history: &History) -> SharedMessages {
        let (grown, n_grown) = &mut self.grown;
        // A history that a message was taken from has another one at the place of the last.
        let last = n_grown.checked_sub(1).and_then(|it| history.get(it));
        let holds = *n_grown == self.covered
            || last.zip(grown.last()).is_some_and(|(last, it)| Arc::ptr_eq(last, it));
        if !holds {
            (*grown, *n_grown) = (self.messages.clone(), self.covered);
        }
        history.iter_from(*n_grown).for_each(|it| grown.push(Arc::clone(it)));
        *n_grown = history.len();
        grown.clone()
    }
}
