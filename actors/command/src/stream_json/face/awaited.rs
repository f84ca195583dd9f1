//! What the loop waits for, all at once.

use std::{sync::Arc, time::Duration};

use ennead::{
    Ennead, Event, Events, OpenError, RunError, RunOutcome, SessionHandle,
    permission::PermissionMode, tool::BoxFuture,
};
use futures::{StreamExt, stream::FuturesUnordered};
use serde_json::Value;
use tokio::{sync::mpsc, time::sleep};

use super::background::{Background, InBackground};
use crate::{
    exit::Exit,
    print::ModelRecord,
    signals::Signals,
    stream_json::{pipe::Input, results::RunNotes},
    unread::Unread,
};

/// How long the last lines may take after a signal.
const GRACE: Duration = Duration::from_secs(1);

/// What an opening gives back: the states of the program's MCP servers among it.
pub(super) type OpenedSession = (Arc<Ennead>, Result<SessionHandle, OpenError>, Vec<Value>);

pub(super) type Opening = BoxFuture<'static, OpenedSession>;

/// A run that is over, and what its transcript says about its model calls.
pub(super) type EndedRun = (RunOutcome, ModelRecord);

/// A run under way, or one whose last events are not shown yet.
pub(super) struct Running {
    pub(super) run: BoxFuture<'static, Result<EndedRun, RunError>>,
    pub(super) ended: Option<Result<EndedRun, RunError>>,
    /// Lines were written for all events of the run.
    pub(super) has_shown_all: bool,
    /// The program wants it ended; the session may not have begun it yet.
    pub(super) is_interrupted: bool,
    pub(super) notes: RunNotes,
}

/// Requests to connect MCP servers again.
#[derive(Default)]
pub(super) struct Reconnects {
    /// With the ids of the requests, and their answers.
    pub(super) running: FuturesUnordered<BoxFuture<'static, Reconnected>>,
    /// Ids and names of servers, from before there was a session.
    pub(super) early: Vec<(String, String)>,
}

/// The id of a request, and what it is answered.
pub(super) type Reconnected = (String, Result<Value, String>);

/// What the loop goes on with.
pub(super) enum Happened {
    Input(Option<Input>),
    Opened(OpenedSession),
    Event(Option<Event>),
    RunEnded(Box<Result<EndedRun, RunError>>),
    Background(InBackground),
    Mode(PermissionMode),
    Reconnected(Reconnected),
    Signal(Exit),
    NobodyReads,
}

/// What the loop waits for besides the session.
pub(super) struct Awaited {
    input: mpsc::Receiver<Input>,
    modes: mpsc::UnboundedReceiver<PermissionMode>,
    unread: Unread,
    is_read: bool,
    /// Whether what the program writes is waited for.
    pub(super) takes_input: bool,
}

impl Awaited {
    pub(super) fn new(
        input: mpsc::Receiver<Input>,
        modes: mpsc::UnboundedReceiver<PermissionMode>,
        unread: Unread,
    ) -> Self {
        Self { input, modes, unread, is_read: true, takes_input: true }
    }

    /// Waits for what happens next, here or in the session.
    pub(super) async fn next(
        &mut self,
        signals: &mut Signals,
        events: &mut Option<Events>,
        running: &mut Option<Running>,
        background: &mut Background,
        opening: &mut Option<Opening>,
        reconnects: &mut Reconnects,
    ) -> Happened {
        // What comes after the last event of a run is of the next one, so the outcome is waited for first.
        let is_shown = running.as_ref().is_some_and(|it| it.has_shown_all && it.ended.is_none());
        tokio::select! {
            exit = signals.next() => Happened::Signal(exit),
            _ = &mut self.unread, if self.is_read => {
                self.is_read = false;
                Happened::NobodyReads
            }
            event = next_event(events), if !is_shown => Happened::Event(event),
            Some(mode) = self.modes.recv() => Happened::Mode(mode),
            Some(it) = reconnects.running.next() => Happened::Reconnected(it),
            happened = background.next() => Happened::Background(happened),
            ended = end_of(running) => Happened::RunEnded(Box::new(ended)),
            opened = opened(opening) => Happened::Opened(opened),
            line = self.input.recv(), if self.takes_input => Happened::Input(line),
        }
    }

    /// Waits until the last lines are read, not for long after a signal. Returns the signal that ends
    /// the program, if there is one.
    pub(super) async fn end_of_output(
        mut self,
        signals: &mut Signals,
        mut ended_by: Option<Exit>,
    ) -> Option<Exit> {
        while self.is_read {
            let is_last = ended_by.is_some();
            tokio::select! {
                biased;
                _ = &mut self.unread => self.is_read = false,
                exit = signals.next() => ended_by = Some(exit),
                () = sleep(GRACE), if is_last => self.is_read = false,
            }
        }
        ended_by
    }
}

async fn next_event(events: &mut Option<Events>) -> Option<Event> {
    match events {
        Some(events) => events.next().await.map(|it| it.event),
        None => std::future::pending().await,
    }
}

async fn end_of(running: &mut Option<Running>) -> Result<EndedRun, RunError> {
    match running {
        Some(Running { run, ended: None, .. }) => run.await,
        _ => std::future::pending().await,
    }
}

async fn opened(opening: &mut Option<Opening>) -> OpenedSession {
    match opening {
        Some(opening) => opening.await,
        None => std::future::pending().await,
    }
}
