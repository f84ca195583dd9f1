//! Events that few listeners want, and that are made for those alone.

use std::sync::Arc;

use ennead_runtime::{
    event::{Event, RecordedMessage},
    transcript::entry::Line,
};
use ennead_tools::locked::Locked as _;

use super::{EventHub, HubState};

/// Events that a listener gets only when it asks for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wants {
    /// [`Event::MessageRecorded`], of sub-agents too.
    pub(crate) messages: bool,
    /// [`Event::ModelStreamed`], of sub-agents too.
    pub(crate) stream: bool,
}

impl Wants {
    pub(super) fn takes(self, event: &Event) -> bool {
        match event {
            Event::MessageRecorded { .. } => self.messages,
            Event::ModelStreamed { .. } => self.stream,
            Event::Agent { event, .. } => self.takes(event),
            _ => true,
        }
    }
}

impl EventHub {
    /// Publishes the messages of these lines, where a listener asked for them.
    pub(crate) fn publish_messages(&self, lines: &[Line]) {
        if !self.is_wanted(|it| it.messages) {
            return;
        }
        for line in lines {
            if let Line::Conversation(line) = line {
                let message = Arc::new(RecordedMessage::of(line));
                self.publish(Event::MessageRecorded { message });
            }
        }
    }

    /// Publishes an event of an answer as it came, where a listener asked for it.
    pub(crate) fn publish_streamed(&self, attempt: u32, json: &str) {
        if self.wants_stream() {
            self.publish(Event::ModelStreamed { attempt, json: json.into() });
        }
    }

    /// Takes the secrets out of an event, unless those who publish have done so.
    pub(super) fn redact(&self, event: &mut Event) {
        if let Some(redactor) = &self.0.redactor {
            redactor.event(event);
        }
    }

    /// Returns whether a listener follows this session or all sessions.
    pub(super) fn has_listener(&self, state: &HubState) -> bool {
        !state.listeners.is_empty() || self.0.all.as_ref().is_some_and(|it| it.0.has_listeners())
    }

    /// Returns whether there is no listener. If so, numbers that many events as if they had been sent, without making them.
    pub(crate) fn pass_over(&self, n_events: usize) -> bool {
        let mut state = self.0.state.locked();
        if self.has_listener(&state) {
            return false;
        }
        if !state.is_closed {
            state.seq += n_events as u64;
        }
        true
    }

    /// Returns whether a listener asked for the events of answers as they come.
    pub(crate) fn wants_stream(&self) -> bool {
        self.0.state.locked().listeners.iter().any(|it| it.wants.stream)
    }

    /// Whether a listener, here or at a parent, asked for something.
    fn is_wanted(&self, what: fn(&Wants) -> bool) -> bool {
        self.0.state.locked().listeners.iter().any(|it| what(&it.wants))
            || self.0.parent.as_ref().is_some_and(|(parent, _)| parent.is_wanted(what))
    }
}
