//! Tools of embedders: a name, a description, a schema and an async function.
//!
//! ```
//! use ennead_tools::custom::CustomTool;
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Add { a: i64, b: i64 }
//!
//! let tool = CustomTool::typed("add", "Adds two numbers.", |add: Add, _| async move {
//!     Ok((add.a + add.b).to_string())
//! })
//! .read_only()
//! .build()?;
//! assert_eq!(ennead_runtime::ports::Tool::spec(&tool).name.as_str(), "add");
//! # Ok::<(), ennead_tools::custom::CustomToolError>(())
//! ```
//!
//! What is not set is the careful side: it has side effects, runs alone, and each call needs a
//! rule or an answer.

use std::{fmt, future::Future, sync::Arc};

use ennead_runtime::{
    ids::ToolName,
    ports::{BoxFuture, Tool, ToolContext},
    step7_permission_gate::Permit,
    tool::{Access, Concurrency, ToolEffect, ToolErrorKind, ToolOutcome, ToolSpec},
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::{
    capped::capped,
    declared::{Declaration, parsed},
    schema::{Schema, SchemaError},
};

/// Characters of output that the model sees at most by default.
const DEFAULT_OUTPUT_CAP: u32 = 20_000;

type Run = dyn Fn(Arc<str>, ToolContext) -> BoxFuture<'static, ToolOutcome> + Send + Sync;

/// A tool made of a function.
pub struct CustomTool {
    declaration: Declaration,
    run: Arc<Run>,
}

/// Why a tool could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CustomToolError {
    /// Model servers accept `^[a-zA-Z0-9_-]{1,64}$`.
    #[error("{name:?} is not a name of a tool: 1 to 64 of a-z, A-Z, 0-9, _ and -")]
    Name {
        /// The name, as it was given.
        name: String,
    },
    /// The schema cannot be used.
    #[error("the input schema of {name} cannot be used")]
    Schema {
        /// Name of the tool that the call uses.
        name: ToolName,
        /// What is wrong with the schema.
        #[source]
        cause: SchemaError,
    },
}

impl CustomTool {
    /// Makes a tool whose input is a Rust type; the schema is made from it. The function gets the parsed input. `Err`
    /// is a failure that the model reads.
    pub fn typed<I, F, R>(name: &str, description: &str, function: F) -> CustomToolBuilder
    where
        I: JsonSchema + DeserializeOwned + Send + 'static,
        F: Fn(I, ToolContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<String, String>> + Send + 'static,
    {
        let run = move |input: Arc<str>, context| -> BoxFuture<'static, ToolOutcome> {
            match parsed(&input) {
                Ok(input) => {
                    let answer = function(input, context);
                    Box::pin(async move {
                        match answer.await {
                            Ok(text) => ToolOutcome::ok(text),
                            Err(why) => ToolOutcome::failed(ToolErrorKind::Failed, why),
                        }
                    })
                }
                Err(result) => Box::pin(async { *result }),
            }
        };
        CustomToolBuilder::new(name, description, Ok(Schema::of::<I>()), Arc::new(run))
    }

    /// Makes a tool whose schema is a text. The function gets the input as JSON text that fits it, and makes the whole
    /// outcome.
    pub fn raw<F, R>(
        name: &str,
        description: &str,
        input_schema: &str,
        function: F,
    ) -> CustomToolBuilder
    where
        F: Fn(Arc<str>, ToolContext) -> R + Send + Sync + 'static,
        R: Future<Output = ToolOutcome> + Send + 'static,
    {
        let run = move |input, context| -> BoxFuture<'static, ToolOutcome> {
            Box::pin(function(input, context))
        };
        CustomToolBuilder::new(name, description, Schema::from_text(input_schema), Arc::new(run))
    }
}

/// A tool of an embedder that is being described.
#[must_use = "a tool is there when it is built"]
pub struct CustomToolBuilder {
    spec: ToolSpec,
    schema: Result<Schema, SchemaError>,
    run: Arc<Run>,
}

impl CustomToolBuilder {
    fn new(
        name: &str,
        description: &str,
        schema: Result<Schema, SchemaError>,
        run: Arc<Run>,
    ) -> Self {
        let spec = ToolSpec::new(
            name,
            description,
            schema.as_ref().map(|schema| schema.text().clone()).unwrap_or_default(),
        )
        .with_output_cap(DEFAULT_OUTPUT_CAP);
        Self { spec, schema, run }
    }

    /// Declares that the tool changes nothing outside the session. It still asks; see [`Self::access`].
    pub fn read_only(self) -> Self {
        self.effect(ToolEffect::ReadOnly)
    }

    /// Sets what it can change; [`ToolEffect::SideEffects`] by default.
    pub fn effect(mut self, effect: ToolEffect) -> Self {
        self.spec.effect = effect;
        self
    }

    /// Sets what may run at the same time; nothing ([`Concurrency::Alone`]) by default.
    pub fn concurrency(mut self, concurrency: Concurrency) -> Self {
        self.spec.concurrency = concurrency;
        self
    }

    /// Sets what the permission gate looks at; [`Access::Ask`] by default.
    pub fn access(mut self, access: Access) -> Self {
        self.spec.access = access;
        self
    }

    /// Sets how many characters of one result the model sees at most; 20,000 by default. A longer
    /// one is kept in a file, and the model gets the path and the beginning. `None` means no limit,
    /// and budget reduction leaves the results alone; with a number above the setting
    /// `ennead.shapers.perResultCapChars` (50,000) that setting holds, too.
    pub fn output_cap(mut self, cap: Option<u32>) -> Self {
        self.spec.output_cap = cap;
        self
    }

    /// Sets the milliseconds that one call may take; no limit by default.
    pub fn timeout_ms(mut self, ms: u64) -> Self {
        self.spec.timeout_ms = Some(ms);
        self
    }

    /// Declares that repeating the same call with the same result is not a sign of a loop.
    pub fn polls(mut self) -> Self {
        self.spec.polls = true;
        self
    }

    /// Makes the tool.
    ///
    /// # Errors
    ///
    /// [`CustomToolError`] for a name or schema that cannot be used.
    pub fn build(self) -> Result<CustomTool, CustomToolError> {
        let name = self.spec.name.as_str();
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if !(1..=64).contains(&name.len()) || !name.bytes().all(fits) {
            return Err(CustomToolError::Name { name: name.to_owned() });
        }
        match self.schema {
            Ok(schema) => {
                let declaration = Declaration::new(self.spec, schema);
                Ok(CustomTool { declaration, run: self.run })
            }
            Err(cause) => Err(CustomToolError::Schema { name: self.spec.name, cause }),
        }
    }
}

impl Tool for CustomTool {
    fn spec(&self) -> &ToolSpec {
        self.declaration.spec()
    }

    fn check_input(&self, input: &str) -> Result<(), String> {
        self.declaration.check(input)
    }

    fn run(&self, permit: Permit, context: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        let max_chars = self.declaration.spec().output_cap;
        self.declaration.run(permit, context, |permit, context| {
            let id = permit.call().id.clone();
            let answer = (self.run)(permit.call().input.clone(), context.clone());
            async move { capped(answer.await, max_chars, &id, &context).await }
        })
    }
}

impl fmt::Debug for CustomTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CustomTool").field("spec", self.declaration.spec()).finish_non_exhaustive()
    }
}

impl fmt::Debug for CustomToolBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CustomToolBuilder").field("spec", &self.spec).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
