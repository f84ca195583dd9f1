//! Commands in the background: on record when they begin, and reported to the model when they have
//! ended.
//!
//! The report is a line of the conversation before the turn that begins, so a replay reads it there.

use std::{mem, sync::Arc};

use super::{
    Machine, Now,
    recorder::{PendingLines, WriteOrigin},
    run::record,
};
use crate::{
    ports::shells::{EndedShell, ShellStatus, ended_message},
    transcript::{
        entry::{ConversationLine, Line, Record, RecordKind},
        load,
    },
    turn::effect::HistoryUpdate,
};

impl Machine {
    /// Records a command that goes on in the background. It is written at once, so that it is on record should the
    /// process be killed.
    pub(super) fn shell_kept(&mut self, now: Now, status: &ShellStatus) {
        let Some(active) = &self.active else { return };
        let lines = vec![record(now.at, &active.run.id, status.record())];
        let lines = PendingLines { lines, stored: Vec::new(), sync: false };
        self.recorder.append(WriteOrigin::Unawaited, lines, &mut self.effects);
    }

    /// Takes over what an earlier process left running. It ended with that process.
    pub(super) fn resume_shells(&mut self, shells: &load::Shells) {
        let open = shells.open.values().cloned();
        self.ended_shells.extend(open.map(|status| EndedShell { status, is_known: false }));
    }

    /// Records what the model has not learned, for the process that resumes the session.
    pub(super) fn record_ended_shells(&mut self, now: Now) {
        let lines: Vec<Line> = mem::take(&mut self.ended_shells)
            .into_iter()
            .map(|EndedShell { status, is_known }| {
                let mut what = status.record();
                if let RecordKind::Shell { untold, .. } = &mut what {
                    *untold = !is_known;
                }
                Line::Harness(Box::new(Record { at: now.at, run: None, turn: 0, what }))
            })
            .collect();
        if !lines.is_empty() {
            let lines = PendingLines { lines, stored: Vec::new(), sync: false };
            self.recorder.append(WriteOrigin::Unawaited, lines, &mut self.effects);
        }
    }

    /// Reports commands that have ended, before the turn that begins.
    pub(super) fn report_ended_shells(&mut self, now: Now) {
        let Some(active) = &mut self.active else { return };
        let shells = mem::take(&mut self.ended_shells);
        let (known, unknown): (Vec<_>, Vec<_>) = shells.into_iter().partition(|it| it.is_known);
        let run = &active.run.id;
        let all = unknown.iter().chain(&known);
        let mut lines: Vec<Line> = all.map(|it| record(now.at, run, it.status.record())).collect();
        if lines.is_empty() {
            return;
        }
        if !unknown.is_empty() {
            let stream = self.conversation.stream.child(run.as_str());
            let id = stream.entry_id(now.at, "shells", u64::from(active.run.turns));
            let ended: Vec<_> = unknown.into_iter().map(|it| it.status).collect();
            let message = Arc::new(ended_message(id, &ended));
            let last = self.conversation.last_entry.clone();
            let line = ConversationLine::of(now.at, last, Arc::clone(&message));
            lines.push(Line::Conversation(Box::new(line)));
            active.remember(&message);
            self.conversation.apply(HistoryUpdate::Message(message));
        }
        // The turn has more to write at once.
        self.recorder.hold(PendingLines { lines, stored: Vec::new(), sync: false });
    }
}
