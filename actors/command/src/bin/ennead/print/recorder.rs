//! Puts the prompt that a person typed into the history.

use std::path::Path;

use ennead::{Event, SessionHandle};
use ennead_command::history::{TypedPrompt, append};
use ennead_runtime::message::Role;

use crate::stream::configuration;

/// Records the prompt of a run once it is in the transcript, as it stands there: without secrets.
#[derive(Debug)]
pub(crate) struct PromptRecorder {
    session: String,
    project: String,
    is_done: bool,
}

impl PromptRecorder {
    /// Makes one for the next prompt of this session.
    pub(crate) fn new(session: &SessionHandle, project: &Path) -> Self {
        let session = session.id().as_str().to_owned();
        Self { session, project: project.to_string_lossy().into_owned(), is_done: false }
    }

    /// Looks whether this event is the prompt. A history that cannot be written stops nobody from working.
    pub(crate) fn observe(&mut self, event: &Event) {
        let Event::MessageRecorded { message } = event else { return };
        let text = message.message.text();
        if self.is_done || message.message.role != Role::User || text.is_empty() {
            return;
        }
        self.is_done = true;
        let prompt = TypedPrompt::new(&text, message.at.0, &self.project, &self.session);
        if let Err(error) = append(&configuration(), &prompt) {
            tracing::warn!(%error, "the prompt is not in the history");
        }
    }
}
