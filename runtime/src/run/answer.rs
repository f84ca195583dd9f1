//! What a run left, as a value or an error: for a caller who only wants the answer.

use std::fmt;

use super::{RunEnd, outcome::RunOutcome};
use crate::output::terminal::clean;

/// The answer of a run that succeeded.
///
/// Shown with `{}`, it is its text without what a terminal would obey; `text` has every character
/// that the model wrote.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Answer {
    /// The text of the last answer. Empty when the model wrote nothing at the end.
    pub text: String,
    /// Everything else that the run left. Its `text` has moved to the field above.
    pub outcome: Box<RunOutcome>,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&clean(&self.text))
    }
}

/// A run that left an outcome without an answer. The session can go on.
#[derive(Clone, thiserror::Error)]
#[error("the run failed ({}): {}", .reason.code(), clean(.message))]
#[non_exhaustive]
pub struct RunFailed {
    /// Why the run ended.
    pub reason: RunEnd,
    /// What went wrong, in words; of an error of the model, what the provider wrote about it.
    pub message: String,
    /// What it left: its messages, what it cost, which calls were denied.
    pub outcome: Box<RunOutcome>,
}

impl fmt::Debug for RunFailed {
    // `main` shows an error by its `Debug`, and a whole outcome would bury the message.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunFailed")
            .field("reason", &self.reason)
            .field("message", &self.message)
            .finish_non_exhaustive()
    }
}

impl RunOutcome {
    /// Returns why the run left no answer, in words; `None` when it left one.
    pub fn failure(&self) -> Option<String> {
        match self.end {
            end if end.is_success() => None,
            RunEnd::MaxTurns => Some(format!("reached the limit of {} turns", self.turns)),
            end => Some(self.error.clone().unwrap_or_else(|| end.code().replace('_', " "))),
        }
    }

    /// Returns the answer, or the failure as an error.
    ///
    /// A run whose model could not be asked, or that met a limit or an interrupt, has an outcome
    /// like every other, with an empty or unfinished text. This makes it an error, as
    /// `error_for_status` does with the answer of an HTTP server.
    ///
    /// # Errors
    ///
    /// [`RunFailed`] when the run ended for another reason than that the model was done, or was
    /// asked to stop.
    pub fn into_answer(mut self) -> Result<Answer, RunFailed> {
        match self.failure() {
            None => {
                let text = std::mem::take(&mut self.text);
                Ok(Answer { text, outcome: Box::new(self) })
            }
            Some(message) => Err(RunFailed { reason: self.end, message, outcome: Box::new(self) }),
        }
    }
}
