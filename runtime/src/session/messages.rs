//! Messages that a sub-agent is sent while it is at work: on record at once, and shown before its next turn.
//!
//! The one that sends a message waits for its record. So a process that is killed loses none, and one that goes on
//! from the transcript shows each once: the line that shows it has the name that the record gives.

use std::{mem, sync::Arc};

use super::{
    ClosePhase, Machine, Measuring, Now, Readiness, SessionEffect,
    names::MessageNumber,
    recorder::{PendingLines, WriteOrigin},
    run::{Phase, ReceivedMessage, record},
};
use crate::{
    block::Block,
    ids::EntryId,
    message::{Message, MessageKind},
    ports::messages::MessageFate,
    step3_context_assembly::reminder,
    transcript::entry::{MessageRecord, RecordKind, Stored},
};

/// Messages that wait to be shown at most.
const MAX_UNREAD: usize = 32;

/// What a message is shown after.
const FROM_CALLER: &str =
    "The one that gave you your task sends you this message. Take it into account and go on:";

impl Machine {
    /// Receives a message. It is answered as soon as it is known whether a run is under way.
    pub(super) fn message(&mut self, number: MessageNumber, id: EntryId, text: String) {
        self.received.push(ReceivedMessage { number, id, text });
    }

    /// Takes over the messages of an earlier process that were not shown.
    pub(crate) fn resume_messages(&mut self, unread: Vec<(EntryId, String)>) {
        self.unread = unread;
    }

    /// Records what was received, where a turn is under way, or answers that there is no run to show it.
    pub(super) fn take_messages(&mut self, now: Now) {
        if self.received.is_empty() {
            return;
        }
        let is_closed = self.closing != ClosePhase::No || self.readiness == Readiness::Failed;
        let may_begin = self.readiness == Readiness::Pending
            || self.measuring == Measuring::Asked
            || !self.queue.is_empty();
        let is_taken = match self.active.as_ref().map(|it| &it.phase) {
            _ if is_closed => false,
            Some(Phase::Turning(_)) => true,
            Some(_) => false,
            None if may_begin => return,
            None => false,
        };
        for it in mem::take(&mut self.received) {
            let fate = match () {
                () if !is_taken => MessageFate::NotTaken,
                () if MAX_UNREAD <= self.unread.len() => MessageFate::TooMany,
                () => {
                    self.record_message(now, it);
                    continue;
                }
            };
            self.effects.push(SessionEffect::MessageTaken { number: it.number, fate });
        }
    }

    fn record_message(&mut self, now: Now, received: ReceivedMessage) {
        let Some(active) = &self.active else { return };
        let ReceivedMessage { number, id, text } = received;
        let mut stored = Vec::new();
        let text_stored = Stored::in_record(&text, &mut stored);
        let what = MessageRecord { message: id.clone(), text: text_stored };
        let line = record(now.at, &active.run.id, RecordKind::AgentMessage(what));
        let lines = PendingLines { lines: vec![line], stored, title: None, sync: true };
        self.recorder.append(WriteOrigin::Message(number), lines, &mut self.effects);
        self.unread.push((id, text));
    }

    /// Shows what was received, before the turn that begins.
    pub(super) fn show_messages(&mut self, now: Now) {
        let mut lines = Vec::new();
        for (id, text) in mem::take(&mut self.unread) {
            let shown = reminder(&format!("{FROM_CALLER}\n{text}"));
            let message = Message::user(id, MessageKind::Meta, vec![Block::text(&shown)]);
            lines.push(self.reported(now, Arc::new(message)));
        }
        if !lines.is_empty() {
            // The turn has more to write at once.
            self.recorder.hold(PendingLines {
                lines,
                stored: Vec::new(),
                title: None,
                sync: false,
            });
        }
    }
}
