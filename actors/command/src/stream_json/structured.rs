//! Answers that fit a schema (`--json-schema`).
//!
//! The schema is that of a tool, which the model calls with its answer. A value that does not fit comes back
//! as an error; the fifth ends the run. So does an answer without the call, which is held back with a word
//! about it. The first value that fits ends the run, and is its result.

use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use ennead::{
    OptionError, RunEnd, SessionOptions,
    permission::{HookEvent, HookInput, HookReply, Permit},
    tool::{Access, BoxFuture, CustomTool, Tool, ToolContext, ToolEffect, ToolOutcome, ToolSpec},
};
use ennead_runtime::tool::ToolErrorKind;
use serde_json::{Value, json};

use ennead_tools::locked::Locked as _;

/// The tool that takes the answer.
const NAME: &str = "StructuredOutput";

const DESCRIPTION: &str = "Gives the final answer in the form that was asked for. Call it once, at the end, \
    with the whole answer as its input.";

/// Values that do not fit, and answers without one, before a run is given up.
const MAX_TRIES: u32 = 5;

/// How long a hook of this file may take, which only looks at a number.
const LIMIT: Duration = Duration::from_secs(60);

/// What is known of the answer of a run.
#[derive(Debug, Default)]
pub struct Structured(Mutex<Collected>);

#[derive(Debug, Default)]
struct Collected {
    value: Option<Value>,
    n_failed: u32,
}

/// Why no schema can be asked for, in words.
#[derive(Debug, thiserror::Error)]
#[error("--json-schema: {0}")]
pub struct BadSchema(String);

/// The tool, and where its answers are collected.
#[derive(Debug)]
struct AnswerTool {
    shape: Arc<CustomTool>,
    structured: Arc<Structured>,
}

impl Tool for AnswerTool {
    fn spec(&self) -> &ToolSpec {
        self.shape.spec()
    }

    /// Checked when it runs, so that each failure is counted.
    fn check_input(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn run(&self, permit: Permit, _: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        let (shape, structured) = (Arc::clone(&self.shape), Arc::clone(&self.structured));
        Box::pin(async move {
            let input = &permit.call().input;
            let checked = shape.check_input(input);
            match checked.and_then(|()| {
                serde_json::from_str::<Value>(input).map_err(|error| error.to_string())
            }) {
                Ok(value) => {
                    structured.state().value = Some(value);
                    ToolOutcome::ok("The answer has the form that was asked for.")
                }
                Err(why) => {
                    structured.state().n_failed += 1;
                    let text = format!("The answer does not fit the schema: {why}");
                    ToolOutcome::failed(ToolErrorKind::Failed, text)
                }
            }
        })
    }
}

impl Structured {
    /// Changes the options so that answers of the session fit this schema, JSON text.
    ///
    /// # Errors
    ///
    /// [`BadSchema`].
    pub fn asked_for(
        schema: &str,
        options: SessionOptions,
    ) -> Result<(Arc<Self>, SessionOptions), BadSchema> {
        let bad = |error: &dyn std::error::Error| {
            let why = error.source().map_or(String::new(), |it| format!(": {it}"));
            BadSchema(format!("{error}{why}"))
        };
        let shape =
            CustomTool::raw(NAME, DESCRIPTION, schema, |_, _| async { ToolOutcome::ok("") })
                .access(Access::Free)
                .effect(ToolEffect::ReadOnly)
                .build()
                .map_err(|error| bad(&error))?;
        let structured = Arc::new(Self::default());
        let tool = AnswerTool { shape: Arc::new(shape), structured: Arc::clone(&structured) };
        let options =
            structured.hooks(options.tool(Arc::new(tool))).map_err(|error| bad(&error))?;
        Ok((structured, options))
    }

    /// Has the run end with the call, and with none.
    fn hooks(self: &Arc<Self>, options: SessionOptions) -> Result<SessionOptions, OptionError> {
        let done = |_: HookInput| async { HookReply::stop("the answer was given") };
        let structured = Arc::clone(self);
        let failed = move |_: HookInput| {
            let is_over = MAX_TRIES <= structured.state().n_failed;
            async move {
                if is_over {
                    HookReply::stop("no answer fits the schema")
                } else {
                    HookReply::proceed()
                }
            }
        };
        let structured = Arc::clone(self);
        let without = move |_: HookInput| {
            let mut state = structured.state();
            state.n_failed += 1;
            let is_over = MAX_TRIES <= state.n_failed;
            async move {
                if is_over {
                    HookReply::stop("no answer was given in the form that was asked for")
                } else {
                    HookReply::deny(format!("Call the tool {NAME} with the answer."))
                }
            }
        };
        options
            .hook(HookEvent::PostToolUse, NAME, LIMIT, Arc::new(done))?
            .hook(HookEvent::PostToolUseFailure, NAME, LIMIT, Arc::new(failed))?
            .hook(HookEvent::Stop, "", LIMIT, Arc::new(without))
    }

    /// Begins a run, and forgets what is known of the one before.
    pub fn begin(&self) {
        *self.state() = Collected::default();
    }

    /// Writes the value into the result of the run, or that there is none.
    pub fn finish(&self, end: RunEnd, result: &mut Value) {
        let state = self.state();
        match &state.value {
            Some(value) => {
                result["subtype"] = "success".into();
                result["is_error"] = false.into();
                result["terminal_reason"] = "completed".into();
                result["result"] = value.to_string().into();
                result["structured_output"] = value.clone();
            }
            None if end == RunEnd::HookStopped && MAX_TRIES <= state.n_failed => {
                result["subtype"] = "error_max_structured_output_retries".into();
                result["is_error"] = true.into();
                let why = format!("no answer fitted the schema in {MAX_TRIES} tries");
                result["errors"] = json!([why]);
                if let Some(fields) = result.as_object_mut() {
                    fields.remove("result");
                }
            }
            None => {}
        }
    }

    fn state(&self) -> MutexGuard<'_, Collected> {
        // Every change is one step.
        self.0.locked()
    }
}
