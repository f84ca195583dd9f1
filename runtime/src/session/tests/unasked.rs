//! What comes to a session of the world that it waits for in no way.

use std::sync::Arc;

use super::world::SessionWorld;
use crate::{
    permission::PermissionMode,
    session::{MessageNumber, SessionInput},
    tool::ToolSpec,
};

impl SessionWorld {
    pub(super) fn comes_unasked(&mut self, what: u64, which: u64) {
        match what {
            7 | 8 if !self.is_top() => self.is_sent_message(),
            9 => self.is_put_into_mode(which),
            10 => self.server_answers(which),
            11 | 12 => self.files_change(which),
            13 if which.is_multiple_of(4) => self.watcher_crashes(),
            14 if which.is_multiple_of(4) => self.writer_crashes(which / 4),
            15 | 16 => self.hook_ends(which),
            17..20 => self.asked_by_tree(which),
            _ => self.answer(which),
        }
    }

    /// The session above sends a message.
    fn is_sent_message(&mut self) {
        let n = self.number();
        let (number, id) = (MessageNumber(n), format!("message-{n}").as_str().into());
        self.tallies.messages.insert(number, 0);
        self.input(SessionInput::Message { number, id, text: format!("text {n}") });
    }

    /// Somebody puts the session into a mode.
    fn is_put_into_mode(&mut self, which: u64) {
        let modes = [
            PermissionMode::Default,
            PermissionMode::AcceptEdits,
            PermissionMode::Plan,
            PermissionMode::DontAsk,
        ];
        let mode = modes[(which % 4) as usize];
        self.tallies.mode = Some(mode);
        self.input(SessionInput::SetMode(mode));
    }

    /// A server answers: its tool joins, and there is a notice about it, or one of the two alone.
    fn server_answers(&mut self, which: u64) {
        let n = self.number();
        let note = format!("server {n} has answered");
        let like = &self.facts.tools[0];
        let tool = ToolSpec { name: format!("mcp__s__t{n}").as_str().into(), ..(**like).clone() };
        let tools = if which.is_multiple_of(3) { Vec::new() } else { vec![Arc::new(tool)] };
        let notes: Vec<Arc<str>> =
            if which % 3 == 1 { Vec::new() } else { vec![note.as_str().into()] };
        self.tallies.notes.extend(notes.iter().map(|it| it.to_string()));
        self.input(SessionInput::ServerAnswered { tools, notes });
    }
}
