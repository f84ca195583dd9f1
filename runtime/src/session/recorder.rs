//! What was handed to the writer of the transcript and is not answered yet.
//!
//! Every line of a session goes through here, so that after a crash of the writer everything
//! unanswered is sent again in order. Lines that others will follow at once are held back and go out
//! with those, in one write: a prompt, and the end of a turn that another follows.

use std::{collections::VecDeque, mem, sync::Arc};

use super::{
    effect::{Batch, SessionEffect},
    names::{MessageNumber, PromptId, TurnKey, WriteTicket},
};
use crate::{
    digest::Digest,
    transcript::entry::{Line, StoredText},
    turn,
};

/// Who waits for a write to be safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteOrigin {
    /// A turn, which goes on when its lines are safe.
    Turn {
        key: TurnKey,
        /// The turn's own ticket.
        ticket: u64,
    },
    /// Nothing: lines that close a turn, or that were flushed.
    Unawaited,
    /// The one that sent the message with which the run of this prompt begins.
    Begun(PromptId),
    /// The one that sent this message.
    Message(MessageNumber),
    /// The end of a run.
    RunEnd,
}

/// Lines that go out together.
#[derive(Debug, Default)]
pub(super) struct PendingLines {
    pub(super) lines: Vec<Line>,
    pub(super) stored: Vec<StoredText>,
    pub(super) title: Option<Arc<str>>,
    pub(super) sync: bool,
}

impl From<turn::effect::Append> for PendingLines {
    fn from(append: turn::effect::Append) -> Self {
        let turn::effect::Append { lines, stored, title, sync, .. } = append;
        Self { lines, stored, title, sync }
    }
}

impl PendingLines {
    /// Makes lines of one that is to be on disk.
    pub(super) fn synced(line: Line) -> Self {
        Self { lines: vec![line], sync: true, ..Self::default() }
    }

    fn extend(&mut self, later: Self) {
        self.lines.extend(later.lines);
        self.stored.extend(later.stored);
        self.title = later.title.or(self.title.take());
        self.sync |= later.sync;
    }
}

/// The session's side of its transcript.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    /// Whether a writer takes batches.
    is_open: bool,
    unanswered: VecDeque<(WriteOrigin, Batch)>,
    held: PendingLines,
    /// Whether an unanswered batch is known not to be written.
    has_lost: bool,
    last_ticket: WriteTicket,
}

/// What an answer of the writer means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Acknowledged {
    /// The lines are safe; the chain ends in this hash.
    Recorded(WriteOrigin, Digest),
    /// The lines are lost, for a reason in words.
    Lost(String),
    /// The lines were sent again meanwhile, or were reported as lost before.
    Stale,
}

impl Recorder {
    /// Notes that there is a writer, the first or another one, and sends it everything that is unanswered.
    pub(super) fn opened(&mut self, effects: &mut Vec<SessionEffect>) {
        self.is_open = true;
        self.send_again(effects);
    }

    /// Sends everything unanswered under new tickets. Answers to the old ones are stale.
    fn send_again(&mut self, effects: &mut Vec<SessionEffect>) {
        self.has_lost = false;
        for (_, batch) in &mut self.unanswered {
            batch.ticket = self.last_ticket.advance();
            if self.is_open {
                effects.push(SessionEffect::Write(batch.clone()));
            }
        }
    }

    /// Tries once more to write what was lost.
    pub(super) fn retry_lost(&mut self, effects: &mut Vec<SessionEffect>) {
        if self.has_lost {
            self.send_again(effects);
        }
    }

    /// Forgets who waits for what is unanswered. It is still to be written.
    pub(super) fn forget_waiting(&mut self) {
        self.unanswered.iter_mut().for_each(|(origin, _)| *origin = WriteOrigin::Unawaited);
    }

    /// Holds lines back until the next ones.
    pub(super) fn hold(&mut self, lines: PendingLines) {
        self.held.extend(lines);
    }

    /// Writes what is held back.
    pub(super) fn flush(&mut self, effects: &mut Vec<SessionEffect>) {
        if !self.held.lines.is_empty() {
            self.append(WriteOrigin::Unawaited, PendingLines::default(), effects);
        }
    }

    /// Writes what is held back, then these lines.
    pub(super) fn append(
        &mut self,
        origin: WriteOrigin,
        lines: PendingLines,
        effects: &mut Vec<SessionEffect>,
    ) {
        let mut all = mem::take(&mut self.held);
        all.extend(lines);
        let PendingLines { lines, stored, title, sync } = all;
        let ticket = self.last_ticket.advance();
        let batch = Batch { ticket, lines: Arc::new(lines), stored, title, sync };
        if self.has_lost {
            // What was lost comes first, so that no line goes before those that it follows.
            self.unanswered.push_back((origin, batch));
            return self.send_again(effects);
        }
        if self.is_open {
            effects.push(SessionEffect::Write(batch.clone()));
        }
        self.unanswered.push_back((origin, batch));
    }

    /// Takes an answer of the writer.
    pub(super) fn answered(
        &mut self,
        ticket: WriteTicket,
        result: Result<Digest, String>,
    ) -> Acknowledged {
        let at = self.unanswered.iter().position(|(_, it)| it.ticket == ticket);
        let Some(at) = at else { return Acknowledged::Stale };
        match result {
            Ok(head) => match self.unanswered.remove(at) {
                Some((origin, _)) => Acknowledged::Recorded(origin, head),
                None => Acknowledged::Stale,
            },
            // What follows lost lines is lost with them; the first loss was reported.
            Err(_) if self.has_lost => Acknowledged::Stale,
            Err(why) => {
                self.has_lost = true;
                Acknowledged::Lost(why)
            }
        }
    }
}
