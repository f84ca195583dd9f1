//! What all tools have in common, wherever they come from: a declaration, a check of inputs, and the
//! one way from a permit to a call.

use std::future::Future;

use ennead_runtime::{
    ports::{BoxFuture, ToolContext},
    saturating::Saturating as _,
    step7_permission_gate::Permit,
    tool::{ToolErrorKind, ToolOutcome, ToolSpec},
};
use serde::de::DeserializeOwned;

use crate::schema::Schema;

/// What a tool declares, with the validator of its input.
pub(crate) struct Declaration {
    spec: ToolSpec,
    schema: Schema,
}

impl Declaration {
    pub(crate) fn new(spec: ToolSpec, schema: Schema) -> Self {
        Self { spec, schema }
    }

    pub(crate) fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// Checks an input against the schema; the error is for the model.
    pub(crate) fn check(&self, input: &str) -> Result<(), String> {
        self.schema.check(&self.spec.name, input)
    }

    /// Runs `call`, if the permit is for this tool, and says how long it took.
    pub(crate) fn run<F>(
        &self,
        permit: Permit,
        context: ToolContext,
        call: impl FnOnce(&Permit, ToolContext) -> F,
    ) -> BoxFuture<'static, ToolOutcome>
    where
        F: Future<Output = ToolOutcome> + Send + 'static,
    {
        let named = &permit.call().name;
        if *named != self.spec.name {
            let text = format!("The permit is for {named}, not for {}.", self.spec.name);
            let refused = ToolOutcome::failed(ToolErrorKind::PermissionDenied, text);
            return Box::pin(async { refused });
        }
        let clock = context.clock.clone();
        let start = clock.elapsed();
        let outcome = call(&permit, context);
        Box::pin(async move {
            let mut outcome = outcome.await;
            outcome.duration_ms = millis(clock.elapsed().saturating_sub(start));
            outcome
        })
    }
}

/// Parses the input of a call, or returns the error that the model reads.
pub(crate) fn parsed<I: DeserializeOwned>(input: &str) -> Result<I, Box<ToolOutcome>> {
    serde_json::from_str(input).map_err(|error| {
        let why = format!("InputValidationError: {error}");
        Box::new(ToolOutcome::failed(ToolErrorKind::InvalidInput, why))
    })
}

/// Returns whole milliseconds, rounded down.
pub(crate) fn millis(duration: std::time::Duration) -> u64 {
    u64::saturating(duration.as_millis())
}

/// Returns a number among the session's variables; one that cannot be read counts as not set.
pub(crate) fn number(context: &ToolContext, name: &str) -> Option<u64> {
    let (_, value) = context.env.iter().rev().find(|(key, _)| key == name)?;
    value.trim().parse().ok().filter(|number| *number > 0)
}
