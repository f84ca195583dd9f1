//! Source 6: the tools that the model is offered.

use std::sync::Arc;

use crate::{tokens::Size, tool::ToolSpec};

/// Returns the size of names, descriptions and schemas.
pub(super) fn size(tools: &[Arc<ToolSpec>]) -> Size {
    let texts = |it: &Arc<ToolSpec>| {
        Size::of(it.name.as_str()) + Size::of(&it.description) + Size::of(&it.input_schema)
    };
    tools.iter().map(texts).sum()
}
