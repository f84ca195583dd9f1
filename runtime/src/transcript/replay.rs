//! Walks recorded sessions and their turns again and holds every line against the file, byte for byte.
//!
//! Needs no actor, network or file: everything that a turn or its session received is in their lines or
//! stored next to them. What they decided is computed anew, request digests included, so a difference
//! is either a changed file or a changed rule. Where the model was shown secrets, which no line holds,
//! digests and sizes of its requests are not compared, unless it is known what was taken out of the lines.

mod background;
mod earlier;
mod error;
mod line;
mod recorded_inputs;
mod rerun;
mod runs;
mod session;
mod texts;
mod window;

use earlier::PrefixLoader;
pub use error::ReplayError;
use line::{LineRef, RestoredRecords};
use runs::RecordedRuns;
use session::Session;
pub use texts::StoredTexts;
use window::TurnLines;

use crate::{
    message::MessageKind,
    transcript::{entry::RecordKind, lines::FileLines, restore::Restorations},
};

/// What was walked again and found equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Turns, those that ended early included.
    pub turns: u64,
    /// Number of lines that turns wrote.
    pub lines: u64,
    /// Lines that are equal but for digests and sizes of texts whose secrets only the model was shown;
    /// 0 where it was shown none.
    pub up_to_redaction: u64,
    /// Messages and records of which it was known what was taken out of them: they were compared as they were before.
    pub restored: u64,
    /// How often a line was looked at: a few times each, however long the file is.
    pub looks: u64,
    /// How often messages were counted and compiled for the requests that were made again: each a few times while a
    /// conversation only grows, and all that is there where a session is opened again.
    pub compiled: u64,
}

/// Walks all turns of a transcript again. Turns that ended early are compared up to there. Lines
/// that are not sealed lines of ours are passed over; [`crate::transcript::audit`] names them.
///
/// # Errors
///
/// [`ReplayError`], the first in the order of the file.
pub fn replay(bytes: &[u8], stored: StoredTexts<'_>) -> Result<Replayed, ReplayError> {
    replay_lines(&FileLines::read(bytes), stored)
}

/// Replays a file that was read before, as [`replay`] does.
///
/// # Errors
///
/// [`ReplayError`], the first in the order of the file.
pub fn replay_lines(
    file: &FileLines<'_>,
    stored: StoredTexts<'_>,
) -> Result<Replayed, ReplayError> {
    replay_restored(file, stored, &Restorations::default())
}

/// Replays a file of which it is known what was taken out of its lines: they are compared as they were before. A
/// session that was opened again read what is written.
///
/// # Errors
///
/// [`ReplayError`], the first in the order of the file; also where only a part of what was taken out is known, and what
/// follows from that differs from what is written.
pub fn replay_restored(
    file: &FileLines<'_>,
    stored: StoredTexts<'_>,
    known: &Restorations,
) -> Result<Replayed, ReplayError> {
    let as_written = stored;
    let stored: StoredTexts<'_> =
        &|digest| known.text(digest, as_written).or_else(|| as_written(digest));
    let restored = RestoredRecords::of(file, known);
    let lines = line::sealed(file, &restored);
    let (mut earlier, mut runs) = (PrefixLoader::new(file), RecordedRuns::of(&lines));
    let mut replayed = Replayed { restored: restored.len() as u64, ..Replayed::default() };
    let mut session: Option<Session> = None;
    let mut at = 0;
    while let Some(file_line) = lines.get(at) {
        at += 1;
        match file_line.line() {
            // It is looked at with the run that it begins.
            LineRef::Conversation(conversation)
                if conversation.message.kind == MessageKind::Prompt => {}
            LineRef::Conversation(_) => {
                if let Some(session) = &mut session {
                    session.replay_messages(&lines, at - 1)?;
                }
            }
            LineRef::Harness(record) => match &record.what {
                RecordKind::RunStart { .. } => {
                    let no_setup = ReplayError::NoSetup { line: file_line.number };
                    let number = runs.at(at - 1).ok_or(no_setup.clone())?;
                    let begun = &runs.all[number];
                    if begun.is_first || session.is_none() {
                        let opened = session::opened(record, file_line.number, stored)?;
                        let mut opened = opened.ok_or(no_setup)?;
                        let parent = begun.prompt_parent();
                        earlier.resume_after(&mut opened, begun.prompt.place, parent);
                        replayed.compiled += session.as_ref().map_or(0, Session::n_compiled);
                        let mut opened = Session::new(opened).with_unread(stored)?;
                        opened.keep_hooks(record.at, earlier.background(), stored);
                        session = Some(opened);
                    }
                    if let Some(session) = &mut session {
                        session.begin(&lines, &mut runs, number, stored)?;
                    }
                }
                RecordKind::RunResumed { .. } => {
                    let no_setup = ReplayError::NoSetup { line: file_line.number };
                    let opened = session::opened(record, file_line.number, stored)?;
                    let mut opened = opened.ok_or(no_setup)?;
                    earlier.resume(&mut opened, file_line.place);
                    replayed.compiled += session.as_ref().map_or(0, Session::n_compiled);
                    session = Some(Session::resumed(opened, file_line, stored)?);
                }
                // An end of a run is of no turn, whatever it says.
                RecordKind::RunEnd { .. } => {
                    if let Some(session) = &mut session {
                        session.noted(&lines, at - 1, runs.is_last_of_opening(at), stored)?;
                    }
                }
                _ => {
                    let Some(session) = &mut session else { continue };
                    if record.turn == 0 {
                        session.noted(&lines, at - 1, runs.is_last_of_opening(at), stored)?;
                        continue;
                    }
                    let window = TurnLines::at(&lines, at - 1, record);
                    replayed.lines += window.lines.len() as u64;
                    replayed.turns += 1;
                    at = window.end;
                    session.turn(&window, &lines, runs.is_last_of_opening(at), stored)?;
                }
            },
        }
    }
    replayed.compiled += session.as_ref().map_or(0, Session::n_compiled);
    let up_to_redaction = lines.iter().filter(|it| it.is_up_to_redaction());
    replayed.up_to_redaction = up_to_redaction.count() as u64;
    replayed.looks = lines.iter().map(line::SealedLine::n_looks).sum();
    Ok(replayed)
}

#[cfg(test)]
mod tests;
