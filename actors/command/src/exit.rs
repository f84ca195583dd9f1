//! The exit codes, all of them, and what goes with one that is not 0.

use std::{error::Error, fmt, process::ExitCode};

/// How the command ends. The numbers are stable, and of two ends the one with the higher number is
/// the worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// It did what it was asked.
    Success,
    /// A run ended with an error.
    RunFailed,
    /// Flags, files or settings cannot be used.
    BadInput,
    /// The model server cannot be reached, is not believed, or does not accept the caller.
    NoModel,
    /// A transcript is not in order, or a case was missed.
    NotVerified,
    /// Another process writes the transcript.
    Locked,
    /// The user pressed Ctrl-C.
    Interrupted,
    /// SIGTERM, SIGHUP or SIGQUIT.
    Terminated,
}

/// The end of `--help`.
pub const HELP: &str = "\
Exit codes:
  0    success
  1    the run ended with an error
  2    bad input: flags, files, settings
  3    the model server cannot be reached, its certificate is not trusted, or it does not accept the key
  4    a transcript is not in order, or a case was missed
  5    the transcript is locked by another process
  130  interrupted (Ctrl-C)
  143  terminated (SIGTERM, SIGHUP, SIGQUIT)";

impl Exit {
    /// Returns the exit code of the process.
    pub fn code(self) -> u8 {
        match self {
            Exit::Success => 0,
            Exit::RunFailed => 1,
            Exit::BadInput => 2,
            Exit::NoModel => 3,
            Exit::NotVerified => 4,
            Exit::Locked => 5,
            Exit::Interrupted => 130,
            Exit::Terminated => 143,
        }
    }
}

impl Exit {
    /// Returns the end with this code; `None` where there is none.
    pub(crate) fn of_code(code: u8) -> Option<Self> {
        use Exit::{
            BadInput, Interrupted, Locked, NoModel, NotVerified, RunFailed, Success, Terminated,
        };
        let all =
            [Success, RunFailed, BadInput, NoModel, NotVerified, Locked, Interrupted, Terminated];
        all.into_iter().find(|it| it.code() == code)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

/// Why it was not done, in one line that says what to do.
#[derive(Debug)]
pub struct Failure {
    /// How the command ends.
    pub exit: Exit,
    what: String,
}

impl Failure {
    /// Returns a failure that is reported in these words.
    pub fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self { exit, what: what.into() }
    }

    /// Ends the command so, with the words of an error and of its causes, each once.
    pub fn of(exit: Exit, error: &dyn Error) -> Self {
        let mut what = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let cause_text = cause.to_string();
            if !what.ends_with(&cause_text) {
                what = format!("{what}: {cause_text}");
            }
            source = cause.source();
        }
        Self { exit, what }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // One line, whatever a library says.
        let words: Vec<&str> = self.what.split_whitespace().collect();
        f.write_str(&words.join(" "))
    }
}
