//! Reads the stream of a Messages answer: bytes in, things to show and one outcome out.
//!
//! It is the same for every source of bytes: a socket, a recording, the simulated
//! model. Nothing of a stream may run or be kept before its outcome is a whole message.

use super::{
    FailureClass, ModelAnswer, ModelFailure,
    failure::class_of_error,
    sse::{SseEvent, SseParser},
};
use crate::{
    ids::{ToolName, ToolUseId},
    tokens::Usage,
};
pub(super) use batch::DeltaBatch;
use machine::StreamMachine;
pub(super) use machine::{MAX_ANSWER_BYTES, MAX_BLOCKS, TOO_LARGE};
pub(super) use preview::Preview;

mod batch;
pub(super) mod block_builder;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod machine;
mod plain;
mod preview;
pub(super) mod wire;

/// How far a stream is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StreamPhase {
    /// Nothing of a message has come.
    #[default]
    Idle,
    /// The message has begun, no block yet.
    MessageStart,
    /// Text, reasoning or something that arrives whole.
    Content,
    /// The input of a tool.
    ToolInput,
    /// The message is whole.
    Complete,
}

/// Something to show while the answer arrives. Taken back when the outcome is not a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamDelta {
    /// Text that was added.
    Text(String),
    /// Reasoning that was added.
    Reasoning(String),
    /// The input of a tool as far as it is known, in place of the preview before.
    ToolInput {
        /// Id of the tool use, as the model issued it.
        id: ToolUseId,
        /// Name of the tool that the call uses.
        name: ToolName,
        /// Partial JSON completed to valid JSON, after a whole value; never to be run.
        preview: String,
    },
    /// What it has cost so far, cumulative.
    Usage(Usage),
    /// The data of an event as it came, which may be no JSON. Only where [`StreamReader::keep_events`] asked for it.
    Event(String),
}

/// Reads the event stream of one answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamReader {
    sse: SseParser,
    machine: StreamMachine,
    keeps_events: bool,
}

/// How a stream ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamReport {
    /// What came of it.
    pub outcome: StreamOutcome,
    /// The text that came, in the order it came. To be shown, never taken for a message.
    pub partial_text: String,
    /// What it cost, as far as the provider reported it.
    pub usage: Usage,
    /// How far it came.
    pub phase: StreamPhase,
    reported: wire::ReportedUsage,
}

/// What came of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamOutcome {
    /// The stream ended with a whole message.
    Message(ModelAnswer),
    /// The provider broke off, or the stream was not a valid one.
    Error {
        /// The class of the failure.
        class: FailureClass,
        /// The provider's name for it, or `protocol_error`, `malformed_event`, `too_large`.
        code: String,
        /// The failure, in words for people.
        message: String,
    },
    /// The connection ended before the message did.
    Incomplete,
}

impl StreamReader {
    /// Makes a reader at the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Shows each event as it came, too.
    pub fn keep_events(&mut self) {
        self.keeps_events = true;
    }

    /// Feeds bytes; pushes what can be shown to `out`. Texts of one chunk come as one. Bytes after
    /// the outcome are not looked at.
    pub fn push_chunk(&mut self, bytes: &[u8], out: &mut Vec<StreamDelta>) {
        if self.is_complete() {
            return;
        }
        let Self { sse, machine, keeps_events } = self;
        let mut batch = DeltaBatch::new(out);
        let read = sse.push_chunk(bytes, |event| {
            if *keeps_events {
                batch.deltas.push(StreamDelta::Event(event.data.to_string()));
            }
            machine.handle(&event, &mut batch)
        });
        if let Err(error) = read
            && machine.error.is_none()
        {
            machine.error = Some(machine::too_large(&error.to_string()));
        }
        machine.show_previews(&mut batch);
    }

    /// Feeds events that came framed in another way, each a JSON text with its `type`.
    pub(super) fn push_events<'e>(
        &mut self,
        events: impl IntoIterator<Item = &'e str>,
        out: &mut Vec<StreamDelta>,
    ) {
        let mut batch = DeltaBatch::new(out);
        for data in events {
            if self.is_complete() {
                return;
            }
            let event = SseEvent { event: "".into(), data: data.into() };
            if self.keeps_events {
                batch.deltas.push(StreamDelta::Event(data.to_owned()));
            }
            // What it says is what `is_complete` says.
            let _settled = self.machine.handle(&event, &mut batch);
        }
        self.machine.show_previews(&mut batch);
    }

    /// Breaks the stream off, since what came cannot be read on, unless the outcome is settled.
    pub(super) fn break_off(&mut self, message: &str) {
        if !self.is_complete() {
            self.machine.error = Some(machine::protocol(message));
        }
    }

    /// Returns whether the outcome is settled (end of the message or an error); the rest need not be read.
    pub fn is_complete(&self) -> bool {
        self.machine.error.is_some() || self.machine.phase == StreamPhase::Complete
    }

    /// Returns a number that grows with everything that belongs to an answer: bytes of content and blocks, and not
    /// pings or events of unknown kinds.
    pub fn progress(&self) -> usize {
        let has_begun = usize::from(self.machine.phase != StreamPhase::Idle);
        self.machine.n_bytes() + self.machine.n_blocks() + has_begun
    }

    /// Ends the reader, since the connection has ended or [`StreamReader::is_complete`].
    pub fn finish(mut self) -> StreamReport {
        let partial_text = std::mem::take(&mut self.machine.partial_text);
        let (reported, phase) = (self.machine.usage, self.machine.phase);
        let outcome = match self.machine.error.take() {
            Some(error) => StreamOutcome::Error {
                class: if error.reported {
                    class_of_error(&error.code, &error.message, phase)
                } else {
                    class_of_breach(&error.code, phase)
                },
                code: error.code,
                message: error.message,
            },
            None if phase == StreamPhase::Complete => {
                StreamOutcome::Message(self.machine.into_answer())
            }
            None => StreamOutcome::Incomplete,
        };
        StreamReport { outcome, partial_text, usage: reported.usage(), phase, reported }
    }
}

/// Returns the class of a breach of the format, by its code and how far the stream had come. Where nothing that came
/// was part of an answer, or more came than an answer can hold, the server would do the same again.
pub(super) fn class_of_breach(code: &str, phase: StreamPhase) -> FailureClass {
    if phase == StreamPhase::Idle || code == TOO_LARGE {
        FailureClass::BadAnswer
    } else {
        FailureClass::StreamBroken
    }
}

impl StreamReport {
    /// Makes the report of a reader of another format.
    pub(super) fn new(
        outcome: StreamOutcome,
        partial_text: String,
        reported: wire::ReportedUsage,
        phase: StreamPhase,
    ) -> Self {
        Self { outcome, partial_text, usage: reported.usage(), phase, reported }
    }

    /// Returns the answer, or why there is none, with the text that was shown.
    ///
    /// # Errors
    ///
    /// [`ModelFailure`] when the outcome is not a whole message.
    pub fn into_result(self) -> Result<ModelAnswer, ModelFailure> {
        let partial_text = self.partial_text;
        self.outcome.into_result().map_err(|failure| ModelFailure { partial_text, ..failure })
    }
}

impl StreamOutcome {
    /// Returns the answer, or why there is none, without the text that was shown.
    ///
    /// # Errors
    ///
    /// [`ModelFailure`] when it is not a whole message.
    pub fn into_result(self) -> Result<ModelAnswer, ModelFailure> {
        let (class, message) = match self {
            Self::Message(answer) => return Ok(answer),
            Self::Error { class, code, message } if message.is_empty() => (class, code),
            Self::Error { class, code, message } => (class, format!("{code}: {message}")),
            Self::Incomplete => {
                (FailureClass::StreamBroken, "the stream ended before the message".to_owned())
            }
        };
        Err(ModelFailure {
            class,
            status: None,
            message,
            retry_after_ms: None,
            partial_text: String::new(),
        })
    }
}

#[cfg(test)]
mod tests;
