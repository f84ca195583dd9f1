//! What a run is asked for with.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{ids::RunId, transcript::entry::wire_len};

/// Bytes that a name of the caller's (a run's, a sender's) may take as JSON string. It stands in
/// records, which are at most 4 KiB.
const MAX_NAME_BYTES: usize = 128;

/// What a run is asked for with (TRN-14).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRequest {
    /// The prompt.
    pub prompt: String,
    /// Names the run; a repeated id answers with the earlier outcome. `None`: one is made.
    pub run: Option<RunId>,
    /// Where it came from, for the record: `api`, `print`, `demo`, `agent`.
    pub origin: &'static str,
    /// Who asks, for the record. `None`: nobody said.
    pub sender: Option<Sender>,
    /// How long it may take by the wall clock, counted from when it begins and not while it waits
    /// in the queue; then it ends as [`RunEnd::TimedOut`](super::RunEnd::TimedOut). `None`: as long
    /// as it takes.
    pub time_limit: Option<Duration>,
}

/// Who asks for a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sender {
    /// Names the person or program, as whoever hosts the session knows it; at most 128 bytes.
    pub id: String,
    /// Whether the session is theirs.
    pub is_owner: bool,
}

/// Why a run cannot be asked for like this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidRequest {
    /// The id of the run or of the sender is empty or too long.
    #[error("the id of the {of} has {bytes} bytes, not 1 to {MAX_NAME_BYTES}")]
    Name {
        /// Whose: `run` or `sender`.
        of: &'static str,
        /// Its length as JSON string, without the quotes.
        bytes: usize,
    },
}

impl RunRequest {
    /// A run through the library's handle.
    pub fn new(prompt: impl Into<String>) -> Self {
        Self { prompt: prompt.into(), run: None, origin: "api", sender: None, time_limit: None }
    }

    /// The same with a limit on its time.
    #[must_use]
    pub fn time_limit(self, limit: Duration) -> Self {
        Self { time_limit: Some(limit), ..self }
    }

    /// The same, asked for by this sender.
    #[must_use]
    pub fn sender(self, id: impl Into<String>, is_owner: bool) -> Self {
        Self { sender: Some(Sender { id: id.into(), is_owner }), ..self }
    }

    /// Whether a run can begin with it.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest`], the first thing that is wrong.
    pub fn check(&self) -> Result<(), InvalidRequest> {
        let run = self.run.iter().map(|it| ("run", it.as_str()));
        let sender = self.sender.iter().map(|it| ("sender", it.id.as_str()));
        for (of, name) in run.chain(sender) {
            let bytes = wire_len(name);
            if !(1..=MAX_NAME_BYTES).contains(&bytes) {
                return Err(InvalidRequest::Name { of, bytes });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: TRN-14
    #[test]
    fn names_are_short_enough_for_a_record() {
        let check = |name: &str| {
            let of_sender = RunRequest::new("go").sender(name, true).check();
            let of_run = RunRequest { run: Some(name.into()), ..RunRequest::new("go") }.check();
            assert_eq!(of_sender.is_ok(), of_run.is_ok());
            of_sender
        };
        assert_eq!(check("anna@example.org"), Ok(()));
        assert_eq!(check(&"x".repeat(128)), Ok(()));
        let wrong = |bytes| Err(InvalidRequest::Name { of: "sender", bytes });
        assert_eq!(check(&"\n".repeat(65)), wrong(130));
        assert_eq!(check(""), wrong(0));
    }
}
