//! What goes to listeners, without its secrets.
//!
//! What a turn says was redacted as an input. This is for words that came another way, and for
//! sessions whose model is shown secrets.

use std::sync::Arc;

use super::Redactor;
use crate::{
    event::{Event, RecordedMessage},
    run::outcome::RunOutcome,
};

#[doc(hidden)]
impl Redactor {
    /// Takes the secrets out of an event. Deltas are redacted as a [`RedactionStream`](super::RedactionStream), where they
    /// arrive.
    pub fn event(&self, event: &mut Event) {
        match event {
            Event::MessageCompleted { text, .. }
            | Event::ToolProgress { text, .. }
            | Event::ToolFinished { text, .. }
            | Event::HookMessage { text, .. }
            | Event::InstructionsLoaded { path: text, .. } => self.shared(text),
            Event::HookStarted { label, .. } => self.shared_cut(label),
            Event::HookFinished { effect, stdout, stderr, .. } => {
                self.shared(effect);
                self.shared_cut(stdout);
                self.shared_cut(stderr);
            }
            Event::PermissionAsked { input, reason, suggestions, .. } => {
                self.shared_json(input);
                self.shared(reason);
                self.texts(suggestions);
            }
            Event::PermissionDecided { reason, allow_rules, .. } => {
                self.shared(reason);
                self.texts(allow_rules);
            }
            Event::ModelRetry { cause: text, .. }
            | Event::RunLost { reason: text, .. }
            | Event::AgentStarted { description: text, .. }
            | Event::Alert { what: text }
            | Event::McpServer { error: Some(text), .. } => self.shared(text),
            Event::MessageRecorded { message } => {
                if let Some(redacted) = self.message(message) {
                    *message = Arc::new(redacted);
                }
            }
            // Numbers, names and codes; deltas; and what a sub-agent's own hub has published.
            _ => {}
        }
    }

    /// Takes the secrets out of what a run reports.
    pub fn run_outcome(&self, outcome: &mut RunOutcome) {
        self.in_place(&mut outcome.text);
        if let Some(error) = &mut outcome.error {
            self.in_place(error);
        }
        outcome.denials.iter_mut().for_each(|it| self.shared_json(&mut it.input));
        for message in &mut outcome.messages {
            let mut redacted = message.blocks.clone();
            redacted.iter_mut().for_each(|it| self.block(it));
            if redacted != message.blocks {
                Arc::make_mut(message).blocks = redacted;
            }
        }
    }

    /// A text of which the beginning is shown.
    fn shared_cut(&self, text: &mut Arc<str>) {
        if let std::borrow::Cow::Owned(redacted) = self.cut_text(text) {
            *text = redacted.into();
        }
    }

    fn texts(&self, texts: &mut Arc<[String]>) {
        if texts.iter().any(|it| matches!(self.text(it), std::borrow::Cow::Owned(_))) {
            *texts = texts.iter().map(|it| self.text(it).into_owned()).collect();
        }
    }

    fn message(&self, message: &RecordedMessage) -> Option<RecordedMessage> {
        let mut redacted = message.clone();
        let mut blocks = message.message.blocks.clone();
        blocks.iter_mut().for_each(|it| self.block(it));
        if blocks != message.message.blocks {
            redacted.message =
                Arc::new(crate::message::Message { blocks, ..(*message.message).clone() });
        }
        if let Some(structured) = &mut redacted.structured {
            self.shared_json(structured);
        }
        (redacted != *message).then_some(redacted)
    }
}
