//! The loop between a program and a session.
//!
//! It never waits for one thing alone: requests of the program are answered while a run is under way, while
//! the session is being opened, and while the program does not read. The end of standard input is no
//! interrupt: what was asked for is finished first.

use std::{collections::VecDeque, io, sync::Arc, time::Duration};

use ennead::{
    Ennead, Event, Events, OpenError, RunError, RunOutcome, RunRequest, SessionHandle,
    SessionOptions,
    permission::{BadMatcher, HookEvent},
};
use serde_json::{Map, Value, json};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

use super::{
    callbacks::{HostApprover, HostHook, ShownCalls},
    frames::Frame,
    host::Host,
    incoming::{self, Incoming, Prompt},
    mcp,
    pipe::{Input, Output},
    results::{RunNotes, SessionFacts, of_error, of_outcome, words_of},
    translate::{Shown, Translator},
};
use crate::{exit::Exit, print::model_record, signals::Signals};

/// Seconds that a callback of the program may take where it names no limit.
const CALLBACK_SECONDS: f64 = 60.0;

/// What the command line chose.
#[derive(Clone, Copy, Debug, Default)]
pub struct FaceOptions {
    /// Events of answers are shown as they come.
    pub partial: bool,
    /// What else is shown.
    pub shown: Shown,
    /// Questions go to the program.
    pub asks_program: bool,
    /// The program is told whether the session works; `Some(true)`: for its SDK alone.
    pub tells_state: Option<bool>,
}

/// What the loop works with.
#[derive(Debug)]
pub struct Setup {
    /// Hosts the session.
    pub ennead: Ennead,
    /// The session that is opened once the program has introduced itself.
    pub session: SessionOptions,
    /// What is known of the session.
    pub facts: SessionFacts,
    /// Frames of the session.
    pub frame: Frame,
    /// What the command line chose.
    pub options: FaceOptions,
    /// MCP servers that run in the program.
    pub host_servers: Vec<String>,
    /// Known options that have no effect here, for the program to see.
    pub without_effect: Vec<String>,
    /// What the program writes.
    pub input: mpsc::Receiver<Input>,
    /// A prompt of the command line.
    pub prompt: Option<String>,
    /// What the program reads.
    pub output: Output,
    /// Resolves when nobody reads any more.
    pub unread: oneshot::Receiver<io::Result<()>>,
}

/// What an opening gives back: the states of the program's MCP servers among it.
type OpenedSession = (Arc<Ennead>, Result<SessionHandle, OpenError>, Vec<Value>);

type Opening = JoinHandle<OpenedSession>;

struct Running {
    run: JoinHandle<Result<RunOutcome, RunError>>,
    outcome: Option<Result<RunOutcome, RunError>>,
    /// The events of the run are over.
    is_told: bool,
    notes: RunNotes,
}

struct Face {
    ennead: Option<Arc<Ennead>>,
    options: Option<SessionOptions>,
    facts: SessionFacts,
    face: FaceOptions,
    host_servers: Vec<String>,
    without_effect: Vec<String>,
    output: Output,
    host: Host,
    shown_calls: ShownCalls,
    translator: Translator,
    session: Option<SessionHandle>,
    events: Option<Events>,
    queue: VecDeque<Prompt>,
    running: Option<Running>,
    /// The model of the command line.
    default_model: String,
    /// What was chosen before there was a session to choose for.
    chosen_model: Option<Option<String>>,
    refused: Option<String>,
    has_failed: bool,
    is_at_end: bool,
}

enum Happened {
    Input(Option<Input>),
    Opened(OpenedSession),
    Event(Option<Event>),
    Outcome(Result<RunOutcome, RunError>),
    Signal(Exit),
    NobodyReads,
}

/// Serves the program until it has closed its end and everything it asked for is done.
pub async fn run(setup: Setup, signals: &mut Signals) -> Exit {
    let Setup { ennead, session, facts, frame, options, .. } = setup;
    let (mut input, mut unread) = (setup.input, setup.unread);
    let host = Host::new(setup.output.clone());
    let mut face = Face {
        ennead: Some(Arc::new(ennead)),
        options: Some(session),
        default_model: facts.model.clone(),
        chosen_model: None,
        facts,
        face: options,
        host_servers: setup.host_servers,
        without_effect: setup.without_effect,
        output: setup.output,
        host,
        shown_calls: ShownCalls::default(),
        translator: Translator::new(frame, options.shown),
        session: None,
        events: None,
        queue: VecDeque::new(),
        running: None,
        refused: None,
        has_failed: false,
        is_at_end: false,
    };
    let mut opening: Option<Opening> = None;
    if let Some(prompt) = setup.prompt {
        face.queue.extend(text_prompt(&prompt));
        face.end_of_input();
    }
    let mut ended_by = None;
    loop {
        if opening.is_none() && !face.queue.is_empty() {
            opening = face.open();
        }
        face.end_run();
        face.begin_run();
        if opening.is_none() && face.is_done() {
            break;
        }
        let happened = tokio::select! {
            biased;
            exit = signals.next() => Happened::Signal(exit),
            _ = &mut unread => Happened::NobodyReads,
            event = next_event(&mut face.events) => Happened::Event(event),
            outcome = outcome_of(&mut face.running) => Happened::Outcome(outcome),
            opened = opened(&mut opening) => Happened::Opened(opened),
            line = input.recv(), if !face.is_at_end => Happened::Input(line),
        };
        match happened {
            Happened::Input(None) => face.end_of_input(),
            Happened::Input(Some(line)) => {
                if face.take(line) && opening.is_none() {
                    opening = face.open();
                }
            }
            Happened::Opened((ennead, result, servers)) => {
                opening = None;
                face.ennead = Some(ennead);
                face.facts.servers.extend(servers);
                if !face.opened(result) {
                    break;
                }
            }
            Happened::Event(event) => face.event(event),
            Happened::Outcome(outcome) => {
                if let Some(running) = &mut face.running {
                    running.is_told |= outcome.is_err();
                    running.outcome = Some(outcome);
                }
            }
            Happened::Signal(exit) => {
                if ended_by.replace(exit).is_some() {
                    break;
                }
                face.stop();
            }
            // Nobody is left who could want the rest.
            Happened::NobodyReads => {
                face.stop();
                break;
            }
        }
    }
    face.close(opening).await;
    // The lines that wait are written first; a program that never reads them ends us by a signal.
    let Face { output, host, has_failed, .. } = face;
    drop((output, host));
    let _all = unread.await;
    match ended_by {
        Some(exit) => exit,
        None if has_failed => Exit::RunFailed,
        None => Exit::Success,
    }
}

fn text_prompt(text: &str) -> Option<Prompt> {
    let content = vec![ennead::PromptBlock::text(text)];
    Some(Prompt { content, uuid: None, is_human: false })
}

async fn next_event(events: &mut Option<Events>) -> Option<Event> {
    match events {
        Some(events) => events.next().await.map(|it| it.event),
        None => std::future::pending().await,
    }
}

async fn outcome_of(running: &mut Option<Running>) -> Result<RunOutcome, RunError> {
    match running {
        Some(Running { run, outcome: None, .. }) => {
            run.await.unwrap_or_else(|gone| Err(RunError::Failed(gone.to_string())))
        }
        _ => std::future::pending().await,
    }
}

async fn opened(opening: &mut Option<Opening>) -> OpenedSession {
    match opening {
        Some(task) => match task.await {
            Ok(opened) => opened,
            // Only when the runtime is going.
            Err(_) => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}

impl Face {
    /// Takes a line; returns whether the session is to be opened.
    fn take(&mut self, input: Input) -> bool {
        let line = match input {
            Input::Line(line) => incoming::read(&line).map_err(|it| it.to_string()),
            Input::Bad(why) => Err(format!("a line on standard input cannot be read: {why}")),
        };
        match line {
            Ok(Incoming::Prompt(prompt)) => {
                self.queue.push_back(prompt);
                true
            }
            Ok(Incoming::Request { id, subtype, fields }) => self.request(&id, &subtype, &fields),
            Ok(Incoming::Answer { id, result }) => {
                self.host.answered(&id, result);
                false
            }
            Ok(Incoming::Cancel { .. } | Incoming::Other) => false,
            Err(why) => {
                let fields = json!({"content": why, "level": "warning"});
                let line = self.translator.frame().system("informational", fields);
                self.output.write(line);
                false
            }
        }
    }

    /// Answers a request; returns whether the session is to be opened.
    fn request(&mut self, id: &str, subtype: &str, fields: &Map<String, Value>) -> bool {
        let result = match subtype {
            "initialize" => match self.initialize(fields) {
                Ok(answer) => {
                    self.answer(id, Ok(answer));
                    return true;
                }
                Err(why) => Err(why),
            },
            "interrupt" => {
                self.interrupt();
                Ok(json!({}))
            }
            "set_model" => {
                self.choose_model(fields.get("model").and_then(Value::as_str));
                Ok(json!({}))
            }
            "mcp_status" => Ok(json!({"mcpServers": self.facts.servers})),
            other => Err(format!("Unsupported control request subtype: {other}")),
        };
        self.answer(id, result);
        false
    }

    /// Asks another model from the next turn on; a session that is being opened, from its first turn on.
    fn choose_model(&mut self, model: Option<&str>) {
        self.facts.model = model.unwrap_or(&self.default_model).to_owned();
        match &self.session {
            Some(session) => session.set_model(model),
            None => self.chosen_model = Some(model.map(str::to_owned)),
        }
    }

    fn answer(&self, id: &str, result: Result<Value, String>) {
        let response = match result {
            Ok(response) => json!({"subtype": "success", "request_id": id, "response": response}),
            Err(error) => json!({"subtype": "error", "request_id": id, "error": error}),
        };
        self.output.write(json!({"type": "control_response", "response": response}));
    }

    fn initialize(&mut self, fields: &Map<String, Value>) -> Result<Value, String> {
        if let Some(options) = self.options.take() {
            let kept = options.clone();
            match self.with_hooks(options, fields.get("hooks")) {
                Ok(options) => self.options = Some(options),
                Err(error) => {
                    self.options = Some(kept);
                    return Err(error.to_string());
                }
            }
        }
        if fields.get("forwardSubagentText") == Some(&true.into()) {
            self.face.shown.agent_text = true;
            self.translator.show(self.face.shown);
        }
        Ok(json!({
            "commands": [],
            "output_style": "default",
            "available_output_styles": ["default"],
            "models": [{"value": self.facts.model, "displayName": self.facts.model, "description": ""}],
            "account": {},
            "agents": self.facts.agents.iter().map(|name| json!({"name": name})).collect::<Vec<_>>(),
            "hook_on_failure_supported": true,
            "pid": std::process::id(),
        }))
    }

    /// Registers the callbacks of the program. Events that never fire here are of no interest.
    fn with_hooks(
        &self,
        mut options: SessionOptions,
        hooks: Option<&Value>,
    ) -> Result<SessionOptions, BadMatcher> {
        for (event, matchers) in hooks.and_then(Value::as_object).into_iter().flatten() {
            let Ok(event) = serde_json::from_value::<HookEvent>(event.as_str().into()) else {
                continue;
            };
            for matcher in matchers.as_array().into_iter().flatten() {
                let pattern = matcher["matcher"].as_str().unwrap_or_default();
                let seconds = matcher["timeout"].as_f64().filter(|it| 0.0 < *it && *it < 1e6);
                let limit = Duration::from_secs_f64(seconds.unwrap_or(CALLBACK_SECONDS));
                let on_failure = matcher["onFailure"].as_str().unwrap_or("continue");
                for callback in matcher["hookCallbackIds"].as_array().into_iter().flatten() {
                    let callback = callback.as_str().unwrap_or_default();
                    let (host, shown) = (self.host.clone(), self.shown_calls.clone());
                    let hook = HostHook::new(host, shown, callback, on_failure != "continue");
                    options = options.hook(event, pattern, limit, Arc::new(hook))?;
                }
            }
        }
        Ok(options)
    }

    /// Opens the session, once.
    fn open(&mut self) -> Option<Opening> {
        let mut options = self.options.take()?;
        if self.face.asks_program {
            let approver = HostApprover::new(self.host.clone(), self.shown_calls.clone());
            options = options.approver(Arc::new(approver));
        }
        let ennead = self.ennead.take()?;
        let (host, servers) = (self.host.clone(), std::mem::take(&mut self.host_servers));
        Some(tokio::spawn(async move {
            let states = mcp::join(&host, &servers, &mut options).await;
            let opened = ennead.open(options).await;
            (ennead, opened, states)
        }))
    }

    /// Returns whether there is a session.
    fn opened(&mut self, opened: Result<SessionHandle, OpenError>) -> bool {
        match opened {
            Ok(session) => {
                self.events = Some(session.conversation(self.face.partial));
                self.facts.tools = session.tools();
                if let Some(model) = self.chosen_model.take() {
                    session.set_model(model.as_deref());
                }
                self.session = Some(session);
                true
            }
            Err(error) => {
                self.refuse(&error.to_string());
                false
            }
        }
    }

    /// The session cannot be had; whoever waits for it is answered.
    fn refuse(&mut self, why: &str) {
        let notes = RunNotes::default();
        self.output.write(of_error(self.translator.frame(), why, &notes));
        self.refused = Some(why.to_owned());
        self.has_failed = true;
        self.queue.clear();
    }

    fn begin_run(&mut self) {
        let Some(session) = self.session.clone().filter(|_| self.running.is_none()) else { return };
        let Some(prompt) = self.queue.pop_front() else { return };
        self.tell_state("running");
        let init = self.facts.init(self.translator.frame());
        self.output.write(init);
        for flag in std::mem::take(&mut self.without_effect) {
            let content = format!("{flag} has no effect here");
            let fields = json!({"content": content, "level": "warning"});
            let line = self.translator.frame().system("informational", fields);
            self.output.write(line);
        }
        let notes = RunNotes { prompt: prompt.uuid, is_human: prompt.is_human, in_call: false };
        let request = RunRequest::of(prompt.content).origin("sdk");
        let run = tokio::spawn(async move { session.run(request).await });
        self.running = Some(Running { run, outcome: None, is_told: false, notes });
    }

    fn event(&mut self, event: Option<Event>) {
        let Some(event) = event else {
            // The session is gone; no event of the run follows.
            self.events = None;
            self.running.iter_mut().for_each(|it| it.is_told = true);
            return;
        };
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
    fn end_run(&mut self) {
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

    fn tell_state(&mut self, state: &str) {
        let Some(is_for_sdk) = self.face.tells_state else { return };
        let mut fields = json!({"state": state});
        if is_for_sdk {
            fields["sdk_host_only"] = true.into();
        }
        let line = self.translator.frame().system("session_state_changed", fields);
        self.output.write(line);
    }

    fn interrupt(&mut self) {
        if let (Some(session), true) = (&self.session, self.running.is_some()) {
            session.interrupt();
        }
    }

    /// Ends what runs, and begins nothing any more.
    fn stop(&mut self) {
        self.queue.clear();
        self.end_of_input();
        self.interrupt();
    }

    fn end_of_input(&mut self) {
        self.is_at_end = true;
        self.host.close();
    }

    fn is_done(&self) -> bool {
        self.refused.is_some()
            || (self.is_at_end && self.queue.is_empty() && self.running.is_none())
    }

    async fn close(&mut self, opening: Option<Opening>) {
        self.host.close();
        if let Some(opening) = opening {
            opening.abort();
            // An opening that is over has its Ennead in it.
            if let Ok((ennead, ..)) = opening.await {
                self.ennead = Some(ennead);
            }
        }
        if let Some(session) = self.session.take() {
            session.close().await;
        }
        self.events = None;
        if let Some(ennead) = self.ennead.take().and_then(Arc::into_inner) {
            ennead.shutdown().await;
        }
    }
}
