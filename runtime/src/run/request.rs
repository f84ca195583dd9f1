//! What a run is asked for with.

pub mod content;

use std::time::Duration;

use content::PromptBlock;
use serde::{Deserialize, Serialize};

use crate::{
    block::Block,
    ids::{EntryId, RunId},
    json::escaped_len,
};

/// Bytes that a name of the caller's (a run's, a sender's) may take as JSON string. It is in
/// records, which are at most 4 KiB.
const MAX_NAME_BYTES: usize = 128;

/// What a run is asked for with (TRN-14).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunRequest {
    /// The prompt, in order.
    pub content: Vec<PromptBlock>,
    /// Names the run; a repeated id answers with the earlier outcome. `None`: one is made.
    pub run: Option<RunId>,
    /// Names the line of the prompt in the transcript; a UUID that no line of it has. `None`: one is
    /// made.
    pub message: Option<EntryId>,
    /// Where it came from, for the record: `api`, `print`, `demo`, `agent`.
    pub origin: &'static str,
    /// What follows the system prompt in the turns of this run; its sub-agents do not have it.
    /// `None` or blank: nothing.
    pub system: Option<String>,
    /// The run sums up the conversation and answers nothing; the text says what to keep in mind, and may be empty.
    /// Its first 1,000 bytes count. The prompt stays as it is. `None`: the prompt is answered.
    pub compacts: Option<String>,
    /// Who asks, for the record. `None` if the request names no sender.
    pub sender: Option<Sender>,
    /// How long it may take by the wall clock, counted from when it begins and not while it waits
    /// in the queue; then it ends as [`RunEnd::TimedOut`](super::RunEnd::TimedOut). `None`: as long
    /// as it takes.
    pub time_limit: Option<Duration>,
}

/// Who asks for a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Sender {
    /// Names the person or program, as the one that hosts the session knows it; at most 128 bytes.
    pub id: String,
    /// Whether the session is theirs.
    pub is_owner: bool,
}

/// Why a run cannot be asked for like this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidRequest {
    /// The id of the run, the prompt or the sender is empty or too long.
    #[error("the id of the {of} has {bytes} bytes, not 1 to {MAX_NAME_BYTES}")]
    Name {
        /// Whose: `run`, `prompt` or `sender`.
        of: &'static str,
        /// Its length as JSON string, without the quotes.
        bytes: usize,
    },
    /// There is no content, or a text in it is blank; models take neither.
    #[error("the prompt is empty")]
    Empty,
    /// The data of an image or document is not base64.
    #[error("the {of} is not base64")]
    NotBase64 {
        /// Kind of the block: `image` or `document`.
        of: &'static str,
    },
    /// No model reads images of this type.
    #[error("no model reads images of `{media_type}`")]
    UnknownImage {
        /// The media type as it was given.
        media_type: Box<str>,
    },
    /// An address that a provider cannot fetch.
    #[error("the {of} has no http or https address")]
    NotUrl {
        /// Kind of the block: `image` or `document`.
        of: &'static str,
    },
    /// The prompt alone is more than the model's window holds in addition to the shortest answer.
    #[error("the prompt has about {tokens} tokens; the window of the model holds {limit} at most")]
    PromptTooLong {
        /// The estimate for the prompt.
        tokens: u64,
        /// The most that it may have.
        limit: u64,
    },
    /// It is larger than any provider takes.
    #[error("the {of} has {bytes} bytes as base64; {max} are the most that can be sent")]
    TooLarge {
        /// Kind of the block: `image` or `document`.
        of: &'static str,
        /// Its length as base64.
        bytes: usize,
        /// Greatest size that is taken, in bytes.
        max: usize,
    },
}

impl RunRequest {
    /// Makes the request of a run with this text through the library's handle.
    pub fn new(prompt: impl Into<String>) -> Self {
        Self::of([PromptBlock::text(&prompt.into())])
    }

    /// Makes the request of a run with texts, images and documents through the library's handle.
    pub fn of(content: impl IntoIterator<Item = PromptBlock>) -> Self {
        Self {
            content: content.into_iter().collect(),
            run: None,
            message: None,
            origin: "api",
            system: None,
            compacts: None,
            sender: None,
            time_limit: None,
        }
    }

    /// Makes a request for what a prompt holds that was accepted earlier.
    pub(crate) fn recorded(blocks: &[Block]) -> Self {
        Self::of(blocks.iter().cloned().map(PromptBlock::recorded))
    }

    /// Sets the name of the run; two requests of one name are one run.
    #[must_use]
    pub fn run(self, run: impl Into<RunId>) -> Self {
        Self { run: Some(run.into()), ..self }
    }

    /// Sets where the request comes from, for the record. Defaults to `api`.
    #[must_use]
    pub fn origin(self, origin: &'static str) -> Self {
        Self { origin, ..self }
    }

    /// Adds a block after those that the prompt has.
    #[must_use]
    pub fn block(mut self, block: PromptBlock) -> Self {
        self.content.push(block);
        self
    }

    /// Returns its content, as a message holds it.
    pub fn blocks(&self) -> Vec<Block> {
        self.content.iter().map(|it| it.block().clone()).collect()
    }

    /// Sets the name of the prompt's line in the transcript.
    #[must_use]
    pub fn message(self, id: impl Into<EntryId>) -> Self {
        Self { message: Some(id.into()), ..self }
    }

    /// Sets a limit on the time of the run.
    #[must_use]
    pub fn time_limit(self, limit: Duration) -> Self {
        Self { time_limit: Some(limit), ..self }
    }

    /// Appends a text to the system prompt, for this run only.
    #[must_use]
    pub fn system(self, text: impl Into<String>) -> Self {
        Self { system: Some(text.into()), ..self }
    }

    /// Has the conversation summed up in place of an answer. `focus` is what matters most.
    #[must_use]
    pub fn compacts(self, focus: impl Into<String>) -> Self {
        Self { compacts: Some(focus.into()), ..self }
    }

    /// Sets the sender who asks for the run.
    #[must_use]
    pub fn sender(self, id: impl Into<String>, is_owner: bool) -> Self {
        Self { sender: Some(Sender { id: id.into(), is_owner }), ..self }
    }

    /// Checks whether a run can begin with it.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest`], the first thing that is wrong.
    pub fn check(&self) -> Result<(), InvalidRequest> {
        let is_blank =
            |it: &PromptBlock| it.block().as_text().is_some_and(|it| it.trim().is_empty());
        if self.content.is_empty() || self.content.iter().any(is_blank) {
            return Err(InvalidRequest::Empty);
        }
        let run = self.run.iter().map(|it| ("run", it.as_str()));
        let message = self.message.iter().map(|it| ("prompt", it.as_str()));
        let sender = self.sender.iter().map(|it| ("sender", it.id.as_str()));
        for (of, name) in run.chain(message).chain(sender) {
            let bytes = escaped_len(name);
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
    fn request_without_content_is_refused() {
        let empty = Err(InvalidRequest::Empty);
        assert_eq!(RunRequest::of([]).check(), empty);
        assert_eq!(RunRequest::new("").check(), empty);
        assert_eq!(RunRequest::new("go").block(PromptBlock::text(" \n")).check(), empty);
        let image = PromptBlock::image("image/png", "QUJD").unwrap();
        assert_eq!(RunRequest::of([image]).check(), Ok(()));
    }

    // REQ: TRN-14
    #[test]
    fn names_are_short_enough_for_a_record() {
        let check = |name: &str| {
            let of_sender = RunRequest::new("go").sender(name, true).check();
            let of_run = RunRequest::new("go").run(name).check();
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
