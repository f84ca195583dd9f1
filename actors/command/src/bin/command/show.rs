//! Writes to standard output and standard error; nothing else does.
//!
//! What models, servers, tools and files contributed loses its control sequences here, so that no
//! caller can forget it: all text does, except what is named `draw` and `piece`.

use std::io::{self, IsTerminal, Write};

use ennead_command::exit::{Exit, Failure};
use ennead_runtime::output::terminal::{OutputTarget, clean, clean_for, clean_line, escape_json};
use rustix::fs::fstat;
use serde_json::{Value, json};

use crate::{args::OutputFormat, program};

/// Prints a line on standard error about what went wrong, or what is worth knowing.
pub(crate) fn problem(text: &str) {
    note(&format!("ennead: {}", clean_line(text)));
}

/// Prints text on standard error, ended with a newline.
pub(crate) fn note(text: &str) {
    let text = format!("{}\n", clean(text));
    if !program::is_noted(&text) {
        // Without a reader of standard error there is nothing to report to.
        let _unread = io::stderr().lock().write_all(text.as_bytes());
    }
}

/// Prints text on standard error as it is, at once. It holds control sequences of ours and clean text.
pub(crate) fn draw(text: &str) {
    let mut out = io::stderr().lock();
    let _unread = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Prints text for people on standard output, ended with a newline if it has none.
///
/// # Errors
///
/// It cannot be written, as on a full disk: a caller must not take what is cut for the whole.
pub(crate) fn result(text: &str) -> Result<(), Failure> {
    whole(&clean(text))
}

/// Prints what a model answered on standard output, ended with a newline if it has none. A terminal gets it as every
/// other text; a file or a program gets all that it may need, without escape sequences.
///
/// # Errors
///
/// As [`result`].
pub(crate) fn answer(text: &str) -> Result<(), Failure> {
    let place =
        if io::stdout().is_terminal() { OutputTarget::Terminal } else { OutputTarget::Pipe };
    whole(&clean_for(place, text))
}

/// Prints a value on standard output, as one line of JSON in which controls are escapes.
///
/// # Errors
///
/// As [`result`].
pub(crate) fn json(value: &Value) -> Result<(), Failure> {
    whole(&escape_json(&value.to_string()))
}

/// Moves the reason of a run that could not begin to where a program reads its result.
pub(crate) fn failure_result(format: OutputFormat, failure: Failure) -> Failure {
    if format == OutputFormat::Json {
        let object = json!({
            "type": "result",
            "subtype": "error_during_execution",
            "is_error": true,
            "num_turns": 0,
            "errors": [failure.to_string()],
        });
        // Without a reader of standard output the exit code is left.
        let _unread = self::json(&object);
    }
    failure
}

/// Prints clean text on standard output as it is, at once.
///
/// # Errors
///
/// As [`result`].
pub(crate) fn piece(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Returns whether standard output and standard error go to one place, so that a person sees both.
pub(crate) fn is_one_place() -> bool {
    match (fstat(io::stdout()), fstat(io::stderr())) {
        (Ok(out), Ok(err)) => (out.st_dev, out.st_ino) == (err.st_dev, err.st_ino),
        _ => false,
    }
}

fn whole(text: &str) -> Result<(), Failure> {
    let newline = if text.ends_with('\n') { "" } else { "\n" };
    let mut out = io::stdout().lock();
    let all = out.write_all(text.as_bytes()).and_then(|()| out.write_all(newline.as_bytes()));
    written(all.and_then(|()| out.flush()))
}

fn written(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        // A reader that has read enough (`head`) closes the pipe; that is not a failure of ours.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let what = format!("cannot write to standard output: {error}");
            Err(Failure::new(Exit::RunFailed, what))
        }
        _ => Ok(()),
    }
}
