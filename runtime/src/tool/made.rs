//! Making what tools are given and leave: these types can grow, so nothing outside of the crate writes them field by
//! field.

use std::sync::Arc;

use super::{FileSeen, Todo, TodoStatus, ToolCall, Truncation};
use crate::{
    digest::Digest,
    ids::{ToolName, ToolUseId},
};

impl ToolCall {
    /// Makes a call. The input is the JSON text of an object.
    pub fn new(id: ToolUseId, name: ToolName, input: impl Into<Arc<str>>) -> Self {
        Self { id, name, input: input.into() }
    }
}

impl FileSeen {
    /// Notes a file with these bytes and this modification time, in nanoseconds since 1970; `partial` if the model saw a
    /// part of it only.
    pub fn new(bytes: &[u8], mtime_ns: u64, partial: bool) -> Self {
        Self { mtime_ns, size: bytes.len() as u64, digest: Digest::of(bytes), partial }
    }
}

impl Todo {
    /// Makes a task: what is to be done, and the same as something under way ("Running tests").
    pub fn new(
        content: impl Into<String>,
        status: TodoStatus,
        active_form: impl Into<String>,
    ) -> Self {
        Self { content: content.into(), status, active_form: active_form.into() }
    }
}

impl Truncation {
    /// Notes how many characters there were, how many were kept, and where the whole lies, if it was kept.
    pub fn new(original_chars: u64, kept_chars: u64, stored_at: Option<String>) -> Self {
        Self { original_chars, kept_chars, stored_at }
    }
}
