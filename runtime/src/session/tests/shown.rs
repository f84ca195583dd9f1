//! Results of calls that show how agents in the background ended.

use std::sync::Arc;

use super::{checks::append, world::SessionWorld};
use crate::{
    block::Block,
    ids::{EntryId, RunId},
    message::{Message, MessageKind},
    ports::agents::{EndedAgent, ends_shown},
    session::{SessionInput, TurnKey},
    time::Timestamp,
    tool::ToolOutcome,
    transcript::entry::{ConversationLine, Line, Record},
    turn::effect::HistoryUpdate,
};

impl SessionWorld {
    /// A result of the turn shows how an agent ended; the oldest one that no report has shown.
    pub(super) fn show_end(&mut self, key: TurnKey) {
        // Lines of a turn that is over are not taken.
        if self.unshown.is_empty() || !self.machine.is_in_flight(key) {
            return;
        }
        let end = self.unshown.remove(0);
        let mut append = append(false);
        let last = self.machine.conversation().last_entry.clone();
        append.lines = shown(&end, self.now.at, self.machine.summary().run, last).into();
        let messages = append.lines.iter().filter_map(|it| match it {
            Line::Conversation(line) => Some(HistoryUpdate::Message(Arc::clone(&line.message))),
            Line::Harness(_) => None,
        });
        append.updates = messages.collect();
        self.input(SessionInput::Append { key, append: Box::new(append) });
    }
}

/// The message that shows an end, and the record of that, together as step 8 writes them.
fn shown(end: &EndedAgent, at: Timestamp, run: Option<RunId>, last: Option<EntryId>) -> [Line; 2] {
    let mut outcome = ToolOutcome::ok(&*end.report);
    outcome.notes.push(end.agent.end_note());
    let id = format!("shown-{}", end.agent.agent);
    let message =
        Message::user(id.as_str().into(), MessageKind::ToolResults, vec![Block::text(&end.report)]);
    let what = ends_shown(&outcome).next().unwrap();
    let record = Record { at, run, turn: 1, what, shares_line: false };
    [
        Line::Conversation(Box::new(ConversationLine::of(at, last, Arc::new(message)))),
        Line::Harness(Box::new(record)),
    ]
}
