//! Step 8: the allowed calls run, and every tool use gets its answer in the order it was asked.

pub(crate) mod post_tool_use_hooks;
pub(crate) mod schedule;
