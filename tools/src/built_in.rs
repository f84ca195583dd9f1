//! What the tools of this crate have in common: a typed input, a declaration, a call.
//!
//! Alone here is the way from a permit to a call, so that no tool can be run without one.

use std::{fmt, future::Future, marker::PhantomData, sync::Arc};

use ennead_runtime::{
    ids::ToolUseId,
    ports::{BoxFuture, Tool, ToolContext},
    step7_permission_gate::{Permit, ResolvedPath},
    tool::{ToolCall, ToolErrorKind, ToolOutcome, ToolSpec},
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::schema::Schema;

/// One tool of this crate.
pub(crate) trait BuiltIn: 'static {
    /// What it is asked.
    type Input: JsonSchema + DeserializeOwned + Send + 'static;

    /// What it declares, given the schema of its input.
    fn spec(input_schema: Arc<str>) -> ToolSpec;

    /// Runs one call that the gate let through.
    fn call(
        call: Call<Self::Input>,
        context: ToolContext,
    ) -> impl Future<Output = ToolOutcome> + Send + 'static;
}

/// One call, unpacked.
#[derive(Debug)]
pub(crate) struct Call<I> {
    /// The tool use that asked for it.
    pub(crate) id: ToolUseId,
    /// What was asked.
    pub(crate) input: I,
    /// The path that the gate decided about.
    pub(crate) path: Option<ResolvedPath>,
    /// What searches leave out.
    pub(crate) hidden: Arc<[String]>,
}

/// The answer to a permit without a path, for a tool that declares one: it runs with no other path
/// than the one that was decided about.
pub(crate) fn no_path() -> ToolOutcome {
    ToolOutcome::failed(ToolErrorKind::PermissionDenied, "The permit names no path.")
}

/// A built-in tool with its declaration.
pub(crate) struct Declared<B> {
    spec: ToolSpec,
    schema: Schema,
    tool: PhantomData<fn() -> B>,
}

impl<B: BuiltIn> Declared<B> {
    /// Makes the schema and compiles its validator.
    pub(crate) fn new() -> Self {
        let schema = Schema::of::<B::Input>();
        Self { spec: B::spec(schema.text().clone()), schema, tool: PhantomData }
    }

    /// Runs a call without looking for a permit; `run` has done that.
    pub(crate) fn call(
        &self,
        call: &ToolCall,
        path: Option<ResolvedPath>,
        hidden: Arc<[String]>,
        context: ToolContext,
    ) -> BoxFuture<'static, ToolOutcome> {
        let parsed = serde_json::from_str(&call.input);
        let id = call.id.clone();
        Box::pin(async move {
            let clock = context.clock.clone();
            let start = clock.elapsed();
            let mut outcome = match parsed {
                Ok(input) => B::call(Call { id, input, path, hidden }, context).await,
                Err(error) => ToolOutcome::failed(
                    ToolErrorKind::InvalidInput,
                    format!("InputValidationError: {error}"),
                ),
            };
            outcome.duration_ms = millis(clock.elapsed().saturating_sub(start));
            outcome
        })
    }
}

/// Whole milliseconds.
pub(crate) fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The answer to a permit that was made for another tool.
pub(crate) fn foreign_permit(permit: &Permit, spec: &ToolSpec) -> Option<ToolOutcome> {
    let named = &permit.call().name;
    (*named != spec.name).then(|| {
        let text = format!("The permit is for {named}, not for {}.", spec.name);
        ToolOutcome::failed(ToolErrorKind::PermissionDenied, text)
    })
}

impl<B: BuiltIn> Tool for Declared<B> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn check_input(&self, input: &str) -> Result<(), String> {
        self.schema.check(&self.spec.name, input)
    }

    fn run(&self, permit: Permit, context: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        if let Some(refused) = foreign_permit(&permit, &self.spec) {
            return Box::pin(async { refused });
        }
        self.call(permit.call(), permit.path().cloned(), permit.hidden().clone(), context)
    }
}

impl<B> fmt::Debug for Declared<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Declared").field("name", &self.spec.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
