//! The output items of a response, and what they are as blocks.
//!
//! This module decides what of an answer is kept, and in which form.

use super::wire::OutputItem;
use crate::{
    block::Block,
    ids::ToolUseId,
    step5_model_call::{
        InvalidInput, openai_shared::call::PartialCall, stream::block_builder::check_input,
        wire_format::OPENAI_ITEM,
    },
};

/// An item, as far as it came.
#[derive(Clone, Debug)]
pub(super) struct ItemSlot {
    pub(super) index: Option<u64>,
    pub(super) item_id: String,
    /// Text that was shown of it.
    pub(super) text: String,
    pub(super) call: Option<PartialCall>,
    /// Its JSON text, once it is whole.
    pub(super) whole: Option<String>,
}

/// Turns output items into content blocks.
#[derive(Default)]
pub(super) struct BlockCollector {
    pub(super) blocks: Vec<Block>,
    pub(super) invalid_inputs: Vec<(ToolUseId, InvalidInput)>,
    pub(super) refuses: bool,
}

impl BlockCollector {
    /// Appends what an item says.
    pub(super) fn add(&mut self, slot: ItemSlot) {
        if let Some(call) = slot.call {
            // A call that was cut never runs.
            if slot.whole.is_some() {
                self.blocks.push(call.finish(&mut self.invalid_inputs));
            }
            return;
        }
        let Some(whole) = slot.whole else {
            if !slot.text.is_empty() {
                self.blocks.push(Block::text(&slot.text));
            }
            return;
        };
        let Some(item) = OutputItem::read(&whole) else { return };
        match item.kind() {
            "message" => {
                for part in item.parts() {
                    self.refuses |= part.refusal.as_ref().is_some_and(|it| !it.0.is_empty());
                    let text = part.text.or(part.refusal).map(|it| it.0).unwrap_or_default();
                    if !text.is_empty() {
                        self.blocks.push(Block::text(&text));
                    }
                }
            }
            "reasoning" if !item.can_go_back() => {}
            _ if check_input(&whole).is_err() => {}
            _ => {
                let wire = format!(r#"{{"type":"{OPENAI_ITEM}","item":{whole}}}"#);
                self.blocks.extend(Block::from_wire(&wire).ok());
            }
        }
    }
}
