//! Bash: one shell command in a process tree of its own.
//!
//! Every call is a new shell without a terminal and without input. Only its working directory is
//! kept for the next call, as long as it lies in the workspace. When the call ends, however it
//! ends, every process that it started ends with it.

use std::{path::PathBuf, sync::Arc, time::Duration};

use ennead_runtime::{
    ports::ToolContext,
    tool::{Access, Concurrency, ToolEffect, ToolErrorKind, ToolOutcome, ToolSpec},
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    blocking::interrupted,
    built_in::{BuiltIn, BuiltInCall},
    hosted::hosted,
};

mod answer;
mod capture;
mod cwd;
mod process;
mod shown;
mod words;

/// Milliseconds a command may take if nothing else is said.
const DEFAULT_TIMEOUT_MS: u64 = 120_000;

/// Milliseconds that may be asked for.
const MAX_TIMEOUT_MS: u64 = 600_000;

/// Characters of a valid output that are shown whole, if nothing else is said.
const DEFAULT_OUTPUT_CHARS: u64 = 30_000;

/// Characters that `BASH_MAX_OUTPUT_LENGTH` may raise that to.
const MAX_OUTPUT_CHARS: u64 = 150_000;

pub(crate) struct Bash;

/// A command.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BashInput {
    /// The command.
    command: String,
    /// Milliseconds it may take: 120000 if left out, at most 600000.
    timeout: Option<u64>,
    /// What it does, in five to ten words.
    #[expect(dead_code, reason = "for people; they read it in the input")]
    description: Option<String>,
}

impl BuiltIn for Bash {
    type Input = BashInput;

    const CUTS_ITSELF: bool = true;

    fn spec(input_schema: Arc<str>) -> ToolSpec {
        ToolSpec {
            name: "Bash".into(),
            description: "Runs a shell command. The working directory is kept between calls while \
                it lies in the workspace, but not for a sub-agent; variables are not. There is no terminal and no input. \
                Processes left in the background end with the command. Long output is put in a \
                file. Use Read, Edit, Write, Glob and Grep for what they can do."
                .into(),
            input_schema,
            effect: ToolEffect::SideEffects,
            concurrency: Concurrency::Alone,
            access: Access::Command { field: "command".into() },
            output_cap: Some(30_000),
            // It has its own limit, which the model and the session's variables set.
            timeout_ms: None,
            polls: false,
        }
    }

    async fn call(call: BuiltInCall<BashInput>, context: ToolContext) -> ToolOutcome {
        if context.cancel.is_cancelled() {
            return interrupted();
        }
        if call.input.command.contains('\0') {
            let why = "The command has a NUL byte in it.";
            return ToolOutcome::failed(ToolErrorKind::Failed, why);
        }
        hosted(context, |context| run(call, context)).await.unwrap_or_else(|| {
            let why = "What ran the command crashed. The command was killed with all its \
                processes; what it did until then stays done.";
            ToolOutcome::failed(ToolErrorKind::Crashed, why)
        })
    }
}

/// Runs a command from its start to the answer. Dropping the future ends its processes.
async fn run(call: BuiltInCall<BashInput>, context: ToolContext) -> ToolOutcome {
    let default = number(&context, "BASH_DEFAULT_TIMEOUT_MS").unwrap_or(DEFAULT_TIMEOUT_MS);
    let most = number(&context, "BASH_MAX_TIMEOUT_MS").unwrap_or(MAX_TIMEOUT_MS).max(default);
    let timeout_ms = call.input.timeout.unwrap_or(default).min(most);
    let max_chars = number(&context, "BASH_MAX_OUTPUT_LENGTH")
        .unwrap_or(DEFAULT_OUTPUT_CHARS)
        .clamp(1, MAX_OUTPUT_CHARS);
    let cwd_file = match tempfile::NamedTempFile::new() {
        Ok(file) => file.into_temp_path(),
        Err(error) => {
            let why = format!("Cannot make a temporary file: {error}.");
            return ToolOutcome::failed(ToolErrorKind::Failed, why);
        }
    };
    let start = cwd::start(&context);
    let order = process::Order {
        id: &call.id,
        command: &call.input.command,
        cwd: &start.path,
        cwd_file: &cwd_file,
        timeout: Duration::from_millis(timeout_ms),
        max_chars: usize::try_from(max_chars).unwrap_or(usize::MAX),
    };
    let ran = match process::run(&order, &context).await {
        Ok(ran) => ran,
        Err(error) => {
            let why = format!("Cannot run a shell: {error}.");
            return ToolOutcome::failed(ToolErrorKind::Failed, why);
        }
    };
    let command = call.input.command;
    answer::answer(command, start, cwd_file, timeout_ms, ran, context).await
}

/// A number among the session's variables; one that cannot be read counts as not said.
fn number(context: &ToolContext, name: &str) -> Option<u64> {
    let (_, value) = context.env.iter().rev().find(|(key, _)| key == name)?;
    value.trim().parse().ok().filter(|number| *number > 0)
}

/// Where a command starts.
#[derive(Debug)]
struct Start {
    path: PathBuf,
    /// The kept directory is gone.
    lost: bool,
}

#[cfg(test)]
mod tests;
