//! The loop between a program and a session.
//!
//! It never waits for one thing alone: requests of the program are answered while a run is under way, while
//! the session is being opened, and while the program does not read. The end of standard input is no
//! interrupt: what was asked for is finished first.

mod awaited;
mod background;
mod clear;
mod opening;
mod requests;
mod runs;
mod servers;

use std::{collections::VecDeque, sync::Arc, time::Duration};

use ennead::{
    Ennead, Events, PromptBlock, SessionHandle, SessionOptions, permission::PermissionMode,
};
use tokio::sync::mpsc;

use super::{
    callbacks::ShownCalls,
    checkpoints::Checkpoints,
    context::ContextSize,
    frames::Frame,
    host::Host,
    incoming::Prompt,
    mirror::Mirror,
    pipe::{Input, Output},
    results::{RunNotes, SessionFacts},
    skills::Skills,
    structured::Structured,
    titles,
    translate::{EventFilter, Translator},
};
use crate::{exit::Exit, signals::Signals, unread::Unread};
use awaited::{Awaited, EndedRun, Happened, Opening, Reconnects, Running};
use background::Background;

/// What the command line chose.
#[derive(Clone, Copy, Debug, Default)]
pub struct FaceOptions {
    /// Events of answers are shown as they come.
    pub partial: bool,
    /// What else is shown.
    pub shown: EventFilter,
    /// Questions go to the program.
    pub asks_program: bool,
    /// Whether the program receives a frame when the session begins and ends work; `Some(true)`: for its SDK alone.
    pub tells_state: Option<bool>,
    /// How long agents in the background are waited for at the end; `None`: as long as they take.
    pub wait_ceiling: Option<Duration>,
    /// What was asked for is finished when the program is gone, too.
    pub finishes_unread: bool,
}

/// What the loop works with.
#[derive(Debug)]
pub struct Setup {
    /// The runtime in which the session is opened. It is shut down at the end where nobody else holds it.
    pub ennead: Arc<Ennead>,
    /// The process that the program started.
    pub pid: u32,
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
    /// The tool of one of them that answers questions in place of the program.
    pub permission_tool: Option<String>,
    /// What the program is to know before its first prompt is answered: options without an effect here, and
    /// what waits for trust.
    pub warnings: Vec<String>,
    /// The embedded simulated model answers.
    pub is_simulated: bool,
    /// Skills and commands of files.
    pub skills: Skills,
    /// The schema that answers are to fit, if there is one.
    pub structured: Option<Arc<Structured>>,
    /// What the program writes.
    pub input: mpsc::Receiver<Input>,
    /// A prompt of the command line.
    pub prompt: Option<String>,
    /// What the program reads.
    pub output: Output,
    /// Shows the transcripts as they are written.
    pub mirror: Option<Mirror>,
    /// Keeps files before tools change them.
    pub checkpoints: Option<Checkpoints>,
    /// Resolves when the reader is gone.
    pub unread: Unread,
}

struct Face {
    pid: u32,
    ennead: Option<Arc<Ennead>>,
    options: Option<SessionOptions>,
    /// What the session was opened with, for another one.
    opened_with: Option<SessionOptions>,
    /// The prompt that asked for another session, while that is opened.
    clearing: Option<RunNotes>,
    facts: SessionFacts,
    face: FaceOptions,
    host_servers: Vec<String>,
    permission_tool: Option<String>,
    warnings: Vec<String>,
    is_simulated: bool,
    skills: Skills,
    structured: Option<Arc<Structured>>,
    output: Output,
    mirror: Option<Mirror>,
    checkpoints: Option<Checkpoints>,
    host: Host,
    shown_calls: ShownCalls,
    translator: Translator,
    session: Option<SessionHandle>,
    events: Option<Events>,
    queue: VecDeque<Prompt>,
    /// What the program has said since the last of them without asking for a run.
    said: Vec<PromptBlock>,
    /// The first prompt of the queue is to be interrupted as soon as its run begins.
    interrupts_next: bool,
    running: Option<Running>,
    background: Background,
    /// The model of the command line.
    default_model: String,
    /// The permission mode of the command line and settings.
    default_mode: PermissionMode,
    /// What was chosen before there was a session to choose for.
    chosen_model: Option<Option<String>>,
    chosen_mode: Option<PermissionMode>,
    modes: mpsc::UnboundedSender<PermissionMode>,
    context: ContextSize,
    reconnects: Reconnects,
    refused: Option<String>,
    has_failed: bool,
    is_at_end: bool,
}

/// Serves the program until it has closed its end and everything it asked for is done.
pub async fn run(setup: Setup, signals: &mut Signals) -> Exit {
    let (modes, chosen) = mpsc::unbounded_channel();
    let (mut face, mut awaited) = Face::new(setup, modes, chosen);
    let mut opening: Option<Opening> = None;
    let mut ended_by = None;
    loop {
        face.advance(&mut opening);
        face.rest();
        if opening.is_none() && face.is_done() {
            break;
        }
        awaited.takes_input = !face.is_at_end;
        let Face { events, running, background, reconnects, .. } = &mut face;
        let next = awaited.next(signals, events, running, background, &mut opening, reconnects);
        let happened = next.await;
        match happened {
            Happened::Input(None) => face.end_of_input(),
            Happened::Input(Some(line)) => {
                if face.take(line).await && opening.is_none() {
                    opening = face.open();
                }
            }
            Happened::Opened((ennead, result, servers)) => {
                opening = None;
                face.ennead = Some(ennead);
                face.facts.servers.extend(servers);
                if !face.opened(result).await {
                    break;
                }
            }
            Happened::Event(event) => face.event(event),
            Happened::RunEnded(ended) => face.note_end(*ended),
            Happened::Background(happened) => {
                if face.in_background(happened) {
                    break;
                }
            }
            Happened::Reconnected((id, result)) => {
                face.learn_tools();
                face.answer(&id, result);
            }
            Happened::Mode(mode) => _ = face.choose_mode(mode).await,
            Happened::Signal(exit) => {
                if ended_by.replace(exit).is_some() {
                    break;
                }
                face.stop();
            }
            // The rest has no reader any more.
            Happened::NobodyReads if face.face.finishes_unread => face.end_of_input(),
            Happened::NobodyReads => {
                face.stop();
                break;
            }
        }
    }
    face.close(opening).await;
    // The lines that wait are written first; a program that never reads them ends us by a signal.
    face.output.end();
    match awaited.end_of_output(signals, ended_by).await {
        Some(exit) => exit,
        None if face.has_failed => Exit::RunFailed,
        None => Exit::Success,
    }
}

fn text_prompt(text: &str) -> Option<Prompt> {
    let content = vec![PromptBlock::text(text)];
    Some(Prompt {
        content,
        uuid: None,
        is_human: false,
        is_literal: false,
        is_asking: true,
        said_before: Vec::new(),
    })
}

impl Face {
    /// What serves the program, and what it waits for besides the session.
    fn new(
        setup: Setup,
        modes: mpsc::UnboundedSender<PermissionMode>,
        chosen: mpsc::UnboundedReceiver<PermissionMode>,
    ) -> (Self, Awaited) {
        let host = Host::new(setup.output.clone());
        let options = setup.options;
        let mut face = Self {
            pid: setup.pid,
            ennead: Some(setup.ennead),
            options: Some(setup.session),
            opened_with: None,
            clearing: None,
            default_model: setup.facts.model.clone(),
            default_mode: setup.facts.mode,
            chosen_model: None,
            chosen_mode: None,
            modes,
            facts: setup.facts,
            face: options,
            host_servers: setup.host_servers,
            permission_tool: setup.permission_tool,
            warnings: setup.warnings,
            is_simulated: setup.is_simulated,
            skills: setup.skills,
            structured: setup.structured,
            output: setup.output,
            mirror: setup.mirror,
            checkpoints: setup.checkpoints,
            host,
            shown_calls: ShownCalls::default(),
            translator: Translator::new(setup.frame, options.shown),
            session: None,
            events: None,
            queue: VecDeque::new(),
            said: Vec::new(),
            interrupts_next: false,
            running: None,
            background: Background::new(options.wait_ceiling),
            context: ContextSize::default(),
            reconnects: Reconnects::default(),
            refused: None,
            has_failed: false,
            is_at_end: false,
        };

        if let Some(prompt) = setup.prompt {
            face.queue.extend(text_prompt(&prompt));
            face.end_of_input();
        }
        (face, Awaited::new(setup.input, chosen, setup.unread))
    }

    /// Begins what can begin: an opening, or the run of the next prompt.
    fn advance(&mut self, opening: &mut Option<Opening>) {
        if opening.is_none() && !self.queue.is_empty() {
            *opening = self.open();
        }
        self.end_run();
        if opening.is_none() {
            *opening = self.begin_run();
        }
    }

    fn interrupt(&mut self) {
        if let (Some(session), Some(running)) = (&self.session, &mut self.running) {
            running.is_interrupted = true;
            session.interrupt();
        } else {
            // A prompt that waits for the session to be opened is the one that is meant.
            self.interrupts_next = !self.queue.is_empty();
        }
    }

    /// Ends what runs, and begins nothing any more.
    fn stop(&mut self) {
        self.queue.clear();
        self.background.give_up();
        self.end_of_input();
        self.interrupt();
    }

    fn end_of_input(&mut self) {
        self.is_at_end = true;
        if !std::mem::take(&mut self.said).is_empty() {
            self.warn("what was said without a question is not kept: no prompt came after it");
        }
        self.host.close();
    }

    fn is_done(&self) -> bool {
        self.refused.is_some()
            || (self.is_at_end
                && self.queue.is_empty()
                && self.running.is_none()
                && self.background.is_empty())
    }

    async fn next_event(&mut self) -> Option<ennead::Event> {
        self.events.as_mut()?.next().await.map(|it| it.event)
    }

    async fn close(&mut self, opening: Option<Opening>) {
        self.host.close();
        // Nobody else closes a session that is being opened.
        if let Some(opening) = opening {
            let (ennead, opened, _) = opening.await;
            self.ennead = Some(ennead);
            if let Ok(session) = opened {
                session.close().await;
            }
        }
        if let Some(session) = self.session.take() {
            let transcript = session.transcript().to_owned();
            session.close().await;
            // A session of which no prompt was answered has none; and what it is known by is worth no failure.
            let _kept = tokio::task::spawn_blocking(move || titles::keep(&transcript)).await;
            if let Some(mirror) = &self.mirror {
                mirror.show().await;
            }
        }
        // Each agent that was announced is reported to have ended.
        while let Some(event) = self.next_event().await {
            self.event(Some(event));
        }
        if let Some(ennead) = self.ennead.take().and_then(Arc::into_inner) {
            ennead.shutdown().await;
        }
    }
}
