//! Lines of a file, and whether a line that a turn makes is the same.

mod restored;
mod up_to_redaction;

use std::{borrow::Cow, cell::Cell};

pub(super) use restored::RestoredRecords;
use serde::Deserialize;

use crate::{
    run::facts::SessionFacts,
    time::Timestamp,
    transcript::{
        codec::{encode, joined},
        entry::{ConversationLine, Line, LineFrame, Record, RecordKind, StepDetail, Stored},
        lines::{FileLine, FileLines},
        read::Entry,
        seal::body_of,
    },
};

/// Bytes that a difference shows.
const SHOWN: usize = 200;

/// A sealed line of ours, or a record of one that several share.
pub(super) struct SealedLine<'a> {
    /// Number of the line, counted from 1.
    pub(super) number: u64,
    /// Its place among all lines of the file.
    pub(super) place: usize,
    line: LineRef<'a>,
    /// As it is on a line of its own, without the closing brace.
    body: Cow<'a, [u8]>,
    looks: Cell<u64>,
    /// Whether it was found equal but for what secrets leave of themselves.
    is_up_to_redaction: Cell<bool>,
}

/// What a line holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum LineRef<'a> {
    Conversation(&'a ConversationLine),
    Harness(&'a Record),
}

/// Returns all sealed lines, in order, those of several records record by record, as they were before secrets were taken
/// out of them where that is known.
pub(super) fn sealed<'a>(
    file: &'a FileLines<'_>,
    restored: &'a RestoredRecords,
) -> Vec<SealedLine<'a>> {
    let sealed = |(place, line): (usize, &'a FileLine<'_>)| {
        let held = own_lines(line)?.into_iter().enumerate();
        Some(held.map(move |(nth, written)| {
            let (held, body) = restored.at(place, nth).unwrap_or(written);
            SealedLine {
                number: line.number,
                place,
                line: held,
                body,
                looks: Cell::default(),
                is_up_to_redaction: Cell::default(),
            }
        }))
    };
    file.iter().enumerate().filter_map(sealed).flatten().collect()
}

/// Returns what a sealed line holds, each record as it is on a line of its own, without the closing brace. `None` for
/// lines of others.
fn own_lines<'a>(line: &'a FileLine<'_>) -> Option<Vec<(LineRef<'a>, Cow<'a, [u8]>)>> {
    let body = body_of(line.bytes)?;
    Some(match &line.read.as_ref()?.entry {
        Entry::Conversation { line, .. } => {
            vec![(LineRef::Conversation(line), Cow::Borrowed(body))]
        }
        Entry::Harness(records) => match &**records {
            [record] => vec![(LineRef::Harness(record), Cow::Borrowed(body))],
            records => {
                let bodies = joined::split(body, records).into_iter().map(Cow::Owned);
                records.iter().map(LineRef::Harness).zip(bodies).collect()
            }
        },
        Entry::Other { .. } => return None,
    })
}

/// What the writer knew and a turn does not.
#[derive(Default)]
struct WriterFields<'a> {
    version: Option<Cow<'a, str>>,
    git_branch: Option<Cow<'a, str>>,
}

impl<'a> WriterFields<'a> {
    /// Reads it off a conversation line. In front of it there are but short texts, in which a quote
    /// is escaped, so its keys are found without reading the line.
    fn of(body: &'a [u8]) -> Self {
        let Some((version, rest)) = member(body, br#","version":"#, usize::MAX) else {
            return Self::default();
        };
        let git_branch = member(rest, br#","gitBranch":"#, 0).map(|it| it.0);
        Self { version: Some(version), git_branch }
    }
}

/// The text after a key that begins at `max_at` at the latest, and what follows it.
fn member<'a>(body: &'a [u8], key: &[u8], max_at: usize) -> Option<(Cow<'a, str>, &'a [u8])> {
    let at = memchr::memmem::find(body, key).filter(|it| *it <= max_at)?;
    let rest = body.get(at + key.len()..)?;
    let mut texts = serde_json::Deserializer::from_slice(rest).into_iter::<LineText<'a>>();
    let text = texts.next()?.ok()?;
    Some((text.0, rest.get(texts.byte_offset()..)?))
}

#[derive(Deserialize)]
struct LineText<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> SealedLine<'a> {
    /// Returns what it holds; each look is counted.
    pub(super) fn line(&self) -> LineRef<'a> {
        self.looks.update(|it| it + 1);
        self.line
    }

    /// Counts how often it was looked at.
    pub(super) fn n_looks(&self) -> u64 {
        self.looks.get()
    }

    /// Returns whether it was found equal only up to redaction.
    pub(super) fn is_up_to_redaction(&self) -> bool {
        self.is_up_to_redaction.get()
    }

    /// Returns the clock reading of the input that caused it.
    pub(super) fn timestamp(&self) -> Timestamp {
        match self.line() {
            LineRef::Conversation(line) => line.at,
            LineRef::Harness(record) => record.at,
        }
    }

    /// Compares with a line that a turn makes: nothing when they are the same, or the same up to
    /// redaction where the model was shown secrets; else both around the first difference, the made
    /// one first.
    pub(super) fn difference(&self, made: &Line, facts: &SessionFacts) -> Option<(String, String)> {
        let (line, made) = (made, self.encode(made, facts));
        if made == *self.body
            || self.models_as_here(line).is_some_and(|it| self.encode(&it, facts) == *self.body)
        {
            return None;
        }
        if facts.shows_secrets && up_to_redaction::is_equal(line, &made, &self.body) {
            self.is_up_to_redaction.set(true);
            return None;
        }
        let same = made.iter().zip(&*self.body).take_while(|(left, right)| left == right).count();
        let around = |bytes: &[u8]| {
            let from = same.saturating_sub(SHOWN / 4);
            let until = bytes.len().min(same + SHOWN);
            String::from_utf8_lossy(bytes.get(from..until).unwrap_or_default()).into_owned()
        };
        Some((around(&made), around(&self.body)))
    }

    /// Returns a record with what is known of models where this one has it, in the line or in a file of its own, if it is
    /// the same text. The room that layers leave in a line is that of before secrets in them were replaced, of which the
    /// transcript does not know.
    fn models_as_here(&self, made: &Line) -> Option<Line> {
        let Line::Harness(made) = made else { return None };
        let LineRef::Harness(here) = self.line else { return None };
        let recorded = models_of(&here.what)?;
        let is_moved = models_of(&made.what)
            .is_some_and(|it| it != recorded && it.digest() == recorded.digest());
        let mut moved = is_moved.then(|| made.clone())?;
        if let RecordKind::TurnStep { detail: StepDetail::Settings { models, .. }, .. } =
            &mut moved.what
        {
            *models = Some(recorded.clone());
        }
        Some(Line::Harness(moved))
    }

    /// As the writer of this line would have written another one.
    fn encode(&self, made: &Line, facts: &SessionFacts) -> Vec<u8> {
        let WriterFields { version, git_branch } = match made {
            Line::Conversation(_) => WriterFields::of(&self.body),
            Line::Harness(_) => WriterFields::default(),
        };
        let frame = LineFrame {
            session: facts.session.clone(),
            agent: facts.agent.clone(),
            cwd: facts.workspace.clone(),
            git_branch: git_branch.map(Into::into),
            version: env!("CARGO_PKG_VERSION"),
        };
        let mut encoded = Vec::with_capacity(self.body.len() + SHOWN);
        encode(made, &frame, &mut encoded);
        if let Line::Harness(_) = made {
            self.take_version(&mut encoded);
        }
        match version.filter(|it| it != frame.version) {
            // Other versions may have written the file; inside of texts quotes are escaped.
            Some(version) => {
                let ours = format!(r#","version":"{}""#, frame.version);
                let theirs = format!(r#","version":{}"#, crate::block::quote(&version));
                let text = String::from_utf8(encoded).unwrap_or_default();
                text.replacen(&ours, &theirs, 1).into_bytes()
            }
            None => encoded,
        }
    }

    /// Gives a record the version that this one has.
    fn take_version(&self, made: &mut [u8]) {
        // Right after the kind, whose name has no comma.
        let at = |bytes: &[u8]| memchr::memmem::find(bytes, br#","v":"#).map(|it| it + 5);
        if let (Some(from), Some(to)) = (at(&self.body), at(made))
            && let (Some(theirs @ b'1'..=b'9'), Some(ours)) =
                (self.body.get(from), made.get_mut(to))
        {
            *ours = *theirs;
        }
    }
}

/// Returns what a record of settings knows of models.
fn models_of(what: &RecordKind) -> Option<&Stored> {
    match what {
        RecordKind::TurnStep { detail: StepDetail::Settings { models, .. }, .. } => models.as_ref(),
        _ => None,
    }
}

/// Shows a line that nothing represents, shortened.
pub(super) fn excerpt(line: &impl std::fmt::Debug) -> String {
    /// Takes the first characters of what is written to it.
    struct FirstChars(String);
    impl std::fmt::Write for FirstChars {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            let n_left = SHOWN - self.0.chars().count();
            self.0.extend(text.chars().take(n_left));
            if n_left == 0 { Err(std::fmt::Error) } else { Ok(()) }
        }
    }
    let mut head = FirstChars(String::new());
    // Full is not a failure.
    let _full = std::fmt::write(&mut head, format_args!("{line:?}"));
    head.0
}
