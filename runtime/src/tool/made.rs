//! Making what tools are given and leave: these types can grow, so nothing outside of the crate writes them field by
//! field.

use std::sync::Arc;

use super::{
    Access, Concurrency, FileSeen, Todo, TodoStatus, ToolCall, ToolEffect, ToolSpec, Truncation,
};
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

impl ToolSpec {
    /// Describes a tool with a schema of its input, the JSON text of an object. What is not set is the careful side: the
    /// tool has side effects, runs alone, and each call needs a rule or an answer. Neither its output nor its time has a
    /// limit.
    pub fn new(
        name: impl Into<ToolName>,
        description: impl Into<Arc<str>>,
        input_schema: impl Into<Arc<str>>,
    ) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            input_schema: input_schema.into(),
            effect: ToolEffect::SideEffects,
            concurrency: Concurrency::Alone,
            access: Access::Ask,
            output_cap: None,
            timeout_ms: None,
            polls: false,
        }
    }

    /// Sets what it can change.
    #[must_use]
    pub fn with_effect(mut self, effect: ToolEffect) -> Self {
        self.effect = effect;
        self
    }

    /// Sets what else may run at the same time.
    #[must_use]
    pub fn with_concurrency(mut self, concurrency: Concurrency) -> Self {
        self.concurrency = concurrency;
        self
    }

    /// Sets what the permission gate looks at.
    #[must_use]
    pub fn with_access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Sets how many characters of output the model sees at most; `None` for no limit.
    #[must_use]
    pub fn with_output_cap(mut self, cap: impl Into<Option<u32>>) -> Self {
        self.output_cap = cap.into();
        self
    }

    /// Sets the milliseconds that one call may take; `None` for no limit.
    #[must_use]
    pub fn with_timeout_ms(mut self, ms: impl Into<Option<u64>>) -> Self {
        self.timeout_ms = ms.into();
        self
    }

    /// Declares that repeating the same call with the same result is not a sign of a loop.
    #[must_use]
    pub fn polling(mut self) -> Self {
        self.polls = true;
        self
    }
}

impl FileSeen {
    /// Notes a file with these bytes and this modification time, in nanoseconds since 1970; `partial` if the model saw a
    /// part of it only.
    pub fn new(bytes: &[u8], mtime_ns: u64, partial: bool) -> Self {
        Self { mtime_ns, size: bytes.len() as u64, digest: Digest::of(bytes), partial, cells: None }
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
