//! Writes to standard output and standard error; nothing else does.

use std::io::{self, Write};

use crate::exit::{Exit, Failure};

/// A line on standard error that says what went wrong, or what is worth knowing.
pub(crate) fn problem(text: &str) {
    note(&format!("ennead: {text}"));
}

/// A line on standard error.
pub(crate) fn note(text: &str) {
    // When nobody reads standard error there is nobody to tell.
    let _unread = writeln!(io::stderr().lock(), "{text}");
}

/// Text on standard error as it is, at once.
pub(crate) fn draw(text: &str) {
    let mut out = io::stderr().lock();
    let _unread = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Text on standard output, ended with a newline if it has none.
///
/// # Errors
///
/// It cannot be written, as on a full disk: a caller must not take what is cut for the whole.
pub(crate) fn result(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let newline = if text.ends_with('\n') { "" } else { "\n" };
    let written = out
        .write_all(text.as_bytes())
        .and_then(|()| out.write_all(newline.as_bytes()))
        .and_then(|()| out.flush());
    match written {
        // A reader that has read enough (`head`) closes the pipe; that is no failure of ours.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let what = format!("cannot write to standard output: {error}");
            Err(Failure::new(Exit::RunFailed, what))
        }
        _ => Ok(()),
    }
}
