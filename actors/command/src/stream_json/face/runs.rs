//! The runs of a session, from the first line of each to the last.

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
};

use ennead::{Event, RunError, RunOutcome, RunRequest, SessionHandle, permission::PermissionMode};
use ennead_runtime::skill::SkillContext;
use serde_json::{Value, json};

use super::{
    super::{
        incoming::Prompt,
        mirror::Mirror,
        results::{RunNotes, of_error, of_outcome},
    },
    EndedRun, Face, Opening, Running,
    clear::{compacts, is_clear},
};
use crate::print::{mark_simulated, model_record};

/// Warnings that wait for a run at most.
const MAX_WARNINGS: usize = 100;

impl Face {
    /// Begins the run of the next prompt, where none is under way; or has another session opened, if the prompt
    /// asks for that.
    pub(super) fn begin_run(&mut self) -> Option<Opening> {
        let session = self.session.clone().filter(|_| self.running.is_none())?;
        let mut prompt = self.queue.pop_front()?;
        let (clears, compacts) = (is_clear(&prompt), compacts(&prompt));
        self.call_command(&mut prompt);
        prompt.content.splice(..0, std::mem::take(&mut prompt.said_before));
        self.send_state("running");
        self.learn_tools();
        let servers = self.servers();
        let init = self.facts.init(self.translator.frame(), &servers, &self.skills);
        self.output.write(init);
        for warning in std::mem::take(&mut self.warnings) {
            self.warn(&warning);
        }
        let notes = RunNotes::of_prompt(prompt.uuid.clone(), prompt.is_human);
        if clears {
            return self.clear(session, notes);
        }
        self.structured.iter().for_each(|it| it.begin());
        self.translator.begin_run(prompt.uuid.clone());
        let mut name = prompt.uuid.filter(|it| is_uuid(it));
        if let Some(checkpoints) = self.checkpoints.clone() {
            let prompt = name.get_or_insert_with(|| self.translator.frame().uuid());
            if let Err(error) = checkpoints.begin(prompt) {
                self.warn(&format!("files are not kept for this prompt: {error}"));
            }
        }
        let mut request = RunRequest::of(prompt.content).origin("sdk");
        (request.message, request.compacts) = (name.map(Into::into), compacts);
        let run = Box::pin(run(session, request, self.mirror.clone()));
        let is_interrupted = std::mem::take(&mut self.interrupts_next);
        self.running =
            Some(Running { run, ended: None, has_shown_all: false, is_interrupted, notes });
        None
    }

    /// Keeps how the run ended until all of its events are shown; without an outcome none follows.
    pub(super) fn note_end(&mut self, ended: Result<EndedRun, RunError>) {
        if let Some(running) = &mut self.running {
            running.has_shown_all |= ended.is_err();
            running.ended = Some(ended);
        }
    }

    /// Puts the text of a command in the place of a prompt that calls it.
    fn call_command(&mut self, prompt: &mut Prompt) {
        if prompt.is_literal {
            return;
        }
        let session = self.translator.frame().session().clone();
        let place = SkillContext { session: session.as_str(), project: &self.facts.cwd };
        if let Err(why) = self.skills.expand(&mut prompt.content, place) {
            self.warnings.push(format!("the command is not called: {why}"));
        }
    }

    /// Has people read something of the session: now, or behind the first line of the next run.
    fn tell(&mut self, what: &str) {
        if self.running.is_some() {
            self.warn(what);
        } else if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(what.to_owned());
        }
    }

    /// Writes a line about the session for people to read.
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
            Event::ContextAssembled { tokens, sources } => {
                self.context.assembled(*tokens, *sources);
            }
            Event::InstructionsLoaded { path, memory_type, tokens, .. } => {
                self.context.loaded(path, memory_type, *tokens);
            }
            Event::MessageCompleted { usage, .. } => self.context.answered(usage.total()),
            Event::Alert { what } => self.tell(what),
            Event::Agent { event, .. } => {
                if let Event::Alert { what } = &**event {
                    self.tell(&format!("of a sub-agent: {what}"));
                }
            }
            Event::ModeChanged { mode } => self.mode_changed(*mode),
            Event::RunStarted { woken: true, .. } => self.woken(),
            // It was to be ended before the session had begun it.
            Event::RunStarted { .. }
                if self.running.as_ref().is_some_and(|it| it.is_interrupted) =>
            {
                self.interrupt();
            }
            Event::AgentStarted { in_background: true, .. } => self.watch_background(),
            _ => {}
        }
        match question(&event) {
            Some(true) => self.send_state("requires_action"),
            Some(false) => self.send_state("running"),
            None => {}
        }
        if let Some(running) = &mut self.running {
            running.notes.observe(&event);
            match &event {
                Event::RunFinished { .. } | Event::RunLost { .. } => running.has_shown_all = true,
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

    /// Notes a mode, and tells the program of one that is new. Before a run the first line of that says it.
    pub(super) fn mode_changed(&mut self, mode: PermissionMode) {
        let before = std::mem::replace(&mut self.facts.mode, mode);
        if before != mode && self.running.is_some() {
            let fields = json!({"status": null, "permissionMode": mode});
            let line = self.translator.frame().system("status", fields);
            self.output.write(line);
        }
    }

    /// Ends the run whose outcome is known and whose events were shown.
    pub(super) fn end_run(&mut self) {
        self.end_woken();
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
            Some(Ok((outcome, record))) => {
                let structured = self.structured.as_deref();
                let model = &self.facts.model;
                of_outcome(frame, &session, &outcome, &record, &notes, structured, model)
            }
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
        self.will_rest();
        self.go_on();
    }

    pub(super) fn send_state(&mut self, state: &str) {
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
async fn run(
    session: SessionHandle,
    mut request: RunRequest,
    mirror: Option<Mirror>,
) -> Result<EndedRun, RunError> {
    let transcript = session.transcript().to_owned();
    let from = tokio::fs::metadata(&transcript).await.map_or(0, |it| it.len());
    if let Some(name) = request.message.take_if(|_| 0 < from) {
        // A line of this name would be the second one.
        let (path, id) = (transcript.clone(), name.to_string());
        let read = tokio::task::spawn_blocking(move || has_entry(&path, &id)).await;
        request.message = Some(name).filter(|_| matches!(read, Ok(Ok(false))));
    }
    let outcome = match mirror {
        None => session.run(request).await?,
        Some(mirror) => {
            let ended = tokio::select! {
                ended = session.run(request) => ended,
                never = mirror.show_on() => match never {},
            };
            mirror.show().await;
            ended?
        }
    };
    Ok(with_record(transcript, from, outcome).await)
}

/// Adds what a transcript says from a place on about the model calls of a run.
pub(super) async fn with_record(transcript: PathBuf, from: u64, outcome: RunOutcome) -> EndedRun {
    let run = outcome.run.clone();
    let read = tokio::task::spawn_blocking(move || model_record(&transcript, from, &run)).await;
    let record = read.ok().and_then(Result::ok).unwrap_or_default();
    (outcome, record)
}

/// Whether somebody is asked about a call, `true`, or not any more, `false`; `None` for other events.
fn question(event: &Event) -> Option<bool> {
    match event {
        Event::PermissionAsked { .. } => Some(true),
        Event::PermissionSettled { .. } => Some(false),
        Event::Agent { event, .. } => question(event),
        _ => None,
    }
}

/// Whether the name is one that a line of a transcript can have.
fn is_uuid(name: &str) -> bool {
    let groups = name.split('-').map(str::len);
    groups.eq([8, 4, 4, 4, 12]) && name.bytes().all(|it| it == b'-' || it.is_ascii_hexdigit())
}

/// Whether a line of the transcript has this name. Reads the file on the thread of the caller, line by line.
fn has_entry(transcript: &Path, id: &str) -> io::Result<bool> {
    let mut lines = BufReader::new(File::open(transcript)?);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? != 0 {
        let text = String::from_utf8_lossy(&line);
        if text.contains(id)
            && serde_json::from_str::<Value>(&text).is_ok_and(|it| it["uuid"] == id)
        {
            return Ok(true);
        }
        line.clear();
    }
    Ok(false)
}
