//! BashOutput and KillShell: what a command in the background printed, and its end.

use std::{fmt::Write as _, sync::Arc};

use ennead_runtime::{
    ids::ShellId,
    ports::{
        ToolContext,
        shells::{BackgroundShell, NewOutput, ShellState},
    },
    saturating::Saturating as _,
    tool::{Access, Concurrency, ToolEffect, ToolErrorKind, ToolOutcome, ToolSpec, Truncation},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::number;
use crate::built_in::{BuiltIn, BuiltInCall};

/// Characters of new output that are shown by default.
const DEFAULT_OUTPUT_CHARS: u64 = 32_000;

/// Characters that `TASK_MAX_OUTPUT_LENGTH` may raise that to.
const MAX_OUTPUT_CHARS: u64 = 160_000;

/// Milliseconds in which a look at 64 MiB of output, or the end of a command, must be over.
const TIMEOUT_MS: u64 = 60_000;

/// Shows what a command in the background printed.
pub(crate) struct BashOutput;

/// What to show.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OutputInput {
    /// The name of the command: bash_1 and so on.
    bash_id: String,
    /// A regular expression: only lines in which it is found are shown. The others count as read.
    filter: Option<String>,
}

/// Ends a command in the background.
pub(crate) struct KillShell;

/// What to end.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KillInput {
    /// The name of the command: bash_1 and so on.
    shell_id: String,
}

impl BuiltIn for BashOutput {
    type Input = OutputInput;

    const CUTS_ITSELF: bool = true;

    fn spec(input_schema: Arc<str>) -> ToolSpec {
        ToolSpec::new(
            "BashOutput",
            "Shows what a command in the background has printed since this was last \
                asked, and whether it runs. A long output is cut at its beginning; the file that \
                holds all of it can be read with Read and Grep.",
            input_schema,
        )
        .with_effect(ToolEffect::ReadOnly)
        // What is new is new for one of them.
        .with_concurrency(Concurrency::Alone)
        .with_access(Access::Free)
        .with_output_cap(32_000)
        .with_timeout_ms(TIMEOUT_MS)
        .polling()
    }

    async fn call(call: BuiltInCall<OutputInput>, context: ToolContext) -> ToolOutcome {
        match find(&call.input.bash_id, &context) {
            Ok(shell) => show(&*shell, call.input.filter, &context, output_outcome).await,
            Err(why) => ToolOutcome::failed(ToolErrorKind::Failed, why),
        }
    }
}

impl BuiltIn for KillShell {
    type Input = KillInput;

    fn spec(input_schema: Arc<str>) -> ToolSpec {
        ToolSpec::new(
            "KillShell",
            "Kills a command in the background, with all processes that it started.",
            input_schema,
        )
        .with_access(Access::Free)
        .with_output_cap(32_000)
        .with_timeout_ms(TIMEOUT_MS)
    }

    async fn call(call: BuiltInCall<KillInput>, context: ToolContext) -> ToolOutcome {
        let shell = match find(&call.input.shell_id, &context) {
            Ok(shell) => shell,
            Err(why) => return ToolOutcome::failed(ToolErrorKind::Failed, why),
        };
        kill(&*shell, "bash", &context).await
    }
}

/// Shows what a command printed since it was last read, as a result makes it up.
pub(crate) async fn show(
    shell: &dyn BackgroundShell,
    filter: Option<String>,
    context: &ToolContext,
    outcome: impl FnOnce(&NewOutput) -> ToolOutcome,
) -> ToolOutcome {
    match shell.new_output(filter, max_output_chars(context)).await {
        Ok(mut output) => {
            let take = std::mem::replace(&mut output.take, Box::new(|| ()));
            let outcome = outcome(&output);
            // An interrupt from now on leaves this result, so nothing of it is lost.
            context.committed.set(outcome.clone());
            take();
            outcome
        }
        Err(why) => ToolOutcome::failed(ToolErrorKind::Failed, format!("{why}.")),
    }
}

/// Returns how many characters of a task's output are shown.
pub(crate) fn max_output_chars(context: &ToolContext) -> usize {
    let asked = number(context, "TASK_MAX_OUTPUT_LENGTH").unwrap_or(DEFAULT_OUTPUT_CHARS);
    usize::saturating(asked.clamp(1, MAX_OUTPUT_CHARS))
}

/// Kills a command, and says what became of it.
pub(crate) async fn kill(
    shell: &dyn BackgroundShell,
    task_type: &str,
    context: &ToolContext,
) -> ToolOutcome {
    let runs = shell.status().state == ShellState::Running;
    if runs {
        shell.kill().await;
    }
    let after = shell.status();
    let (id, command) = (&after.shell, &after.command);
    let message = match after.state {
        ShellState::Killed if runs => {
            format!("{id} (`{command}`) was killed with all its processes.")
        }
        state => format!("{id} (`{command}`) was not killed: it {state}."),
    };
    let outcome = if runs {
        ToolOutcome::ok(message.as_str())
    } else {
        ToolOutcome::failed(ToolErrorKind::Failed, message.as_str())
    };
    let result = json!({
        "message": message,
        "shell_id": id,
        "task_id": id,
        "task_type": task_type,
        "command": command,
    });
    let outcome = outcome.with_structured(&result);
    context.committed.set(outcome.clone());
    shell.end_is_known();
    outcome
}

/// The command of this name, or an error that lists those that run.
fn find(name: &str, context: &ToolContext) -> Result<Arc<dyn BackgroundShell>, String> {
    let host = context.processes.as_ref();
    let found = host.and_then(|it| it.shells().find(&ShellId::from(name)));
    found.ok_or_else(|| {
        let running = host.map(|it| it.shells().running()).unwrap_or_default();
        let mut why = format!("There is no command {name} in the background. ");
        why.push_str(if running.is_empty() { "None is running." } else { "Running:" });
        for it in running {
            // Writing to a string cannot fail.
            let _ = write!(why, "\n{}: `{}`", it.shell, it.command);
        }
        why
    })
}

/// Returns what a program calls the state of a command.
pub(crate) fn status_of(state: ShellState) -> &'static str {
    match state {
        ShellState::Running => "running",
        ShellState::Exited(0) => "completed",
        ShellState::Killed => "killed",
        _ => "failed",
    }
}

/// Returns what is new, for the model and for programs.
pub(crate) fn output_outcome(output: &NewOutput) -> ToolOutcome {
    let NewOutput { text, n_left_out, n_lost, status, .. } = output;
    let mut report = format!("{} (`{}`) {}.", status.shell, status.command, status.state);
    if 0 < *n_left_out {
        let _ =
            write!(report, " {n_left_out} bytes are left out here; {} holds them.", status.output);
    }
    if 0 < *n_lost {
        let _ = write!(
            report,
            " Of {n_lost} bytes at the end only the last are known; the file is full."
        );
    }
    report.push('\n');
    let trimmed = text.trim_end_matches('\n');
    report.push_str(if trimmed.is_empty() { "(no new output)" } else { trimmed });
    let known = status_of(status.state);
    let mut result = json!({
        "shellId": status.shell,
        "command": status.command,
        "status": known,
        "output": text,
    });
    if let Some(code) = status.state.exit_code() {
        result["exitCode"] = code.into();
    }
    let mut outcome = ToolOutcome::ok(report).with_structured(&result);
    outcome.exit_code = status.state.exit_code();
    if 0 < *n_left_out {
        let kept_chars = text.chars().count() as u64;
        let stored_at = Some((*status.output).to_owned());
        outcome.truncation = Some(Truncation::new(kept_chars + n_left_out, kept_chars, stored_at));
    }
    outcome
}
