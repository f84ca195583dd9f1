//! Keeps a view below the bytes that a request may have.
//!
//! The limit on tokens does not cover it, because pictures take few tokens: ten large ones in the
//! results of one turn are more bytes than a provider takes. The oldest give way to a text; those
//! of the last prompt stay.

use super::{ViewMessage, ViewNote};
use crate::{
    block::{Block, BlockKind},
    message::Role,
};

/// Blocks that are smaller are not worth a stub, in bytes.
const MIN_BYTES: usize = 50_000;

/// Puts texts in the place of pictures, documents and results, oldest first, until all messages take
/// `max` bytes at most.
pub(super) fn fit(messages: &mut [ViewMessage], max: usize, notes: &mut Vec<ViewNote>) {
    let blocks = messages.iter().flat_map(|it| &it.blocks);
    let mut total: usize = blocks.map(|it| it.wire_open().len()).sum();
    let is_prompt = |it: &ViewMessage| {
        it.role == Role::User && it.blocks.iter().any(|it| it.as_tool_result().is_none())
    };
    let prompt = messages.iter().rposition(is_prompt);
    for (at, message) in messages.iter_mut().enumerate() {
        for block in &mut message.blocks {
            if total <= max {
                return;
            }
            let bytes = block.wire_open().len();
            let may_go = block.as_tool_result().is_some() || Some(at) != prompt;
            let stub = (MIN_BYTES < bytes && may_go).then(|| stub(block, bytes)).flatten();
            if let Some((kind, stub)) = stub {
                total = total - bytes + stub.wire_open().len();
                notes.push(ViewNote::TooLarge { kind, bytes });
                *block = stub;
            }
        }
    }
}

/// A text for a block, and the type of that; nothing for what cannot be replaced.
fn stub(block: &Block, bytes: usize) -> Option<(Box<str>, Block)> {
    let left_out =
        |kind: &str| format!("[{kind} of {bytes} bytes left out: the request is too large]");
    match block.kind() {
        BlockKind::Opaque { kind } if matches!(&**kind, "image" | "document") => {
            Some((kind.clone(), Block::text(&left_out(kind))))
        }
        BlockKind::ToolResult { id, is_error, .. } => {
            let kind = "tool_result";
            Some((kind.into(), Block::tool_result(id, &left_out(kind), *is_error)))
        }
        _ => None,
    }
}
