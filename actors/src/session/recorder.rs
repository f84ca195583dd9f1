//! A session's side of its transcript: what was handed to the writer and is not answered yet.
//!
//! Every line of a session goes through here, so that after a crash of the writer everything
//! unanswered is sent again in order, and so that the session knows what was said.
//!
//! Lines that nobody waits for and that others will follow at once are held here and go out with
//! those, in one write: a prompt, and the end of a turn after which another begins.

use std::{collections::VecDeque, sync::Arc};

use ennead_runtime::{
    digest::Digest,
    transcript::entry::{Line, StoredText},
    turn,
};

use crate::{
    archive::WriterHandle,
    transcript_writer::{Append, Recorded, ReplyTo, WriteError},
};

/// Who waits for an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// A turn, by its key, with its own ticket.
    Turn(u64, u64),
    /// Nobody: what closes a turn that is gone, what went out alone.
    Nobody,
    /// The end of a run.
    RunEnd,
}

struct Unanswered {
    ticket: u64,
    origin: Origin,
    lines: Arc<Vec<Line>>,
    stored: Vec<StoredText>,
    sync: bool,
}

/// Lines that go out together.
#[derive(Default)]
pub(super) struct Lines {
    pub(super) lines: Vec<Line>,
    /// Texts that they name.
    pub(super) stored: Vec<StoredText>,
    /// Whether they are to be on disk, where the durability mode says so for such lines.
    pub(super) sync: bool,
}

impl From<turn::effect::Append> for Lines {
    fn from(append: turn::effect::Append) -> Self {
        Self { lines: append.lines, stored: append.stored, sync: append.sync }
    }
}

impl Lines {
    fn extend(&mut self, later: Self) {
        self.lines.extend(later.lines);
        self.stored.extend(later.stored);
        self.sync |= later.sync;
    }
}

/// Lines on their way to the writer.
pub(super) struct Recorder {
    writer: Option<WriterHandle>,
    unanswered: VecDeque<Unanswered>,
    /// Go out with the next ones.
    held: Lines,
    /// Whether something unanswered is known not to be written.
    has_lost: bool,
    next: u64,
    reply: ReplyTo,
}

/// What an answer of the writer means.
pub(super) enum WriterReply {
    /// These lines are safe; the chain ends in this hash.
    Recorded(Origin, Digest),
    /// These lines are not.
    Lost(WriteError),
    /// The lines were sent again meanwhile.
    Stale,
}

impl Recorder {
    pub(super) fn new(reply: ReplyTo) -> Self {
        let (unanswered, held) = (VecDeque::new(), Lines::default());
        Self { writer: None, unanswered, held, has_lost: false, next: 1, reply }
    }

    /// There is a writer, or another one: everything unanswered is sent.
    pub(super) fn opened(&mut self, writer: WriterHandle) {
        self.writer = Some(writer);
        self.send_again();
    }

    /// Sends everything unanswered, in order. Answers to what was sent before count no more.
    fn send_again(&mut self) {
        self.has_lost = false;
        for unanswered in &mut self.unanswered {
            unanswered.ticket = self.next;
            self.next += 1;
        }
        self.unanswered.iter().for_each(|it| self.send(it));
    }

    /// Tries once more to write what was lost.
    pub(super) fn try_again(&mut self) {
        if self.has_lost {
            self.send_again();
        }
    }

    /// Nobody waits for what is unanswered any more; it is still to be written.
    pub(super) fn give_up_waiting(&mut self) {
        self.unanswered.iter_mut().for_each(|it| it.origin = Origin::Nobody);
    }

    /// Keeps lines back until the next ones, which are to follow before anything is waited for.
    pub(super) fn hold(&mut self, lines: Lines) {
        self.held.extend(lines);
    }

    /// No lines follow at once: what is held goes out alone.
    pub(super) fn flush(&mut self) {
        if !self.held.lines.is_empty() {
            self.append(Origin::Nobody, Lines::default());
        }
    }

    /// Sends lines, after what was held.
    pub(super) fn append(&mut self, origin: Origin, lines: Lines) {
        let mut all = std::mem::take(&mut self.held);
        all.extend(lines);
        let Lines { lines, stored, sync } = all;
        let ticket = self.next;
        self.next += 1;
        let unanswered = Unanswered { ticket, origin, lines: Arc::new(lines), stored, sync };
        if self.has_lost {
            // What was lost comes first, or lines would be before those they follow.
            self.unanswered.push_back(unanswered);
            return self.send_again();
        }
        self.send(&unanswered);
        self.unanswered.push_back(unanswered);
    }

    fn send(&self, unanswered: &Unanswered) {
        let Some(writer) = &self.writer else { return };
        // When the writer is gone another one follows, and this is sent again.
        let _gone = writer.append(Append {
            lines: Arc::clone(&unanswered.lines),
            stored: unanswered.stored.clone(),
            sync: unanswered.sync,
            ticket: unanswered.ticket,
            reply: Arc::clone(&self.reply),
        });
    }

    pub(super) fn answered(&mut self, recorded: Recorded) -> WriterReply {
        let at = self.unanswered.iter().position(|it| it.ticket == recorded.ticket);
        let Some(at) = at else { return WriterReply::Stale };
        match recorded.result {
            Ok(head) => match self.unanswered.remove(at) {
                Some(it) => WriterReply::Recorded(it.origin, head.hash),
                None => WriterReply::Stale,
            },
            // What follows lost lines is lost with them; that was said.
            Err(_) if self.has_lost => WriterReply::Stale,
            Err(error) => {
                self.has_lost = true;
                WriterReply::Lost(error)
            }
        }
    }
}
