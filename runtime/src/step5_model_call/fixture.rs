//! A tool for tests of requests.

use crate::tool::{Access, ToolEffect, ToolSpec};

/// Returns the declaration of a tool of this name without parameters.
pub(crate) fn tool(name: &str) -> ToolSpec {
    ToolSpec::new(name, "does it", r#"{"type":"object"}"#)
        .with_effect(ToolEffect::ReadOnly)
        .with_access(Access::Free)
}
