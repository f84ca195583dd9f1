//! The runs of a session, from the first line of each to the last.

use ennead::{Event, RunError, RunRequest, SessionHandle};
use serde_json::json;

use super::{
    super::results::{RunNotes, of_error, of_outcome},
    Ended, Face, Running,
};
use crate::print::{mark_simulated, model_record};

impl Face {
    pub(super) fn begin_run(&mut self) {
        let Some(session) = self.session.clone().filter(|_| self.running.is_none()) else { return };
        let Some(prompt) = self.queue.pop_front() else { return };
        self.tell_state("running");
        let servers = self.servers();
        let init = self.facts.init(self.translator.frame(), &servers);
        self.output.write(init);
        for warning in std::mem::take(&mut self.warnings) {
            self.warn(&warning);
        }
        self.translator.begin_run(prompt.uuid.clone());
        let notes = RunNotes { prompt: prompt.uuid, is_human: prompt.is_human, in_call: false };
        let request = RunRequest::of(prompt.content).origin("sdk");
        let run = Box::pin(run(session, request));
        self.running = Some(Running { run, ended: None, has_shown_all: false, notes });
    }

    /// Writes a line that tells people something about the session.
    pub(super) fn warn(&mut self, what: &str) {
        let fields = json!({"content": what, "level": "warning"});
        let line = self.translator.frame().system("informational", fields);
        self.output.write(line);
    }

    pub(super) fn event(&mut self, event: Option<Event>) {
        let Some(event) = event else {
            // The session is gone; no event of the run follows.
            self.events = None;
            self.running.iter_mut().for_each(|it| it.has_shown_all = true);
            return;
        };
        match &event {
            Event::ContextAssembled { tokens } => self.context_tokens = tokens.0,
            Event::MessageCompleted { usage, .. } => self.context_tokens = usage.total().0,
            _ => {}
        }
        if let Some(running) = &mut self.running {
            running.notes.observe(&event);
            match &event {
                Event::RunFinished { .. } | Event::RunFailed { .. } => running.has_shown_all = true,
                Event::Lagged { run: None, .. } => running.has_shown_all = true,
                _ => {}
            }
        }
        for line in self.translator.event(&event) {
            let calls = line["message"]["content"].as_array().into_iter().flatten();
            for call in calls.filter(|it| it["type"] == "tool_use") {
                self.shown_calls.add(call["id"].as_str().unwrap_or_default());
            }
            self.output.write(line);
        }
    }

    /// Ends the run whose outcome is known and whose events were shown.
    pub(super) fn end_run(&mut self) {
        let is_over =
            self.running.as_ref().is_some_and(|it| it.has_shown_all && it.ended.is_some());
        if !is_over {
            return;
        }
        let (Some(running), Some(session)) = (self.running.take(), self.session.clone()) else {
            return;
        };
        let Running { ended, notes, .. } = running;
        let frame = self.translator.frame();
        let mut lines = match ended {
            Some(Ok((outcome, record))) => of_outcome(frame, &session, &outcome, &record, &notes),
            Some(Err(error)) => vec![of_error(frame, &error.to_string(), &notes)],
            None => Vec::new(),
        };
        if let (true, Some(result)) = (self.is_simulated, lines.last_mut()) {
            mark_simulated(result);
        }
        self.has_failed = lines.last().is_some_and(|it| it["is_error"] == true);
        lines.into_iter().for_each(|line| self.output.write(line));
        self.translator.end_of_run();
        self.shown_calls.clear();
        if self.queue.is_empty() {
            self.tell_state("idle");
        }
    }

    pub(super) fn tell_state(&mut self, state: &str) {
        let Some(is_for_sdk) = self.face.tells_state else { return };
        let mut fields = json!({"state": state});
        if is_for_sdk {
            fields["sdk_host_only"] = true.into();
        }
        let line = self.translator.frame().system("session_state_changed", fields);
        self.output.write(line);
    }
}

/// Carries out a run; its model calls are looked up in the lines that it appended, on a thread of their own.
async fn run(session: SessionHandle, request: RunRequest) -> Result<Ended, RunError> {
    let transcript = session.transcript().to_owned();
    let from = tokio::fs::metadata(&transcript).await.map_or(0, |it| it.len());
    let outcome = session.run(request).await?;
    let run = outcome.run.clone();
    let read = tokio::task::spawn_blocking(move || model_record(&transcript, from, &run)).await;
    let record = read.ok().and_then(Result::ok).unwrap_or_default();
    Ok((outcome, record))
}
