//! The runs of a session, from the first line of each to the last.

use ennead::{Event, RunRequest};
use serde_json::json;

use super::{
    super::results::{RunNotes, of_error, of_outcome, words_of},
    Face, Running,
};
use crate::print::model_record;

impl Face {
    pub(super) fn begin_run(&mut self) {
        let Some(session) = self.session.clone().filter(|_| self.running.is_none()) else { return };
        let Some(prompt) = self.queue.pop_front() else { return };
        self.tell_state("running");
        let servers = self.servers();
        let init = self.facts.init(self.translator.frame(), &servers);
        self.output.write(init);
        for flag in std::mem::take(&mut self.without_effect) {
            let content = format!("{flag} has no effect here");
            let fields = json!({"content": content, "level": "warning"});
            let line = self.translator.frame().system("informational", fields);
            self.output.write(line);
        }
        self.translator.begin_run(prompt.uuid.clone());
        let notes = RunNotes { prompt: prompt.uuid, is_human: prompt.is_human, in_call: false };
        let request = RunRequest::of(prompt.content).origin("sdk");
        let run = Box::pin(async move { session.run(request).await });
        self.running = Some(Running { run, outcome: None, is_told: false, notes });
    }

    pub(super) fn event(&mut self, event: Option<Event>) {
        let Some(event) = event else {
            // The session is gone; no event of the run follows.
            self.events = None;
            self.running.iter_mut().for_each(|it| it.is_told = true);
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
                Event::RunFinished { .. } | Event::RunFailed { .. } => running.is_told = true,
                Event::Lagged { run: None, .. } => running.is_told = true,
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
        let is_over = self.running.as_ref().is_some_and(|it| it.is_told && it.outcome.is_some());
        if !is_over {
            return;
        }
        let (Some(running), Some(session)) = (self.running.take(), self.session.clone()) else {
            return;
        };
        let Running { outcome, notes, .. } = running;
        let frame = self.translator.frame();
        let lines = match outcome {
            Some(Ok(outcome)) => {
                let record = model_record(session.transcript(), &outcome.run).unwrap_or_default();
                of_outcome(frame, &session, &outcome, &record, &notes)
            }
            Some(Err(error)) => vec![of_error(frame, &words_of(&error), &notes)],
            None => Vec::new(),
        };
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
