//! What somebody who only listens has on the screen.

use std::collections::BTreeMap;

use ennead::Event;

/// The screen of a run. Fails as soon as something is there twice, or runs too early.
#[derive(Debug, Default)]
pub(crate) struct ShownScreen {
    /// Text by attempt of the turn.
    texts: BTreeMap<u32, String>,
    is_complete: bool,
    pub(crate) n_withdrawn: usize,
    /// The text of each answer that was completed, as it stood there.
    pub(crate) answers: Vec<String>,
    pub(crate) is_over: bool,
}

impl ShownScreen {
    #[track_caller]
    pub(crate) fn take(&mut self, event: &Event) {
        match event {
            Event::TurnStarted { .. } => (self.texts, self.is_complete) = Default::default(),
            Event::TextDelta { attempt, text } => {
                assert!(!self.is_complete, "{text} comes after its message");
                self.texts.entry(*attempt).or_default().push_str(text);
                assert_eq!(self.texts.len(), 1, "two attempts are shown: {:?}", self.texts);
            }
            Event::Withdrawn { attempt } => {
                assert!(!self.is_complete, "a whole message is withdrawn");
                self.texts.remove(attempt);
                self.n_withdrawn += 1;
            }
            Event::MessageCompleted { attempt, .. } => {
                assert!(!self.is_complete, "a second message");
                self.is_complete = true;
                self.answers.push(self.texts.get(attempt).cloned().unwrap_or_default());
            }
            Event::ToolRequested { call, .. } | Event::ToolStarted { call, .. } => {
                assert!(self.is_complete, "{call} comes before its message");
            }
            Event::RunFinished { .. } | Event::RunLost { .. } => self.is_over = true,
            Event::Lagged { missed, .. } => panic!("{missed} events are gone"),
            _ => {}
        }
    }
}
