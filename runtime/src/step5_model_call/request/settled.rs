//! What a request of the Messages API sends of the messages that are settled.

use std::sync::Arc;

use crate::{
    shared::SharedList,
    step5_model_call::view::SettledMessage,
    wire_body::{KeptTexts, WireBody},
};

/// The settled messages as they are sent: without marks, with a comma between two.
#[derive(Debug)]
pub(super) struct SettledTexts(SharedList<SettledMessage>);

impl SettledTexts {
    /// Makes the body of a request from its three pieces, in this order: `front`, the texts of the settled messages, and
    /// `back`. `n_bytes` is the length of those texts. They are shared with other requests and not copied.
    pub(super) fn body(
        front: Vec<u8>,
        (settled, n_bytes): (&SharedList<SettledMessage>, usize),
        back: Vec<u8>,
    ) -> WireBody {
        let texts = Arc::new(Self(settled.clone()));
        WireBody::with_kept(front, (texts, n_bytes), back)
    }
}

impl KeptTexts for SettledTexts {
    fn text(&self, element: usize, n: usize) -> Option<&str> {
        let message = &self.0.get(element)?.message;
        if n == 0 {
            return Some(message.opening(0 < element));
        }
        // Each block is followed by what ends it.
        let (block, is_end) = ((n - 1) / 2, n.is_multiple_of(2));
        let text = message.blocks.get(block)?.wire_open();
        let ends = if block + 1 == message.blocks.len() { "}]}" } else { "}," };
        Some(if is_end { ends } else { text })
    }

    fn n_elements(&self) -> usize {
        self.0.len()
    }
}
