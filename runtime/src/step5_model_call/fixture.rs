//! A tool for tests of requests.

use crate::tool::{Access, Concurrency, ToolEffect, ToolSpec};

/// Returns the declaration of a tool of this name without parameters.
pub(crate) fn tool(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        description: "does it".into(),
        input_schema: r#"{"type":"object"}"#.into(),
        effect: ToolEffect::ReadOnly,
        concurrency: Concurrency::Alone,
        access: Access::Free,
        output_cap: None,
        timeout_ms: None,
        polls: false,
    }
}
