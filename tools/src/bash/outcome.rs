//! What the model reads about a command that ran.

use std::time::Duration;

use ennead_runtime::{
    ports::{ToolContext, shells::ShellStatus},
    tool::{ToolErrorKind, ToolNote, ToolOutcome, Truncation},
};
use serde_json::json;

use super::{
    Start, cwd, exit_meaning,
    process::{Ending, ShellResult},
    shown_file,
};
use crate::output::{head, tail};

/// Characters of the output of a failed command that are shown whole; above, half of them from
/// either end.
const MAX_FAILED_CHARS: usize = 10_000;

/// Characters shown of an output that was put in a file.
const PREVIEW_CHARS: usize = 2000;

/// Assembles the answer from how the command ended and what it printed.
pub(super) async fn of_command(
    command: String,
    start: Start,
    cwd_file: tempfile::TempPath,
    timeout_ms: u64,
    ran: ShellResult,
    context: ToolContext,
) -> ToolOutcome {
    let ShellResult { ending, mut capture, n_left_over } = ran;
    let (error, first_line) = verdict(ending, &command, timeout_ms);
    let mut output = match error {
        None => valid(&mut capture).await,
        Some(_) => failed(&mut capture).await,
    };
    let shows_file = matches!(ending, Ending::Exited(0)) && output.truncation.is_none();
    // Looks at files, so not on a thread that others wait for.
    let raw = if shows_file { output.text.clone() } else { String::new() };
    let hold = context.guard.clone();
    let looked = tokio::task::spawn_blocking(move || {
        let _kept_until_done = hold;
        let seen =
            shows_file.then(|| shown_file::shown_file(&command, &start.path, &raw)).flatten();
        (seen, cwd::after(&start, &cwd_file, &context))
    });
    let (seen, moved) = looked.await.unwrap_or_default();

    let mut notices = Vec::new();
    if n_left_over > 0 && matches!(ending, Ending::Exited(_)) {
        notices.push(format!(
            "{n_left_over} processes were still running in the background and were ended."
        ));
    }
    notices.extend(moved.notice);
    let stdout = output.text.trim_end_matches('\n').to_owned();
    let parts = [first_line.as_deref(), Some(stdout.as_str())];
    let text: Vec<&str> = parts
        .into_iter()
        .flatten()
        .chain(notices.iter().map(String::as_str))
        .filter(|part| !part.is_empty())
        .collect();
    let text = text.join("\n");
    let mut outcome = match error {
        None => ToolOutcome::ok(text),
        Some(kind) => ToolOutcome::failed(kind, text),
    };
    let mut result = json!({
        "stdout": stdout,
        "stderr": notices.join("\n"),
        "interrupted": ending == Ending::Cancelled,
        "isImage": false,
    });
    match ending {
        Ending::TimedOut => result["timedOutAfterMs"] = timeout_ms.into(),
        Ending::Exited(1) if error.is_none() => {
            result["returnCodeInterpretation"] = "exit code 1 is an answer of this command".into();
        }
        _ => {}
    }
    if let Some((path, n_bytes)) = &output.kept {
        result["persistedOutputPath"] = path.as_str().into();
        result["persistedOutputSize"] = (*n_bytes).into();
    }
    outcome = outcome.with_structured(&result);
    outcome.truncation = output.truncation.take();
    outcome.exit_code = match ending {
        Ending::Exited(code) => Some(code),
        _ => None,
    };
    outcome.notes = seen.into_iter().chain(moved.note).collect::<Vec<ToolNote>>();
    outcome
}

/// Makes the answer to a call whose command goes on in the background; because of its time limit, if that is given.
pub(super) fn in_background(shell: &ShellStatus, limit_ms: Option<u64>) -> ToolOutcome {
    let ShellStatus { shell: id, output, .. } = shell;
    let why = match limit_ms {
        None => format!("The command runs in the background as {id}."),
        Some(ms) => {
            let seconds = Duration::from_millis(ms).as_secs_f64();
            format!(
                "The command did not complete within its {seconds}s timeout and was moved to the \
                 background as {id}."
            )
        }
    };
    let text = format!(
        "{why} What it prints goes to {output}; BashOutput shows what is new, KillShell ends the \
         command. Its end is reported."
    );
    let mut result = json!({
        "stdout": "",
        "stderr": "",
        "interrupted": false,
        "isImage": false,
        "backgroundTaskId": id,
        "persistedOutputPath": output,
    });
    if let Some(ms) = limit_ms {
        result["timedOutAfterMs"] = ms.into();
    }
    ToolOutcome::ok(text).with_structured(&result)
}

/// Whether it failed, and the line that says how.
fn verdict(
    ending: Ending,
    command: &str,
    timeout_ms: u64,
) -> (Option<ToolErrorKind>, Option<String>) {
    let (kind, line) = match ending {
        Ending::Exited(0) => return (None, None),
        Ending::Exited(1) if exit_meaning::one_is_valid(command) => return (None, None),
        Ending::Exited(code) => (ToolErrorKind::Failed, format!("Exit code {code}")),
        Ending::TimedOut => (
            ToolErrorKind::TimedOut,
            format!(
                "The command did not end within {timeout_ms} ms and was killed with all its \
                 processes."
            ),
        ),
        Ending::Cancelled => (
            ToolErrorKind::Interrupted,
            "The command was interrupted and killed; what it did until then stays done.".into(),
        ),
        Ending::TooMuchOutput => {
            (ToolErrorKind::Failed, "The command was killed: its output exceeded 5 GB.".into())
        }
    };
    (Some(kind), Some(line))
}

struct Output {
    text: String,
    truncation: Option<Truncation>,
    /// The file with all of it, and its bytes.
    kept: Option<(String, u64)>,
}

/// Whole, or a file and its start.
async fn valid(capture: &mut super::capture::Capture) -> Output {
    if let Some(text) = capture.whole(capture.max_chars()) {
        return Output { text, truncation: None, kept: None };
    }
    let kept = capture.keep().await.map(|(path, n)| (path.to_string_lossy().into_owned(), n));
    let whole = capture.head();
    let preview = head(&whole, PREVIEW_CHARS);
    let n_chars = capture.n_chars();
    let place = match &kept {
        Ok((path, n_bytes)) if *n_bytes == capture.n_bytes() => format!("All of it is in {path}."),
        Ok((path, n_bytes)) => format!("Its first {n_bytes} bytes are in {path}."),
        Err(why) => format!("It could not be kept: {why}."),
    };
    let text = format!(
        "The output has {n_chars} characters. {place} It begins:\n\n{}\n...",
        preview.trim_end_matches('\n')
    );
    let kept = kept.ok();
    let stored_at = kept.as_ref().map(|(path, _)| path.clone());
    let truncation = Truncation::new(n_chars, preview.chars().count() as u64, stored_at);
    Output { text, truncation: Some(truncation), kept }
}

/// Whole, or its two ends; no file.
async fn failed(capture: &mut super::capture::Capture) -> Output {
    capture.forget().await;
    if let Some(text) = capture.whole(MAX_FAILED_CHARS as u64) {
        return Output { text, truncation: None, kept: None };
    }
    // The words in between have their place in the limit.
    let half = MAX_FAILED_CHARS / 2 - 50;
    let (start, end) = (capture.head(), capture.tail());
    let (start, end) = (head(&start, half), tail(&end, half));
    let kept_chars = (start.chars().count() + end.chars().count()) as u64;
    let original_chars = capture.n_chars();
    let n_left_out = original_chars.saturating_sub(kept_chars);
    let text = format!("{start}\n... [{n_left_out} characters left out] ...\n{end}");
    let truncation = Truncation::new(original_chars, kept_chars, None);
    Output { text, truncation: Some(truncation), kept: None }
}
