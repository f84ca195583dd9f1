//! Collects the lines that one input causes.
//!
//! Lines are numbered by tickets; the turn goes on past a barrier when the ticket of the barrier
//! is acknowledged. Ids of lines are draws, so a turn that is walked again makes the same.

use std::{mem, sync::Arc};

use super::effect::{Append, HistoryUpdate};
use crate::{
    block::Block,
    entropy::EntropyStream,
    ids::{EntryId, RunId},
    json::MeasuredText,
    message::{Message, MessageKind, Messages},
    run::derived_settings::DerivedSettings,
    time::Timestamp,
    transcript::entry::ShownPart,
    transcript::entry::{
        AnswerFields, Boundary, ConversationLine, Line, Record, RecordKind, Stored, StoredText,
        ToolResultFields,
    },
};

/// Lines that go out together in most turns, at most.
const N_LINES: usize = 16;

/// The lines of a turn on their way out.
#[derive(Debug)]
pub(super) struct Journal {
    run: RunId,
    turn: u32,
    stream: EntropyStream,
    last_entry: Option<EntryId>,
    n_entries: u64,
    ticket: u64,
    pending: Append,
    /// Whether nothing was recorded since the turn waited for something.
    has_waited: bool,
}

impl Journal {
    pub(super) fn new(
        run: RunId,
        turn: u32,
        stream: EntropyStream,
        last_entry: Option<EntryId>,
    ) -> Self {
        let pending = empty(1);
        Self { run, turn, stream, last_entry, n_entries: 0, ticket: 1, pending, has_waited: true }
    }

    /// Returns the run that the lines are of.
    pub(super) fn run(&self) -> &RunId {
        &self.run
    }

    /// Adds a harness record. One that a turn makes without having waited since the one before shares its line. When a
    /// turn waits follows from what it does and not from how fast that is, so the same turn leaves the
    /// same lines.
    pub(super) fn record(&mut self, at: Timestamp, what: RecordKind) {
        let shares_line = !mem::take(&mut self.has_waited) && follows_at_once(&what);
        let (run, turn) = (Some(self.run.clone()), self.turn);
        self.line(Line::Harness(Box::new(Record { at, run, turn, what, shares_line })));
    }

    /// Notes that the turn waits: the next record begins a line.
    pub(super) fn wait(&mut self) {
        self.has_waited = true;
    }

    /// Makes a name for a line to come.
    pub(super) fn next_id(&mut self, at: Timestamp) -> EntryId {
        self.n_entries += 1;
        self.stream.entry_id(at, "entry", u64::from(self.turn) << 32 | self.n_entries)
    }

    /// Adds what the model answered.
    pub(super) fn answer(
        &mut self,
        at: Timestamp,
        message: Message,
        fields: AnswerFields,
    ) -> Arc<Message> {
        self.say(at, message, |line| line.answer = Some(fields))
    }

    /// Adds the result of a call.
    pub(super) fn result(
        &mut self,
        at: Timestamp,
        block: Block,
        fields: ToolResultFields,
    ) -> Arc<Message> {
        let message = Message::user(self.next_id(at), MessageKind::ToolResults, vec![block]);
        self.say(at, message, |line| line.tool_result = Some(fields))
    }

    /// Adds something for the model to read, or a mark for the stop check.
    pub(super) fn message(&mut self, at: Timestamp, message: Message) -> Arc<Message> {
        self.say(at, message, |_| ())
    }

    /// Adds that a message which follows shows a part of the context.
    pub(super) fn record_shown(&mut self, at: Timestamp, part: &ShownPart) {
        self.record(at, RecordKind::ContextAppended { part: part.clone() });
        self.pending.updates.push(HistoryUpdate::ContextShown(part.clone()));
    }

    /// Has the session know that it has begun a run, and by which settings, whatever becomes of the turn.
    pub(super) fn begin_run(&mut self, settings: Arc<DerivedSettings>) {
        self.pending.updates.push(HistoryUpdate::RunBegun(settings));
    }

    /// Takes a prompt back: it is no longer a part of the conversation.
    pub(super) fn withdraw(&mut self, prompt: EntryId) {
        self.pending.updates.push(HistoryUpdate::Withdrawn(prompt));
    }

    /// Adds a compaction: the boundary, then the summary.
    pub(super) fn compaction(
        &mut self,
        at: Timestamp,
        boundary: Boundary,
        summary: Arc<Message>,
        preserved: Messages,
    ) {
        let mark = Message {
            id: self.next_id(at),
            role: crate::message::Role::System,
            kind: MessageKind::Mark,
            api_id: None,
            model: None,
            blocks: Vec::new(),
        };
        let mark = Arc::new(mark);
        self.push(at, Arc::clone(&mark), |line| line.boundary = Some(boundary));
        self.last_entry = Some(mark.id.clone());
        self.push(at, Arc::clone(&summary), |_| ());
        self.last_entry = Some(summary.id.clone());
        self.pending.updates.push(HistoryUpdate::Compacted { summary, preserved });
    }

    fn say(
        &mut self,
        at: Timestamp,
        message: Message,
        fill: impl FnOnce(&mut ConversationLine),
    ) -> Arc<Message> {
        let message = Arc::new(message);
        self.push(at, Arc::clone(&message), fill);
        self.last_entry = Some(message.id.clone());
        self.pending.updates.push(HistoryUpdate::Message(Arc::clone(&message)));
        message
    }

    fn push(
        &mut self,
        at: Timestamp,
        message: Arc<Message>,
        fill: impl FnOnce(&mut ConversationLine),
    ) {
        let mut line = ConversationLine::of(at, self.last_entry.clone(), message);
        fill(&mut line);
        self.line(Line::Conversation(Box::new(line)));
    }

    fn line(&mut self, line: Line) {
        let lines = &mut self.pending.lines;
        if lines.is_empty() {
            lines.reserve(N_LINES);
        }
        lines.push(line);
    }

    /// Returns a text for a record: as it is when short, by digest when long.
    pub(super) fn stored(&mut self, text: &str) -> Stored {
        Stored::new(text, &mut self.pending.stored)
    }

    /// Returns a text for a record that was measured before.
    pub(super) fn stored_measured(&mut self, text: &MeasuredText) -> Stored {
        Stored::measured(text, &mut self.pending.stored)
    }

    /// Returns a text for a record that holds another one, too.
    pub(super) fn stored_next_to(&mut self, other: &MeasuredText, text: &MeasuredText) -> Stored {
        Stored::next_to(other, text, &mut self.pending.stored)
    }

    /// Stores a text for a record that has no room for it.
    pub(super) fn stored_externally(&mut self, text: &str) -> Stored {
        Stored::stored_externally(text, &mut self.pending.stored)
    }

    /// Keeps a text that another file is to hold: what budget reduction took out.
    pub(super) fn keep(&mut self, text: StoredText) {
        self.pending.stored.push(text);
    }

    /// Has other programs know the session by this title.
    pub(super) fn entitle(&mut self, title: Arc<str>) {
        self.pending.title = Some(title);
    }

    /// Asks for a sync before the answer.
    pub(super) fn sync(&mut self) {
        self.pending.sync = true;
    }

    /// Asks for an answer to what is pending, and so to all before it. Gives its ticket.
    pub(super) fn await_answer(&mut self) -> u64 {
        self.pending.is_awaited = true;
        self.ticket
    }

    /// Returns the ticket of the last append that was taken.
    pub(super) fn handed_out(&self) -> u64 {
        self.ticket - 1
    }

    /// Takes everything since the last call, as one append.
    pub(super) fn take(&mut self) -> Option<Box<Append>> {
        let Append { lines, stored, is_awaited, .. } = &self.pending;
        if lines.is_empty() && stored.is_empty() && !is_awaited {
            return None;
        }
        self.ticket += 1;
        Some(Box::new(mem::replace(&mut self.pending, empty(self.ticket))))
    }
}

/// Whether a record of this kind comes at the same point of a turn, whatever of several things came first that the turn
/// waited for.
fn follows_at_once(what: &RecordKind) -> bool {
    matches!(
        what,
        RecordKind::TurnStep { .. }
            | RecordKind::ShapersPassed { .. }
            | RecordKind::ToolIntent { .. }
    )
}

fn empty(ticket: u64) -> Append {
    let (lines, stored, updates) = (Vec::new(), Vec::new(), Vec::new());
    Append { lines, stored, title: None, ticket, sync: false, is_awaited: false, updates }
}
