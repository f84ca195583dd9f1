//! Puts the prompt that a person typed into the history.

use std::{path::Path, time::Duration};

use ennead::{Event, SessionHandle};
use ennead_command::history::{TypedPrompt, append};
use ennead_runtime::message::MessageKind;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::stream::configuration;

/// How long the end of the command waits for the file.
const PATIENCE: Duration = Duration::from_secs(1);

/// Records the prompt of a run once it is in the transcript, as it stands there: without secrets.
#[derive(Debug)]
pub(crate) struct PromptRecorder {
    session: String,
    project: String,
    /// What was typed, where that called a command, whose text is the prompt.
    called: Option<String>,
    /// The prompt on its way to the file.
    writing: Option<JoinHandle<()>>,
}

impl PromptRecorder {
    /// Makes one for the next prompt of this session.
    pub(crate) fn new(session: &SessionHandle, project: &Path, called: Option<&str>) -> Self {
        let (session, project) = (session.id().as_str().into(), project.to_string_lossy().into());
        Self { session, project, called: called.map(str::to_owned), writing: None }
    }

    /// Looks whether this event is the prompt. A history that cannot be written stops nobody from working.
    pub(crate) fn observe(&mut self, event: &Event) {
        let Event::MessageRecorded { message } = event else { return };
        if self.writing.is_some() || message.message.kind != MessageKind::Prompt {
            return;
        }
        let text = message.message.text();
        let typed = self.called.as_deref().map_or(&*text, |called| without_secrets(called, &text));
        let prompt = TypedPrompt::new(typed, message.at.0, &self.project, &self.session);
        // Another process may have the file locked; nobody waits for that but the end.
        self.writing = Some(spawn_blocking(move || {
            if let Err(error) = append(&configuration(), &prompt) {
                tracing::warn!(%error, "the prompt is not in the history");
            }
        }));
    }

    /// Waits until the prompt is written, for as long as that usually takes.
    pub(crate) async fn finish(self) {
        if let Some(writing) = self.writing {
            let _late = tokio::time::timeout(PATIENCE, writing).await;
        }
    }
}

/// The call of a command, without its arguments if these are not part of the recorded text as they were typed: then they
/// may hold a secret.
fn without_secrets<'a>(called: &'a str, recorded: &str) -> &'a str {
    let (name, arguments) = called.split_once(char::is_whitespace).unwrap_or((called, ""));
    if recorded.contains(arguments) { called } else { name }
}
