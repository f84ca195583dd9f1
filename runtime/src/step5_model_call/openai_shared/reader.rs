//! Drives a stream: bytes become events, events are handed to a format, and what is left at the
//! end becomes the one report that all formats give.
//!
//! What holds for all formats is decided here once: an error ends the
//! stream, nothing is read after the outcome, and an answer has a size.

use std::ops::ControlFlow;

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::step5_model_call::{
    FailureClass, ModelAnswer,
    failure::body_excerpt,
    sse::{SseEvent, SseParser},
    stream::{
        DeltaBatch, MAX_ANSWER_BYTES, StreamDelta, StreamOutcome, StreamPhase, StreamReport,
        TOO_LARGE, class_of_breach, wire::ReportedUsage,
    },
};

/// Ends a stream without a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    pub(crate) class: FailureClass,
    /// The provider's name for it, or `protocol_error`, `malformed_event`, `too_large`.
    pub(crate) code: String,
    /// The failure, in words for people.
    pub(crate) message: String,
    /// It is about the form, and not a message of the provider.
    pub(crate) is_ours: bool,
}

impl Broken {
    /// Makes the failure of an event that came where it may not come.
    pub(crate) fn protocol(message: &str) -> Self {
        Self::ours("protocol_error", message)
    }

    /// Makes the failure of an event that lacks what its kind demands.
    pub(crate) fn malformed(message: &str) -> Self {
        Self::ours("malformed_event", message)
    }

    /// Makes the failure of more than an answer can hold.
    pub(crate) fn too_large(message: &str) -> Self {
        Self::ours(TOO_LARGE, message)
    }

    fn ours(code: &str, message: &str) -> Self {
        let class = FailureClass::StreamBroken;
        Self { class, code: code.into(), message: message.into(), is_ours: true }
    }

    /// The failure of a stream that had come so far.
    fn at(self, phase: StreamPhase) -> StreamOutcome {
        let class = if self.is_ours { class_of_breach(&self.code, phase) } else { self.class };
        Self { class, ..self }.into()
    }

    /// Returns the failure of a body that was read whole. One that does not end in the middle is what the server means
    /// to answer, and no wait mends that.
    pub(crate) fn of_whole(self, body: &str) -> StreamOutcome {
        let read = serde_json::from_str::<IgnoredAny>(body);
        let is_cut = !body.is_empty() && read.is_err_and(|it| it.is_eof());
        let message = if self.is_ours {
            format!("{}, but \"{}\"", self.message, body_excerpt(body))
        } else {
            self.message
        };
        Self { message, ..self }.at(if is_cut {
            StreamPhase::MessageStart
        } else {
            StreamPhase::Idle
        })
    }
}

impl From<Broken> for StreamOutcome {
    fn from(Broken { class, code, message, .. }: Broken) -> Self {
        Self::Error { class, code, message }
    }
}

/// What any format keeps while it reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadProgress {
    pub(crate) phase: StreamPhase,
    pub(crate) usage: ReportedUsage,
    partial_text: String,
    n_bytes: usize,
}

impl ReadProgress {
    /// Adds text to be shown.
    pub(crate) fn text(&mut self, text: &str, out: &mut DeltaBatch<'_>) -> Result<(), Broken> {
        self.phase = StreamPhase::Content;
        self.partial_text.push_str(text);
        out.text(text);
        self.count(text.len())
    }

    /// Adds reasoning to be shown.
    pub(crate) fn reasoning(&mut self, text: &str, out: &mut DeltaBatch<'_>) -> Result<(), Broken> {
        self.phase = StreamPhase::Content;
        out.reasoning(text);
        self.count(text.len())
    }

    /// Counts arguments of a call that came.
    pub(crate) fn arguments(&mut self, n_bytes: usize) -> Result<(), Broken> {
        self.phase = StreamPhase::ToolInput;
        self.count(n_bytes)
    }

    /// Begins the message, if nothing has begun it before.
    pub(crate) fn begin(&mut self) {
        if self.phase == StreamPhase::Idle {
            self.phase = StreamPhase::MessageStart;
        }
    }

    /// Replaces the amounts that were reported before.
    pub(crate) fn take_usage(&mut self, usage: ReportedUsage, out: &mut DeltaBatch<'_>) {
        self.usage = usage;
        out.deltas.push(StreamDelta::Usage(usage.usage()));
    }

    pub(crate) fn count(&mut self, n_bytes: usize) -> Result<(), Broken> {
        self.n_bytes = self.n_bytes.saturating_add(n_bytes);
        if MAX_ANSWER_BYTES < self.n_bytes {
            return Err(Broken::too_large("the answer is too long"));
        }
        Ok(())
    }
}

/// One format: what its events mean.
pub(crate) trait Format {
    /// Takes one event. The phase [`StreamPhase::Complete`] settles the outcome.
    fn take(
        &mut self,
        event: &SseEvent<'_>,
        progress: &mut ReadProgress,
        out: &mut DeltaBatch<'_>,
    ) -> Result<(), Broken>;

    /// Shows the arguments of calls as far as they came; once per read.
    fn show_previews(&mut self, out: &mut DeltaBatch<'_>);

    /// Returns whether there is a whole message, though the end mark has not come.
    fn is_whole(&self) -> bool;

    /// Returns the message, once it is whole.
    fn into_answer(self, progress: &ReadProgress) -> ModelAnswer;
}

/// Reads one stream of a format.
#[derive(Clone, Debug)]
pub(crate) struct FormatReader<F> {
    sse: SseParser,
    format: F,
    progress: ReadProgress,
    broken: Option<Broken>,
}

impl<F: Format> FormatReader<F> {
    /// Makes a reader at the start of a stream.
    pub(crate) fn new(format: F) -> Self {
        Self { sse: SseParser::new(), format, progress: ReadProgress::default(), broken: None }
    }

    /// Feeds bytes; pushes what can be shown to `out`.
    pub(crate) fn push_chunk(&mut self, bytes: &[u8], out: &mut Vec<StreamDelta>) {
        if self.is_complete() {
            return;
        }
        let Self { sse, format, progress, broken } = self;
        let mut batch = DeltaBatch::new(out);
        let read = sse.push_chunk(bytes, |event| {
            if let Err(error) = format.take(&event, progress, &mut batch) {
                *broken = Some(error);
            }
            if broken.is_some() || progress.phase == StreamPhase::Complete {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        if let Err(error) = read
            && broken.is_none()
        {
            *broken = Some(Broken::too_large(&error.to_string()));
        }
        format.show_previews(&mut batch);
    }

    /// Returns a number that grows with everything that belongs to an answer.
    pub(crate) fn progress(&self) -> usize {
        self.progress.n_bytes + usize::from(self.progress.phase != StreamPhase::Idle)
    }

    /// Returns whether the outcome is settled.
    pub(crate) fn is_complete(&self) -> bool {
        self.broken.is_some() || self.progress.phase == StreamPhase::Complete
    }

    /// Ends the reader, since the connection has ended or [`FormatReader::is_complete`].
    pub(crate) fn finish(self) -> StreamReport {
        let Self { format, mut progress, broken, .. } = self;
        let outcome = match broken {
            Some(broken) => broken.at(progress.phase),
            None if progress.phase == StreamPhase::Complete || format.is_whole() => {
                progress.phase = StreamPhase::Complete;
                StreamOutcome::Message(format.into_answer(&progress))
            }
            None => StreamOutcome::Incomplete,
        };
        let partial_text = std::mem::take(&mut progress.partial_text);
        StreamReport::new(outcome, partial_text, progress.usage, progress.phase)
    }
}

/// Reads the value of a member that servers fill in different ways. One of another shape counts as missing.
pub(crate) fn lenient<'a, T: serde::Deserialize<'a>>(raw: Option<&'a RawValue>) -> Option<T> {
    serde_json::from_str(raw?.get()).ok()
}
