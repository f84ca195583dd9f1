//! Who lives: sessions by id, and every actor below them with its kind and step.
//!
//! Nothing decides by it. It answers status queries at any moment, without a message to anybody
//! who might be busy, and the kill tests take their victims from it.

mod watch;

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use dashmap::DashMap;
use ennead_runtime::{governor::ParkReason, ids::SessionId, step::Step};
use foldhash::fast::RandomState;
use ractor::{ActorCell, ActorId};
use serde::Serialize;
use tokio::{sync::broadcast, time::Instant};

use crate::groundwork::mailbox::Gauge;
#[cfg_attr(not(feature = "serve"), expect(unused_imports, reason = "only the server watches"))]
pub(crate) use watch::{TreeChange, TreeWatch};

/// The kinds of actors, as in the supervision tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ActorKind {
    /// Root of one scheduler thread.
    Shard,
    /// Wakes the calls that wait for one provider and key.
    Governor,
    /// Keeps one MCP server at hand.
    McpServer,
    /// Owns the process of one MCP server and speaks with it.
    McpConnection,
    /// Waits for the MCP servers that were not ready when a session was opened.
    McpWaiter,
    /// Opens transcripts and supervises their writers.
    Archive,
    /// Writes the lines of one transcript.
    TranscriptWriter,
    /// Holds one conversation and runs its prompts.
    Session,
    /// A conversation with a parent.
    SubAgent,
    /// Admits hooks and runs their handlers.
    HookRunner,
    /// Runs the handlers of one firing.
    HookExecution,
    /// Owns the processes of one command.
    ShellProcess,
    /// Walks one turn through its nine steps.
    TurnSupervisor,
    /// Reads settings and sources.
    SourceReader,
    /// Runs one shaper stage.
    ShaperStage,
    /// Asks the model once.
    ModelCall,
    /// Resolves paths and judges commands for the gate.
    GateWorker,
    /// Admits tool calls of a turn.
    ToolDispatcher,
    /// Runs one tool call.
    ToolExecutor,
    /// Asks somebody for a permission.
    Approval,
    /// Waits until an ended turn touches nothing any more.
    TurnEnding,
    /// Waits for the wall-clock limit of a run.
    RunTimer,
    /// Looks after the files that hooks of a session wait for.
    FileWatcher,
}

impl ActorKind {
    /// All kinds of actors, in the order of the tree.
    pub const ALL: [ActorKind; 23] = [
        ActorKind::Shard,
        ActorKind::Governor,
        ActorKind::McpServer,
        ActorKind::McpConnection,
        ActorKind::McpWaiter,
        ActorKind::Archive,
        ActorKind::TranscriptWriter,
        ActorKind::Session,
        ActorKind::SubAgent,
        ActorKind::HookRunner,
        ActorKind::HookExecution,
        ActorKind::ShellProcess,
        ActorKind::TurnSupervisor,
        ActorKind::SourceReader,
        ActorKind::ShaperStage,
        ActorKind::ModelCall,
        ActorKind::GateWorker,
        ActorKind::ToolDispatcher,
        ActorKind::ToolExecutor,
        ActorKind::Approval,
        ActorKind::TurnEnding,
        ActorKind::RunTimer,
        ActorKind::FileWatcher,
    ];
}

/// An actor that lives.
#[derive(Clone)]
#[non_exhaustive]
pub struct Live {
    /// The kind of the actor.
    pub kind: ActorKind,
    /// The session it works for; a sub-agent's own id for what is below it.
    pub session: Option<SessionId>,
    /// The step a turn supervisor is at.
    pub step: Option<Step>,
    /// Handle of the actor.
    pub cell: ActorCell,
    /// Whether a turn supervisor waits for somebody's answer to a question.
    pub is_asking: bool,
    /// When it was entered.
    pub since: Instant,
    /// When it reached its step.
    pub step_since: Option<Instant>,
    /// The work in its bounded mailbox, if it has one.
    pub mailbox: Option<Gauge>,
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {} of {:?}", self.kind, self.cell.get_id(), self.session)
    }
}

/// The actors of one `Ennead`.
#[derive(Clone, Debug, Default)]
pub struct Directory(Arc<Entries>);

#[derive(Debug, Default)]
struct Entries {
    actors: DashMap<ActorId, Live, RandomState>,
    /// Sessions whose call of the model waits for the governor.
    parked: DashMap<SessionId, ParkedCall, RandomState>,
    /// The watchers of the tree; made when the first one asks.
    watchers: OnceLock<broadcast::Sender<TreeChange>>,
}

/// A call of the model that is not sent yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ParkedCall {
    /// Why the call waits.
    pub reason: ParkReason,
    /// Until when at least, in milliseconds since 1970; `None`: until another call ends.
    pub until_ms: Option<u64>,
}

impl Directory {
    /// Enters an actor. It leaves when the guard is dropped, which its state does.
    pub(crate) fn enter(
        &self,
        kind: ActorKind,
        session: Option<&SessionId>,
        cell: ActorCell,
    ) -> Registration {
        let id = cell.get_id();
        let (session, since) = (session.cloned(), Instant::now());
        let (step, step_since, mailbox, is_asking) = (None, None, None, false);
        let live = Live { kind, session, step, is_asking, cell, since, step_since, mailbox };
        self.publish(|| TreeChange::Started(live.clone()));
        self.0.actors.insert(id, live);
        Registration { directory: self.clone(), id, since }
    }

    /// Returns all actors, in the order in which they were spawned.
    pub fn all(&self) -> Vec<Live> {
        let mut all: Vec<Live> = self.0.actors.iter().map(|it| it.value().clone()).collect();
        all.sort_by_key(|it| it.cell.get_id().pid());
        all
    }

    /// Returns the actors that work for a session.
    pub fn of(&self, session: &SessionId) -> Vec<Live> {
        let mut all = self.all();
        all.retain(|it| it.session.as_ref() == Some(session));
        all
    }

    /// Returns the number of live actors.
    pub fn len(&self) -> usize {
        self.0.actors.len()
    }

    /// Returns whether no actor is alive.
    pub fn is_empty(&self) -> bool {
        self.0.actors.is_empty()
    }

    /// Returns why the session's call of the model waits; `None` if it does not.
    pub fn parked(&self, session: &SessionId) -> Option<ParkedCall> {
        self.0.parked.get(session).map(|it| *it.value())
    }

    /// Returns how many sessions wait for a governor, sub-agents included.
    pub fn n_parked(&self) -> usize {
        self.0.parked.len()
    }

    /// Marks a call of this session as parked, for as long as the mark lives.
    pub(crate) fn mark_parked(&self, session: &SessionId) -> ParkedMark {
        ParkedMark { directory: self.clone(), session: session.clone() }
    }

    fn set_step(&self, id: ActorId, step: Step) {
        if let Some(mut live) = self.0.actors.get_mut(&id) {
            live.step = Some(step);
            live.step_since = Some(Instant::now());
            self.publish(|| TreeChange::Changed(live.clone()));
        }
    }

    fn set_asking(&self, id: ActorId, is_asking: bool) {
        if let Some(mut live) = self.0.actors.get_mut(&id)
            && std::mem::replace(&mut live.is_asking, is_asking) != is_asking
        {
            self.publish(|| TreeChange::Changed(live.clone()));
        }
    }

    /// Notes the bounded mailbox of an actor, so that its depth can be read.
    pub(crate) fn note_mailbox(&self, id: ActorId, gauge: Gauge) {
        if let Some(mut live) = self.0.actors.get_mut(&id) {
            live.mailbox = Some(gauge);
        }
    }
}

/// Keeps an actor in the directory.
#[derive(Debug)]
pub(crate) struct Registration {
    directory: Directory,
    id: ActorId,
    /// A leaf that stays may be entered for its next work already.
    since: Instant,
}

impl Registration {
    /// Notes the step that a turn supervisor is at.
    pub(crate) fn at_step(&self, step: Step) {
        self.directory.set_step(self.id, step);
    }

    /// Notes whether a turn supervisor waits for an answer to a question.
    pub(crate) fn asks(&self, is_asking: bool) {
        self.directory.set_asking(self.id, is_asking);
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let is_own = |_: &ActorId, live: &Live| live.since == self.since;
        if let Some((_, live)) = self.directory.0.actors.remove_if(&self.id, is_own) {
            self.directory.publish(|| TreeChange::Ended(live));
        }
    }
}

/// Says that a session is parked.
pub(crate) struct ParkedMark {
    directory: Directory,
    session: SessionId,
}

impl ParkedMark {
    /// Records why the call waits, and until when.
    pub(crate) fn set(&self, reason: ParkReason, until_ms: Option<u64>) {
        let call = ParkedCall { reason, until_ms };
        self.directory.0.parked.insert(self.session.clone(), call);
    }
}

impl Drop for ParkedMark {
    fn drop(&mut self) {
        self.directory.0.parked.remove(&self.session);
    }
}
