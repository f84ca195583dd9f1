//! One conversation.
//!
//! Owns the conversation (what was said, what turns hand on), the runs and their queue, the
//! sub-agents, and everything that goes to the transcript. Child of a shard, or of the session
//! that started it as a sub-agent. Hears its handle, its turn, its sub-agents and the archive.
//! Idle, a session is this actor, its writer and nothing else.

pub(crate) mod agents;
pub(crate) mod context;
mod ending;
mod handle;
pub(crate) mod processes;
mod recorder;
mod runs;
pub(crate) mod shells;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use ennead_runtime::{
    cost::CostLedger,
    ids::{AgentId, RunId, ToolUseId},
    ports::{
        BoxFuture, CommittedOutcome,
        shells::{Detached, ShellStatus},
    },
    run::{RunRequest, conversation::Conversation},
    tokens::Usage,
    transcript::load::UsageTotals,
    turn::effect::{Append, HookFiring, TurnReport},
};
use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::oneshot;

pub(crate) use context::SessionContext;
pub(crate) use ennead_runtime::run::outcome::{Denial, RunError, RunOutcome};
pub use handle::{SessionHandle, Status};
pub(crate) use runs::OpenPlan;

use crate::{
    archive::{ArchiveMsg, OpenTranscript, Opened},
    directory::{ActorKind, Registration},
    errors::OpenError,
    events::EndOfEvents,
    hook_runner::{HookMsg, HookRequest},
    mailbox::{Admitted, Mailbox, Slot},
    session::{agents::Agents, recorder::Recorder, runs::Active},
    source_reader::Look,
    supervision::{ended, ended_without_reply},
    transcript_writer::{Recorded, ReplyTo},
    turn_supervisor::TurnMsg,
    world::{hook_process::HookPlace, local_files::Fingerprints},
};

/// Hears how a run ended.
pub(crate) type RunReply = Box<dyn FnOnce(Result<RunOutcome, RunError>) + Send + Sync>;

/// A prompt to be run.
pub(crate) struct Prompt {
    pub(crate) request: RunRequest,
    pub(crate) reply: RunReply,
}

/// What a session hears. Work first, then steering and answers, which always get through.
pub(crate) enum SessionMsg {
    /// Run this prompt. Holds a slot until the run has ended.
    Prompt(Admitted<Box<Prompt>>),
    /// A turn wants lines written. The key names the turn.
    Append { key: u64, append: Box<Append> },
    /// A turn waits and has no lines yet: those of the turn before wait no longer.
    Flush,
    /// A turn started a call, which leaves its outcome there if it can no longer be undone.
    CallStarted { key: u64, call: ToolUseId, settled: CommittedOutcome },
    /// A turn wants handlers run.
    RunHooks { firing: Box<HookFiring>, place: Box<HookPlace>, request: HookToken },
    /// A model call of a turn whose tree is limited waits to be let go.
    CallWaits(Box<agents::WaitingCall>),
    /// A tool wants a sub-agent.
    SpawnAgent(Box<agents::SpawnRequest>),
    /// A tool of this turn wants a command run, in an actor of its own.
    HostProcess { key: u64, work: BoxFuture<'static, ()>, detached: Detached },
    /// A command goes on in the background.
    ShellKept(Box<ShellStatus>),
    /// End the run under way now.
    Interrupt,
    /// End the run under way after its present turn.
    Stop,
    /// The one that waited for the sub-agent of this call is gone: end it.
    StopAgent(ToolUseId),
    /// Asks for the state of the session.
    Status(oneshot::Sender<Status>),
    /// Ends the session after its lines are written.
    Close(oneshot::Sender<()>),
    /// End the commands in the background, then close the transcript and end.
    EndShells(oneshot::Sender<()>),
    /// Nothing of them is left, or it was not waited for any longer.
    ShellsEnded(oneshot::Sender<()>),
    /// Is the transcript open?
    Ready(oneshot::Sender<Result<(), OpenError>>),
    /// The transcript was opened, or not.
    Opened(Opened),
    /// An earlier conversation was read.
    Loaded(Box<Result<runs::Earlier, String>>),
    /// Read the settings for a prompt that may be too long.
    Measure,
    /// The settings files were read, to measure the prompt.
    Measured(Box<Look>),
    /// Lines are safe, or lost.
    Recorded(Recorded),
    /// A turn has reached its end.
    TurnDone { key: u64, report: Box<TurnReport>, fingerprints: Option<Fingerprints> },
    /// A turn cannot run.
    CannotRun { key: u64, why: String },
    /// Wait for the limit of this run.
    WatchTime { run: u64 },
    /// This limit of this run is reached.
    TimeIsUp { run: u64, time: Duration },
    /// Nothing of an ended turn works any more, or it was not waited for any longer.
    TurnQuiet { key: u64, late: bool },
    /// A sub-agent has ended its run.
    AgentEnded { agent: AgentId, result: Box<Result<RunOutcome, RunError>> },
    /// A sub-agent has crashed; what it used, and those below it.
    AgentCrashed { agent: AgentId, used: Vec<(AgentId, UsageTotals)> },
    /// Something about the tree of agents; for its top session and back.
    Tree(agents::TreeMsg),
    /// A child has ended. Queued after whatever it said before.
    ChildGone(ActorId),
}

/// What goes with a request for hooks: who waits, and what says that they are over.
pub(crate) struct HookToken {
    pub(crate) turn: ActorRef<TurnMsg>,
    pub(crate) token: tokio_util::task::task_tracker::TaskTrackerToken,
}

/// What a session is given.
pub(crate) struct SessionSetup {
    pub(crate) shared: Arc<SessionContext>,
    pub(crate) conversation: Conversation,
    pub(crate) archive: ActorRef<ArchiveMsg>,
    pub(crate) open: runs::OpenPlan,
    pub(crate) parent: Option<agents::Parent>,
    pub(crate) layout: crate::archive::layout::Layout,
    /// What its listeners are told with the first run.
    pub(crate) told: Vec<Arc<str>>,
}

/// The actor that is a session.
pub(crate) struct Session;

pub(crate) struct SessionState {
    /// Goes before the replies of runs do: listeners hear first.
    _end_of_events: EndOfEvents,
    shared: Arc<SessionContext>,
    conversation: Conversation,
    archive: ActorRef<ArchiveMsg>,
    layout: crate::archive::layout::Layout,
    open: runs::OpenPlan,
    recorder: Recorder,
    /// Whether the transcript is open, or why not; `None` while that is not known.
    ready: Option<Result<(), OpenError>>,
    waiting_for_ready: Vec<oneshot::Sender<Result<(), OpenError>>>,
    /// Reads the earlier conversation.
    loader: Option<ActorId>,
    /// Reads settings for a prompt that may be too long.
    measuring: runs::Measuring,
    queue: VecDeque<(Box<Prompt>, Slot)>,
    /// In a box: most sessions have none most of the time.
    active: Option<Box<Active>>,
    /// Runs begun; makes run ids differ.
    n_runs: u64,
    /// What loading an earlier transcript mended, and which MCP servers failed; told with the first
    /// run, since nobody can listen before the session is open.
    untold: Vec<Arc<str>>,
    next_key: u64,
    fingerprints: Option<Fingerprints>,
    hooks: Option<Mailbox<HookRequest, HookMsg>>,
    agents: Agents,
    /// Used by all runs that have ended, those of earlier processes included.
    spent: Usage,
    cost: CostLedger,
    processes: processes::Processes,
    /// Commands that an earlier process left in the background; the model is not told yet.
    lost_shells: Vec<ShellStatus>,
    outcomes: BTreeMap<RunId, RunOutcome>,
    closing: Option<oneshot::Sender<()>>,
    _registration: Registration,
}

impl Actor for Session {
    type Msg = SessionMsg;
    /// Boxed, because the one that starts an actor moves its state half a dozen times.
    type State = Box<SessionState>;
    type Arguments = Box<SessionSetup>;

    async fn pre_start(
        &self,
        myself: ActorRef<SessionMsg>,
        setup: Box<SessionSetup>,
    ) -> Result<Box<SessionState>, ActorProcessingErr> {
        let SessionSetup { shared, conversation, archive, open, parent, layout, told } = *setup;
        let kind = if parent.is_some() { ActorKind::SubAgent } else { ActorKind::Session };
        let registration = shared.directory.enter(kind, Some(&shared.session), myself.get_cell());
        let (opened, recorded) = (myself.clone(), myself.clone());
        archive.cast(ArchiveMsg::Open(OpenTranscript {
            place: open.place.clone(),
            frame: open.frame.clone(),
            durability: open.durability,
            meta: open.meta.clone(),
            owner: Some(myself.get_cell()),
            reply: Arc::new(move |it| {
                // A session that is gone needs no transcript; it is closed with the session.
                let _gone = opened.cast(SessionMsg::Opened(it));
            }),
        }))?;
        let reply: ReplyTo = Arc::new(move |it| {
            let _gone = recorded.cast(SessionMsg::Recorded(it));
        });
        Ok(Box::new(SessionState {
            _end_of_events: EndOfEvents(shared.hub.clone()),
            agents: Agents::new(parent),
            shared,
            conversation,
            archive,
            layout,
            open,
            recorder: Recorder::new(reply),
            ready: None,
            waiting_for_ready: Vec::new(),
            loader: None,
            measuring: runs::Measuring::default(),
            queue: VecDeque::new(),
            active: None,
            n_runs: 0,
            untold: told,
            next_key: 1,
            fingerprints: None,
            hooks: None,
            spent: Usage::default(),
            cost: CostLedger::default(),
            processes: processes::Processes::default(),
            lost_shells: Vec::new(),
            outcomes: BTreeMap::new(),
            closing: None,
            _registration: registration,
        }))
    }

    async fn handle(
        &self,
        myself: ActorRef<SessionMsg>,
        message: SessionMsg,
        state: &mut Box<SessionState>,
    ) -> Result<(), ActorProcessingErr> {
        // This future is moved with every message, so it holds nothing but what must be waited for.
        if let Some(starting) = state.on_message(&myself, message)? {
            starting.await?;
        }
        if state.has_next_turn() {
            Box::pin(state.start_turn(&myself)).await?;
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<SessionMsg>,
        event: SupervisionEvent,
        state: &mut Box<SessionState>,
    ) -> Result<(), ActorProcessingErr> {
        // A turn that has said how it ended owes nothing; the ends of others are noted all the same.
        let Some(child) = ended(&event) else { return Ok(()) };
        if ended_without_reply(&event).is_some() || !state.is_turn(child) {
            myself.cast(SessionMsg::ChildGone(child))?;
        }
        Ok(())
    }
}

/// What waits for a child to start.
type Starting<'a> = BoxFuture<'a, Result<(), ActorProcessingErr>>;

impl SessionState {
    /// Takes a message. Gives what must be waited for.
    fn on_message<'a>(
        &'a mut self,
        myself: &'a ActorRef<SessionMsg>,
        message: SessionMsg,
    ) -> Result<Option<Starting<'a>>, ActorProcessingErr> {
        match message {
            SessionMsg::Prompt(Admitted { work, slot }) => {
                self.queue.push_back((work, slot));
                self.next_run(myself)?;
            }
            SessionMsg::Append { key, append } => self.append(key, append),
            SessionMsg::Flush => self.recorder.flush(),
            SessionMsg::CallStarted { key, call, settled } => {
                self.call_started(key, call, settled);
            }
            SessionMsg::RunHooks { firing, place, request } => {
                return Ok(Some(Box::pin(self.run_hooks(myself, *firing, *place, request))));
            }
            SessionMsg::CallWaits(call) => {
                return Ok(Some(Box::pin(self.call_waits(myself, call))));
            }
            SessionMsg::SpawnAgent(request) => self.spawn_agent(myself, *request)?,
            SessionMsg::HostProcess { key, work, detached } => {
                return Ok(Some(Box::pin(self.host_process(myself, key, work, detached))));
            }
            SessionMsg::ShellKept(status) => self.shell_kept(&status),
            SessionMsg::Interrupt => return Ok(Some(Box::pin(self.interrupt(myself)))),
            SessionMsg::Stop => self.stop_after_turn(),
            SessionMsg::StopAgent(call) => self.stop_agent(&call),
            SessionMsg::Status(reply) => {
                // Who asked and left needs no answer.
                let _gone = reply.send(self.status());
            }
            SessionMsg::Close(reply) => return Ok(Some(Box::pin(self.close(myself, reply)))),
            SessionMsg::EndShells(reply) => {
                return Ok(Some(Box::pin(self.end_shells(myself, reply))));
            }
            SessionMsg::ShellsEnded(reply) => self.close_transcript(myself, reply)?,
            SessionMsg::Ready(reply) => self.tell_when_ready(reply),
            SessionMsg::Opened(opened) => return Ok(Some(Box::pin(self.opened(myself, opened)))),
            SessionMsg::Loaded(earlier) => self.loaded(myself, *earlier)?,
            SessionMsg::Measure => return Ok(Some(Box::pin(self.measure(myself)))),
            SessionMsg::Measured(look) => self.settings_measured(myself, *look)?,
            SessionMsg::Recorded(recorded) => self.recorded(myself, recorded)?,
            SessionMsg::TurnDone { key, report, fingerprints } => {
                self.turn_done(key, *report, fingerprints);
            }
            SessionMsg::CannotRun { key, why } => {
                return Ok(Some(Box::pin(self.cannot_run(myself, key, why))));
            }
            SessionMsg::WatchTime { run } => {
                return Ok(Some(Box::pin(self.watch_time(myself, run))));
            }
            SessionMsg::TimeIsUp { run, time } => {
                return Ok(Some(Box::pin(self.time_is_up(myself, run, time))));
            }
            SessionMsg::TurnQuiet { key, late } => self.turn_quiet(myself, key, late)?,
            SessionMsg::AgentEnded { agent, result } => {
                self.agent_ended(myself, &agent, *result)?;
            }
            SessionMsg::AgentCrashed { agent, used } => {
                self.agent_crashed(myself, &agent, used)?;
            }
            SessionMsg::Tree(message) => return Ok(Some(Box::pin(self.tree(myself, message)))),
            SessionMsg::ChildGone(child) => {
                return Ok(Some(Box::pin(self.child_gone(myself, child))));
            }
        }
        Ok(None)
    }
}
