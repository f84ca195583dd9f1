//! Results that are not on the chain, though their calls are.

use std::sync::Arc;

use crate::{
    block::Block,
    message::{Message, MessageKind},
};

/// A message next to the chain that holds results of calls in it.
pub(super) struct Adopted {
    pub(super) at: usize,
    /// The node of the calls.
    pub(super) after: usize,
    pub(super) message: Arc<Message>,
}

impl Adopted {
    /// Returns the results in it, without its other blocks.
    pub(super) fn results(&self) -> Arc<Message> {
        let is_result = |block: &Block| block.as_tool_result().is_some();
        if self.message.blocks.iter().all(is_result) {
            return self.message.clone();
        }
        let mut only = Message::clone(&self.message);
        only.blocks.retain(is_result);
        only.kind = MessageKind::ToolResults;
        Arc::new(only)
    }
}
