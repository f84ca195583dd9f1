//! Bash: one shell command in a process tree of its own.
//!
//! Every call is a new shell without a terminal and without input. Only its working directory is
//! kept for the next call, as long as it lies in the workspace. When the call ends, however it
//! ends, every process that it started ends with it, unless the command goes on in the background:
//! because that was asked for, or because it reached its time limit.

use std::{path::PathBuf, sync::Arc, time::Duration};

use ennead_runtime::{
    ports::{
        ToolContext,
        shells::{BackgroundShell, ShellsFull},
    },
    saturating::Saturating as _,
    tool::{Access, ToolErrorKind, ToolOutcome, ToolSpec},
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    blocking::interrupted,
    built_in::{BuiltIn, BuiltInCall},
    declared::number,
    hosted::{Worked, hosted_with_rest},
};
use background::KeptShell;
use process::{Ending, Followed, Running};

mod background;
mod capture;
mod cwd;
mod exit_meaning;
pub(crate) mod manage;
mod outcome;
mod process;
mod shown_file;
mod unread;

pub(crate) use manage::{BashOutput, KillShell};

/// Milliseconds a command may take by default.
const DEFAULT_TIMEOUT_MS: u64 = 120_000;

/// Milliseconds that may be asked for.
const MAX_TIMEOUT_MS: u64 = 600_000;

/// Characters of a valid output that are shown whole by default.
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
    /// Whether it goes on in the background; then there is no time limit. BashOutput shows what it
    /// prints, KillShell ends it.
    run_in_background: Option<bool>,
    /// Whether it is to run outside the sandbox, where there is one. Only for a command that failed
    /// because of the sandbox; it may need permission.
    #[serde(rename = "dangerouslyDisableSandbox")]
    leaves_sandbox: Option<bool>,
}

impl BuiltIn for Bash {
    type Input = BashInput;

    const CUTS_ITSELF: bool = true;

    fn spec(input_schema: Arc<str>) -> ToolSpec {
        let description = "Runs a shell command. The working directory is kept between calls while \
                it lies in the workspace, but not for a sub-agent; variables are not. There is no terminal and no input. \
                Processes left behind with & end with the command; with run_in_background the command itself goes on, \
                until it ends or the session does. So does one that reaches its time limit. Long output is put in a \
                file. Use Read, Edit, Write, Glob and Grep for what they can do.";
        // It has its own limit of time, which the model and the session's variables set.
        ToolSpec::new("Bash", description, input_schema)
            .with_access(Access::Command { field: "command".into() })
            .with_output_cap(30_000)
    }

    async fn call(call: BuiltInCall<BashInput>, context: ToolContext) -> ToolOutcome {
        if context.cancel.is_cancelled() {
            return interrupted();
        }
        if call.input.command.contains('\0') {
            let why = "The command has a NUL byte in it.";
            return ToolOutcome::failed(ToolErrorKind::Failed, why);
        }
        if call.input.run_in_background == Some(true)
            && let Some(why) = no_background(&context)
        {
            return ToolOutcome::failed(ToolErrorKind::Failed, why);
        }
        hosted_with_rest(context, |context| run(call, context)).await.unwrap_or_else(|| {
            let why = "What ran the command crashed. The command was killed with all its \
                processes; what it did until then stays done.";
            ToolOutcome::failed(ToolErrorKind::Crashed, why)
        })
    }
}

/// Why no further command can go on in the background, if none can.
fn no_background(context: &ToolContext) -> Option<String> {
    let Some(host) = &context.processes else {
        return Some("No command can go on in the background here.".into());
    };
    if number(context, "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS").is_some() {
        let why =
            "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS is set: no command goes on in the background.";
        return Some(why.into());
    }
    let full = ShellsFull::if_full(context.shell, host.shells().running().len());
    full.map(|why| format!("The command was not started: {why}."))
}

/// Whether a command that has reached its time limit goes on in the background.
fn may_go_on(command: &str, context: &ToolContext) -> bool {
    context.shell.background_at_limit
        && no_background(context).is_none()
        && exit_meaning::is_worth_waiting_for(command)
}

/// Runs a command from its start to the answer. Dropping the future ends its processes.
async fn run(call: BuiltInCall<BashInput>, context: ToolContext) -> Worked<ToolOutcome> {
    let whole = |result| Worked { result, rest: None };
    let default = number(&context, "BASH_DEFAULT_TIMEOUT_MS").unwrap_or(DEFAULT_TIMEOUT_MS);
    let most = number(&context, "BASH_MAX_TIMEOUT_MS").unwrap_or(MAX_TIMEOUT_MS).max(default);
    let timeout_ms = call.input.timeout.unwrap_or(default).min(most);
    let max_chars = number(&context, "BASH_MAX_OUTPUT_LENGTH")
        .unwrap_or(DEFAULT_OUTPUT_CHARS)
        .clamp(1, MAX_OUTPUT_CHARS);
    let cwd_file = match tempfile::NamedTempFile::new_in(&*context.temporary) {
        Ok(file) => file.into_temp_path(),
        Err(error) => {
            let why = format!("Cannot make a temporary file: {error}.");
            return whole(ToolOutcome::failed(ToolErrorKind::Failed, why));
        }
    };
    let cannot_run = |error| {
        let why = format!("Cannot run a shell: {error}.");
        whole(ToolOutcome::failed(ToolErrorKind::Failed, why))
    };
    let start = cwd::start(&context);
    let order = process::Order {
        id: &call.id,
        command: &call.input.command,
        leaves_sandbox: call.input.leaves_sandbox == Some(true),
        cwd: &start.path,
        cwd_file: &cwd_file,
        max_chars: usize::saturating(max_chars),
    };
    let mut running = match Running::start(&order, &context).await {
        Ok(running) => running,
        Err(error) => return cannot_run(error),
    };
    let command = call.input.command;
    let ending = if call.input.run_in_background == Some(true) {
        Followed::Stopped(None)
    } else {
        let until = process::foreground(Duration::from_millis(timeout_ms), &context);
        match running.follow(until, |_| ()).await {
            Ok(Followed::Stopped(Ending::TimedOut)) if may_go_on(&command, &context) => {
                Followed::Stopped(Some(timeout_ms))
            }
            Ok(Followed::Ended(ending) | Followed::Stopped(ending)) => Followed::Ended(ending),
            Err(error) => return cannot_run(error),
        }
    };
    let (ending, running) = match ending {
        Followed::Ended(ending) => (ending, running),
        Followed::Stopped(limit_ms) => {
            match background::keep(running, &command, &context).await {
                Ok(KeptShell { shell, going_on }) => {
                    let result = outcome::in_background(&shell.status(), limit_ms);
                    // It cannot be undone: an interrupt from now on does not end it.
                    context.committed.set(result.clone());
                    let rest = Box::pin(async move {
                        going_on.await;
                        drop(cwd_file);
                    });
                    return Worked { result, rest: Some(rest) };
                }
                Err((_, running)) if limit_ms.is_some() => (Ending::TimedOut, running),
                Err((why, _)) => {
                    let why = format!("The command was killed as soon as it was started: {why}.");
                    return whole(ToolOutcome::failed(ToolErrorKind::Failed, why));
                }
            }
        }
    };
    match running.finish(ending).await {
        Ok(ran) => {
            whole(outcome::of_command(command, start, cwd_file, timeout_ms, ran, context).await)
        }
        Err(error) => cannot_run(error),
    }
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
