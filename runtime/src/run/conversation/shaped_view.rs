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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::{Message, Messages};

    fn message(n: usize) -> Arc<Message> {
        Arc::new(Message::prompt(format!("m{n}").into(), "go"))
    }

    /// The view as it is without what was kept.
    fn anew(view: &ShapedView, history: &History) -> Messages {
        view.messages.walk().chain(history.iter_from(view.covered)).cloned().collect()
    }

    proptest! {
        // REQ: SHP-8
        #[test]
        fn view_that_grows_is_the_one_made_anew(
            n_covered in 0..6_usize,
            n_left in 0..6_usize,
            changes in proptest::collection::vec((0..4_usize, 0..80_usize), 1..60),
        ) {
            let mut messages: Messages = (0..n_covered).map(message).collect();
            let left = (100..100 + n_left.min(n_covered)).map(message).collect();
            let mut view = ShapedView::new(left, n_covered);
            for (i, (kind, at)) in changes.into_iter().enumerate() {
                match kind {
                    // A prompt that gets no answer is taken back, and another one may be given.
                    0 if n_covered < messages.len() => {
                        let place = n_covered + at % (messages.len() - n_covered);
                        messages.remove(place);
                        if at % 2 == 0 {
                            messages.push(message(1_000 + i));
                        }
                    }
                    _ => messages.extend((0..=kind).map(|it| message(2_000 + 10 * i + it))),
                }
                let history: History = messages.iter().cloned().collect();
                let expected = anew(&view, &history);
                let grown = view.grown(&history);
                prop_assert!(grown.walk().eq(&expected));
                prop_assert!(view.clone().grown(&history).walk().eq(&expected), "and once more");
            }
        }
    }
}
