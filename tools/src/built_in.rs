//! What the tools of this crate have in common: a typed input, and a call with what the gate decided
//! about.

use std::{fmt, future::Future, marker::PhantomData, sync::Arc};

use ennead_runtime::{
    ids::ToolUseId,
    ports::{BoxFuture, Tool, ToolContext},
    step7_permission_gate::{Permit, ResolvedPath},
    tool::{Access, Concurrency, ToolCall, ToolEffect, ToolErrorKind, ToolOutcome, ToolSpec},
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::{
    blocking::{Stop, blocking},
    capped::capped,
    declared::{Declaration, parsed},
    schema::Schema,
};

/// One tool of this crate.
pub(crate) trait BuiltIn: 'static {
    /// What it is asked.
    type Input: JsonSchema + DeserializeOwned + Send + 'static;

    /// Whether a result can be longer than the declared limit, which variables of the session
    /// raise; such a tool cuts its results itself.
    const CUTS_ITSELF: bool = false;

    /// Returns what the tool declares, given the schema of its input.
    fn spec(input_schema: Arc<str>) -> ToolSpec;

    /// Runs one call that the gate let through.
    fn call(
        call: BuiltInCall<Self::Input>,
        context: ToolContext,
    ) -> impl Future<Output = ToolOutcome> + Send + 'static;
}

/// One call with its parsed input.
#[derive(Debug)]
pub(crate) struct BuiltInCall<I> {
    /// The tool use that asked for it.
    pub(crate) id: ToolUseId,
    /// Input of the call, as the schema describes it.
    pub(crate) input: I,
    /// The path that the gate decided about.
    pub(crate) path: Option<ResolvedPath>,
    /// What searches leave out.
    pub(crate) hidden: Arc<[String]>,
}

/// What a tool that works on a path is given.
#[derive(Debug)]
pub(crate) struct AtPath<'a, I> {
    /// Input of the call, as the schema describes it.
    pub(crate) input: &'a I,
    /// The path that the gate decided about; it works on no other.
    pub(crate) path: &'a ResolvedPath,
    /// What searches leave out.
    #[cfg_attr(
        not(feature = "search"),
        expect(dead_code, reason = "only tools that search leave out what is hidden")
    )]
    pub(crate) hidden: &'a [String],
    /// The surroundings of the call.
    pub(crate) context: &'a ToolContext,
    /// Says when to give up.
    pub(crate) stop: &'a Stop,
}

/// Works on the path that the permit of a call names, on a thread that may block.
pub(crate) async fn at_path<I: Send + 'static>(
    call: BuiltInCall<I>,
    context: ToolContext,
    work: fn(AtPath<'_, I>) -> Result<ToolOutcome, String>,
) -> ToolOutcome {
    let BuiltInCall { input, path: Some(path), hidden, .. } = call else {
        return ToolOutcome::failed(ToolErrorKind::PermissionDenied, "The permit names no path.");
    };
    let world = context.clone();
    blocking(&context, move |stop| {
        let given = AtPath { input: &input, path: &path, hidden: &hidden, context: &world, stop };
        work(given).unwrap_or_else(|why| ToolOutcome::failed(ToolErrorKind::Failed, why))
    })
    .await
}

/// Makes the declaration of a tool that changes the file in its field `file_path`.
pub(crate) fn changing_spec(name: &str, description: &str, input_schema: Arc<str>) -> ToolSpec {
    changing_spec_at("file_path", name, description, input_schema)
}

/// Makes the declaration of a tool that changes the file in this field.
pub(crate) fn changing_spec_at(
    field: &'static str,
    name: &str,
    description: &str,
    input_schema: Arc<str>,
) -> ToolSpec {
    ToolSpec::new(name, description, input_schema)
        .with_access(Access::WritePath { field: field.into() })
        .with_output_cap(20_000)
        .with_timeout_ms(60_000)
}

/// Makes the declaration of a tool that reads at the path in this field.
pub(crate) fn reading_spec(
    name: &str,
    description: &str,
    input_schema: Arc<str>,
    field: &'static str,
) -> ToolSpec {
    changing_spec(name, description, input_schema)
        .with_effect(ToolEffect::ReadOnly)
        .with_concurrency(Concurrency::Together { max: 10 })
        .with_access(Access::ReadPath { field: field.into() })
}

/// A built-in tool with its declaration.
pub(crate) struct Declared<B> {
    declaration: Declaration,
    tool: PhantomData<fn() -> B>,
}

impl<B: BuiltIn> Declared<B> {
    /// Makes the schema and compiles its validator.
    pub(crate) fn new() -> Self {
        let schema = Schema::of::<B::Input>();
        let declaration = Declaration::new(B::spec(schema.text().clone()), schema);
        Self { declaration, tool: PhantomData }
    }

    /// Runs a call without looking for a permit; `run` has done that.
    pub(crate) fn call(
        call: &ToolCall,
        path: Option<ResolvedPath>,
        hidden: Arc<[String]>,
        context: ToolContext,
    ) -> impl Future<Output = ToolOutcome> + Send + use<B> {
        let input = parsed(&call.input);
        let id = call.id.clone();
        async move {
            match input {
                Ok(input) => B::call(BuiltInCall { id, input, path, hidden }, context).await,
                Err(result) => *result,
            }
        }
    }
}

impl<B: BuiltIn> Tool for Declared<B> {
    fn spec(&self) -> &ToolSpec {
        self.declaration.spec()
    }

    fn check_input(&self, input: &str) -> Result<(), String> {
        self.declaration.check(input)
    }

    fn run(&self, permit: Permit, context: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        let max_chars = self.declaration.spec().output_cap.filter(|_| !B::CUTS_ITSELF);
        self.declaration.run(permit, context, |permit, context| {
            let (path, hidden) = (permit.path().cloned(), permit.hidden().clone());
            let id = permit.call().id.clone();
            let answer = Self::call(permit.call(), path, hidden, context.clone());
            async move { capped(answer.await, max_chars, &id, &context).await }
        })
    }
}

impl<B> fmt::Debug for Declared<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Declared")
            .field("name", &self.declaration.spec().name)
            .finish_non_exhaustive()
    }
}

/// Returns the specification of a tool about which only a person decides, and which touches nothing.
pub(crate) fn person_spec(name: &str, description: &str, input_schema: Arc<str>) -> ToolSpec {
    ToolSpec::new(name, description, input_schema)
        .with_effect(ToolEffect::ReadOnly)
        .with_access(Access::Person)
        .with_output_cap(100_000)
}

#[cfg(test)]
mod tests;
