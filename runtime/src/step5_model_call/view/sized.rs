//! Calls that providers refuse by their form, and blocks that they refuse by their size.

use super::{Compiler, MAX_BLOCK_BYTES, MAX_IMAGE_BYTES, ViewNote};
use crate::{
    block::{Block, BlockKind},
    ids::{ToolName, ToolUseId},
};

/// Characters of a tool name.
const MAX_NAME_CHARS: usize = 64;

impl Compiler<'_> {
    pub(super) fn valid_call(
        &mut self,
        block: &Block,
        id: &ToolUseId,
        name: &ToolName,
        input: &str,
    ) -> Block {
        let is_valid = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
        let name_fits = name.as_str().chars().all(is_valid)
            && (1..=MAX_NAME_CHARS).contains(&name.as_str().len());
        let input_fits = input.starts_with('{');
        let fits = name_fits && input_fits && !block.is_odd();
        if fits && block.wire_open().len() <= MAX_BLOCK_BYTES {
            return block.clone();
        }
        self.view.notes.push(ViewNote::CallRepaired(id.clone()));
        let mut name: String = name
            .as_str()
            .chars()
            .take(MAX_NAME_CHARS)
            .map(|it| if is_valid(it) { it } else { '_' })
            .collect();
        if name.is_empty() {
            name.push('_');
        }
        let keeps_input = input_fits && input.len() <= MAX_BLOCK_BYTES / 2;
        Block::tool_use(id, &name.into(), if keeps_input { input } else { "{}" })
    }

    pub(super) fn sized(&mut self, block: Block) -> Block {
        let bytes = block.wire_open().len();
        let (kind, max): (&str, usize) = match block.kind() {
            BlockKind::Opaque { kind } if &**kind == "image" => (kind, MAX_IMAGE_BYTES),
            BlockKind::Opaque { kind } => (kind, MAX_BLOCK_BYTES),
            _ => ("text", MAX_BLOCK_BYTES),
        };
        if bytes <= max {
            return block;
        }
        let kind: Box<str> = kind.into();
        let stub = Block::text(&format!("[{kind} of {bytes} bytes left out: too large to send]"));
        self.view.notes.push(ViewNote::TooLarge { kind, bytes });
        stub
    }

    pub(super) fn sized_result(&mut self, result: &Block, call: &ToolUseId) -> Block {
        let bytes = result.wire_open().len();
        if result.is_odd()
            && let Some((_, text, is_error)) = result.as_tool_result()
        {
            self.view.notes.push(ViewNote::Doubtful { kind: "tool_result".into() });
            return self.sized_result(&Block::tool_result(call, text, is_error), call);
        }
        if bytes <= MAX_BLOCK_BYTES {
            return result.clone();
        }
        let kind = "tool_result".into();
        self.view.notes.push(ViewNote::TooLarge { kind, bytes });
        let is_error = result.as_tool_result().is_some_and(|(.., is_error)| is_error);
        let stub = format!("[result of {bytes} bytes left out: too large to send]");
        Block::tool_result(call, &stub, is_error)
    }
}
