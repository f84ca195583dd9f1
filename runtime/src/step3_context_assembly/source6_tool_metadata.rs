//! Source 6: the tools that the model is offered.

use std::sync::Arc;

use crate::tool::ToolSpec;

/// The tools that stage 1 of the gate leaves, in the order given; `offered` is its answer.
pub fn offered_tools(specs: &[Arc<ToolSpec>], offered: &[bool]) -> Vec<Arc<ToolSpec>> {
    specs
        .iter()
        .zip(offered)
        .filter(|(_, offered)| **offered)
        .map(|(it, _)| Arc::clone(it))
        .collect()
}

/// Characters of names, descriptions and schemas.
pub(super) fn size(tools: &[Arc<ToolSpec>]) -> u64 {
    let chars = |text: &str| text.chars().count() as u64;
    tools
        .iter()
        .map(|it| chars(it.name.as_str()) + chars(&it.description) + chars(&it.input_schema))
        .sum()
}
