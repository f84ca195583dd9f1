//! Walks recorded turns again and holds every line against the file, byte for byte.
//!
//! Needs no actor, network or file: everything that a turn was told is in its lines or stored
//! next to them. What a turn decided is computed anew, request digests included, so a difference is
//! either a changed file or a changed rule.

mod earlier;
mod line;
mod recorded_inputs;
mod rerun;
mod window;

use std::sync::Arc;

use earlier::Earlier;
use line::{LineRef, SealedLine};
use rerun::Rerun;
use window::Window;

use crate::{
    digest::Digest,
    entropy::Stream,
    message::{Message, MessageKind},
    run::{Run, conversation::Conversation, facts::SessionFacts},
    step::Step,
    transcript::{
        entry::{Line, Record, RecordKind, Stored},
        lines::FileLines,
        load::LoadAs,
    },
    turn::effect::HistoryUpdate,
};

/// What was walked again and found equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Turns, those that ended early included.
    pub turns: u64,
    /// Number of lines that turns wrote.
    pub lines: u64,
}

/// Why a transcript could not be walked again, or where it differs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The turn makes another line than the one that is recorded.
    #[error("line {line}, {}: the turn makes {expected}, recorded is {found}", step.name())]
    Differs {
        /// Number of the line, counted from 1.
        line: u64,
        /// Where the turn is.
        step: Step,
        /// What the turn makes, around the first difference; empty when it makes no further line.
        expected: String,
        /// What is there; empty when nothing does.
        found: String,
    },
    /// The turn asks for something that no line tells.
    #[error("line {line}, {}: no line tells {what}", step.name())]
    Untold {
        /// The line at which it should be.
        line: u64,
        /// Where the turn is.
        step: Step,
        /// Name of the missing part.
        what: &'static str,
    },
    /// A text next to the transcript is not at hand, or another one.
    #[error("line {line}: the stored text {digest} is not at hand")]
    NotStored {
        /// The line that names it.
        line: u64,
        /// Digest that names the stored text.
        digest: Digest,
    },
    /// The prompt of a run is not written as one of its session.
    #[error("line {line}: the prompt of this session stands as {expected}, recorded is {found}")]
    WrongPrompt {
        /// Number of the line, counted from 1.
        line: u64,
        /// What should be there, around the first difference.
        expected: String,
        /// The text that the transcript holds there, around the first difference.
        found: String,
    },
    /// What a run starts from cannot be read.
    #[error("line {line}: what the run starts from cannot be read")]
    NoSetup {
        /// The line of its `run_start`.
        line: u64,
    },
}

/// Texts next to a transcript, by digest.
pub type StoredTexts<'a> = &'a dyn Fn(Digest) -> Option<String>;

/// Walks all turns of a transcript again. Turns that ended early are compared up to there. Lines
/// that are no sealed lines of ours are passed over; [`crate::transcript::audit`] names them.
///
/// # Errors
///
/// [`ReplayError`], the first in the order of the file.
pub fn replay(bytes: &[u8], stored: StoredTexts<'_>) -> Result<Replayed, ReplayError> {
    replay_lines(&FileLines::read(bytes), stored)
}

/// The same, of a file that was read before.
///
/// # Errors
///
/// [`ReplayError`], the first in the order of the file.
pub fn replay_lines(
    file: &FileLines<'_>,
    stored: StoredTexts<'_>,
) -> Result<Replayed, ReplayError> {
    let lines = line::sealed(file);
    let mut earlier = Earlier::new(file);
    let mut replayed = Replayed::default();
    let mut session: Option<Session> = None;
    let mut prompt: Option<(&SealedLine<'_>, Arc<Message>)> = None;
    let mut at = 0;
    while let Some(file_line) = lines.get(at) {
        at += 1;
        match file_line.line {
            LineRef::Conversation(said) if said.message.kind == MessageKind::Prompt => {
                prompt = Some((file_line, Arc::clone(&said.message)));
            }
            LineRef::Conversation(said) => {
                if let Some(session) = &mut session {
                    session.conversation.said(HistoryUpdate::Message(Arc::clone(&said.message)));
                }
            }
            LineRef::Harness(record) => match &record.what {
                RecordKind::RunStart { .. } => {
                    let no_setup = ReplayError::NoSetup { line: file_line.number };
                    let (asked, prompt) = prompt.take().ok_or(no_setup.clone())?;
                    let before = (&mut earlier, asked.place);
                    let begun = Session::begin(session, file_line, record, before, stored)?;
                    let begun = begun.ok_or(no_setup)?;
                    begun.asked(asked)?;
                    let system = system_of(record, file_line.number, stored)?;
                    session = Some(begun.with_prompt(record, prompt, system));
                }
                RecordKind::RunResumed { .. } => {
                    let no_setup = ReplayError::NoSetup { line: file_line.number };
                    let before = (&mut earlier, file_line.place);
                    let resumed = Session::resumed(file_line, record, before, stored)?;
                    session = Some(resumed.ok_or(no_setup)?);
                }
                // It is of no turn, whatever it says.
                RecordKind::RunEnd { .. } => {}
                RecordKind::Mode { .. } if record.turn == 0 => {
                    if let Some(session) = &mut session {
                        session.conversation.memory.overrides.note(&record.what);
                    }
                }
                _ if record.turn != 0 => {
                    let Some(session) = &mut session else { continue };
                    let window = Window::at(&lines, at - 1, record);
                    replayed.lines += window.lines.len() as u64;
                    replayed.turns += 1;
                    session.turn(&window, stored)?;
                    at = window.end;
                }
                _ => {}
            },
        }
    }
    Ok(replayed)
}

/// What a session knew.
struct Session {
    conversation: Conversation,
    run: Run,
}

impl Session {
    /// The session at the start of a run; `None` when its first line cannot be used.
    fn begin(
        known: Option<Self>,
        line: &SealedLine<'_>,
        record: &Record,
        (earlier, place): (&mut Earlier<'_>, usize),
        stored: StoredTexts<'_>,
    ) -> Result<Option<Self>, ReplayError> {
        let RecordKind::RunStart { stream, setup, first, .. } = &record.what else {
            return Ok(None);
        };
        if !first && known.is_some() {
            return Ok(known);
        }
        Self::opened(line, (stream, setup), (earlier, place), stored)
    }

    /// The session at the place where it goes on with a run of an earlier process.
    fn resumed(
        line: &SealedLine<'_>,
        record: &Record,
        before: (&mut Earlier<'_>, usize),
        stored: StoredTexts<'_>,
    ) -> Result<Option<Self>, ReplayError> {
        let (RecordKind::RunResumed { prompt, stream, setup, system }, Some(run)) =
            (&record.what, &record.run)
        else {
            return Ok(None);
        };
        let Some(opened) = Self::opened(line, (stream, setup), before, stored)? else {
            return Ok(None);
        };
        let system = system.as_ref().map(|it| text_of(it, line.number, stored)).transpose()?;
        let run = Run::new(run.clone(), prompt.clone()).with_system(system.map(Into::into));
        Ok(Some(Self { run, ..opened }))
    }

    /// A session that was opened with this stream and setup.
    fn opened(
        line: &SealedLine<'_>,
        (stream, setup): (&str, &Stored),
        (earlier, place): (&mut Earlier<'_>, usize),
        stored: StoredTexts<'_>,
    ) -> Result<Option<Self>, ReplayError> {
        let facts = serde_json::from_str::<SessionFacts>(&text_of(setup, line.number, stored)?);
        let (Ok(facts), Some(stream)) = (facts, Stream::from_hex(stream)) else { return Ok(None) };
        let load_as = if facts.agent.is_some() { LoadAs::Sidechain } else { LoadAs::Session };
        let mut conversation = Conversation::new(Arc::new(facts), stream);
        earlier.resume(&mut conversation, place, load_as);
        Ok(Some(Self { conversation, run: Run::new("".into(), "".into()) }))
    }

    /// Whether the line of a prompt is one of this session.
    fn asked(&self, line: &SealedLine<'_>) -> Result<(), ReplayError> {
        let LineRef::Conversation(said) = line.line else { return Ok(()) };
        let said = Line::Conversation(Box::new(said.clone()));
        match line.difference(&said, &self.conversation.facts) {
            None => Ok(()),
            Some((expected, found)) => {
                Err(ReplayError::WrongPrompt { line: line.number, expected, found })
            }
        }
    }

    fn with_prompt(
        mut self,
        record: &Record,
        prompt: Arc<Message>,
        system: Option<Arc<str>>,
    ) -> Self {
        if let Some(run) = &record.run {
            self.run = Run::new(run.clone(), prompt.id.clone()).with_system(system);
        }
        self.conversation.begin_run(prompt);
        self
    }

    fn turn(&mut self, window: &Window<'_>, stored: StoredTexts<'_>) -> Result<(), ReplayError> {
        self.run.turns = window.turn;
        let stream = self.conversation.stream.child(self.run.id.as_str());
        let closing = window.closing(stream, self.run.turns);
        let told = window.told(closing);
        if !told.is_empty() {
            let mut rerun = Rerun::new(&mut self.conversation, &self.run, told, stored)?;
            let report = rerun.walk()?;
            // Of a turn that was ended from outside, nothing is handed on.
            if let (Some(report), None) = (report, closing) {
                self.conversation.memory = report.memory;
            }
        }
        match closing {
            Some(first) => window.close(first, &mut self.conversation, &self.run),
            None => Ok(()),
        }
    }
}

/// What a run has after the system prompt.
fn system_of(
    record: &Record,
    line: u64,
    stored: StoredTexts<'_>,
) -> Result<Option<Arc<str>>, ReplayError> {
    let RecordKind::RunStart { system: Some(system), .. } = &record.what else { return Ok(None) };
    text_of(system, line, stored).map(|it| Some(it.into()))
}

/// A text inside or next to the transcript.
fn text_of(text: &Stored, line: u64, stored: StoredTexts<'_>) -> Result<String, ReplayError> {
    match text {
        Stored::Text(text) => Ok(text.clone()),
        Stored::At(digest) => stored(*digest)
            .filter(|it| Digest::of(it.as_bytes()) == *digest)
            .ok_or(ReplayError::NotStored { line, digest: *digest }),
        // The one that repeats a text does not ask for it.
        Stored::Again(digest) => Err(ReplayError::NotStored { line, digest: *digest }),
    }
}

#[cfg(test)]
mod tests;
