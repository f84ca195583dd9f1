//! `/clear`: the conversation ends, and another one begins on the same connection. `/compact`: it goes on from a
//! summary.

use ennead::{SessionHandle, SessionId};
use serde_json::json;

use super::{
    super::{
        context::ContextSize,
        incoming::Prompt,
        results::{RunNotes, of_command},
        titles,
    },
    Face, Opening,
    background::Background,
};

/// Returns whether a prompt asks for another conversation.
pub(super) fn is_clear(prompt: &Prompt) -> bool {
    let text = match &prompt.content[..] {
        [only] => only.block().as_text(),
        _ => None,
    };
    !prompt.is_literal && text.is_some_and(|it| it.trim() == "/clear")
}

/// Returns what the summary that a prompt asks for is to keep in mind; `None` if it asks for none.
pub(super) fn compacts(prompt: &Prompt) -> Option<String> {
    let [only] = &prompt.content[..] else { return None };
    let focus = only.block().as_text()?.trim().strip_prefix("/compact")?;
    let is_command = focus.is_empty() || focus.starts_with(char::is_whitespace);
    (is_command && !prompt.is_literal).then(|| focus.trim().to_owned())
}

impl Face {
    /// Closes the session and has another one opened, under another id, with what this one was opened with. The
    /// model and the mode that were chosen since go on to hold.
    pub(super) fn clear(&mut self, session: SessionHandle, notes: RunNotes) -> Option<Opening> {
        let mut options = self.opened_with.clone()?;
        let id = self.translator.frame().uuid();
        let reset = json!({
            "type": "conversation_reset",
            "new_conversation_id": id,
            "uuid": self.translator.frame().uuid(),
            "session_id": self.translator.frame().session(),
        });
        let frame = self.translator.frame().of_session(SessionId::new(id));
        (options.id, options.goes_on_from) = (Some(frame.session().clone()), None);
        self.options = Some(options);
        // What works in the background of the session before ends with that.
        let ends = self.translator.begin_session(frame);
        ends.into_iter().chain([reset]).for_each(|line| self.output.write(line));
        self.shown_calls.clear();
        (self.session, self.events) = (None, None);
        self.background = Background::new(self.face.wait_ceiling);
        self.facts.servers.clear();
        self.context = ContextSize::default();
        if self.facts.model != self.default_model {
            self.chosen_model = Some(Some(self.facts.model.clone()));
        }
        self.chosen_mode = Some(self.facts.mode).filter(|it| *it != self.default_mode);
        self.clearing = Some(notes);
        let (opening, mirror) = (self.open()?, self.mirror.clone());
        Some(Box::pin(async move {
            let transcript = session.transcript().to_owned();
            session.close().await;
            // What the session that ended is known by is worth no failure of the next one.
            let _kept = tokio::task::spawn_blocking(move || titles::keep(&transcript)).await;
            if let Some(mirror) = mirror {
                mirror.show().await;
            }
            opening.await
        }))
    }

    /// Ends the command, which has its result: the other session is open.
    pub(super) fn end_clearing(&mut self) {
        let Some(notes) = self.clearing.take() else { return };
        self.output.write(of_command(self.translator.frame(), &notes));
        self.has_failed = false;
        self.will_rest();
    }
}
