//! What a session receives.

use std::{sync::Arc, time::Duration};

use ennead_runtime::{
    approval::ModeError,
    hook::EndedHook,
    ids::{AgentId, EntryId, ToolUseId},
    lease::MaxCost,
    permission::PermissionMode,
    ports::{
        AgentOrder, AgentReport, BoxFuture, CommittedOutcome,
        messages::{AgentMessage, Delivered, KnownAgent, MessageFate, Undelivered},
        shells::{Detached, ShellStatus},
    },
    run::{
        RunRequest,
        outcome::{RunError, RunOutcome},
    },
    session::{
        CallName, EarlierConversation, RunNumber, SessionInput, SpawnId, TreeAnswer, TreeQuestion,
        TurnKey,
    },
    step1_settings_resolution::{AgentLimits, LayerText, Merged},
    transcript::load::UsageTotals,
    turn::effect::{Append, HookFiring, TurnReport},
};
use ractor::{ActorId, ActorRef};
use tokio::sync::oneshot;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::status::Status;
use crate::{
    groundwork::mailbox::Admitted,
    ports::errors::OpenError,
    services::mcp_server::Answered,
    storage::{archive::OpenOutcome, transcript_writer::Recorded},
    turn::{model_call::SentMark, turn_supervisor::message::TurnMsg},
    world::{hook_process::HandlerContext, source_files::Fingerprints, verifiers::Verifiers},
};

/// Receives how a run ended.
pub(crate) type RunReply = Box<dyn FnOnce(Result<RunOutcome, RunError>) + Send + Sync>;

/// How a run ended that a session began by itself; `None` when there will be none.
pub(crate) type WokenEnd = Option<Result<RunOutcome, RunError>>;

/// A prompt to be run.
pub(crate) struct Prompt {
    pub(crate) request: RunRequest,
    pub(crate) reply: RunReply,
    /// Answered when the beginning of its run is safe, where it is a message of the session above.
    pub(crate) begun: Option<MessageReply>,
}

/// What a session receives. Work first, then steering and answers, which always get through.
pub(crate) enum SessionMsg {
    /// Run this prompt. Holds a slot until the run has ended.
    Prompt(Admitted<Box<Prompt>>),
    /// Take a message of the session above to the run under way, before its next turn.
    Message { id: EntryId, text: String, reply: MessageReply },
    /// End the run under way now.
    Interrupt,
    /// End the run under way after its present turn.
    Stop,
    /// End the run under way and close the transcript, then end the session.
    Close(oneshot::Sender<()>),
    /// Change the permission mode.
    SetMode(PermissionMode, oneshot::Sender<Result<(), ModeError>>),
    /// Report where the session is.
    Status(oneshot::Sender<Status>),
    /// Report how the next run ends that the session begins by itself; `None` once it is at rest.
    NextWoken(oneshot::Sender<WokenEnd>),
    /// Report when prompts can be run, or why not.
    Ready(oneshot::Sender<Result<(), OpenError>>),
    /// The transcript was opened, or not.
    Opened(OpenOutcome),
    /// An earlier conversation was read.
    Loaded(Box<Result<EarlierConversation, String>>),
    /// The settings for a prompt that may be too long were read.
    SettingsRead(Option<Arc<Merged>>),
    /// Lines are safe, or lost.
    Recorded(Recorded),
    /// A turn wants lines written. The key names the turn.
    Append { key: TurnKey, append: Box<Append> },
    /// A turn waits and has no lines yet: those of the turn before wait no longer.
    Flush,
    /// A turn started a call, which leaves its outcome there if it can no longer be undone.
    CallStarted { key: TurnKey, call: ToolUseId, committed: CommittedOutcome },
    /// A turn wants handlers run.
    RunHooks { firing: Box<HookFiring>, context: Box<HandlerContext>, request: HookToken },
    /// A tool of this turn wants a command run, in an actor of its own.
    HostProcess { key: TurnKey, work: BoxFuture<'static, ()>, detached: Detached },
    /// An MCP server that was starting when the session was opened has answered, or one that was to be
    /// connected again; the sender is dropped once that is taken over.
    ServerAnswered(Box<Answered>, Option<oneshot::Sender<()>>),
    /// A turn has files watched, or some that are watched have changed.
    Watch(SessionInput),
    /// A hook that was not waited for has ended.
    HookEnded(Box<EndedHook>),
    /// A command goes on in the background.
    ShellKept(Box<ShellStatus>),
    /// Nothing of the commands in the background is left, or it was not waited for any longer.
    ShellsEnded,
    /// The model of the turns to come; `None`: that of the settings again.
    SetModel(Option<String>),
    /// The MCP servers whose tools are withheld from the turns to come.
    DisableServers(Vec<String>),
    /// A turn has reached its end. Its supervisor may walk the next one of the run, where it `rests`.
    TurnDone {
        key: TurnKey,
        report: Box<TurnReport>,
        fingerprints: Option<Fingerprints>,
        rests: bool,
    },
    /// A turn cannot run.
    CannotRun { key: TurnKey, why: String },
    /// Nothing of an ended turn works any more, or it was not waited for any longer.
    TurnQuiet { key: TurnKey, late: bool },
    /// This limit of this run is reached.
    TimeIsUp { run: RunNumber, deadline: Duration },
    /// A model call of a turn whose tree is limited waits to be let go.
    CallWaits(Box<WaitingCall>),
    /// A tool wants a sub-agent.
    SpawnAgent(Box<SpawnRequest>),
    /// A tool sends a message to a sub-agent.
    SendMessage(Box<SendRequest>),
    /// It is known what became of a message for a sub-agent.
    MessageAnswered { spawn: SpawnId, fate: MessageFate },
    /// The call that waited for a sub-agent is gone: end it.
    StopAgent(ToolUseId),
    /// Report what the session said last, or a sub-agent of it.
    LastWords { of: Option<AgentId>, reply: oneshot::Sender<String> },
    /// A sub-agent has ended its run.
    AgentEnded { agent: AgentId, result: Box<Result<RunOutcome, RunError>> },
    /// A sub-agent has crashed; what it used, and those below it.
    AgentCrashed { agent: AgentId, used: Vec<(AgentId, UsageTotals)> },
    /// An agent of the tree asks its top session.
    TreeQuestion { question: TreeQuestion, from: ActorRef<SessionMsg> },
    /// The top session of the tree has answered.
    TreeAnswer(TreeAnswer),
    /// A child has ended. Comes after all that it sent before.
    ChildGone(ActorId),
}

/// What goes with a request for hooks.
pub(crate) struct HookToken {
    /// The turn that receives what the handlers answered.
    pub(crate) turn: ActorRef<TurnMsg>,
    /// Held until the handlers are over.
    pub(crate) token: TaskTrackerToken,
    /// The span of the step that fires them.
    pub(crate) span: tracing::Span,
    /// Starts the agents that verify for them.
    pub(crate) verifiers: Option<Verifiers>,
}

/// A model call that waits to be admitted.
pub(crate) struct WaitingCall {
    pub(crate) name: CallName,
    /// The limits in the settings under which it is made.
    pub(crate) limits: AgentLimits,
    /// The most that it can use.
    pub(crate) max_cost: MaxCost,
    /// Sent to when it may begin. Dropped when the turn is ended instead.
    pub(crate) go: oneshot::Sender<()>,
    /// Set when it is sent then.
    pub(crate) sent: SentMark,
}

/// A tool wants a sub-agent.
pub(crate) struct SpawnRequest {
    /// The key of the turn whose call asks.
    pub(crate) key: TurnKey,
    /// The limits in its turn's settings.
    pub(crate) limits: AgentLimits,
    /// The layers that these settings were made of.
    pub(crate) layers: Arc<[LayerText]>,
    /// The task of the sub-agent, as the call gives it.
    pub(crate) order: AgentOrder,
    /// How long it may take, where it verifies for a hook handler and no call asks.
    pub(crate) verifies_for: Option<Duration>,
    /// Receives the report, once.
    pub(crate) reply: oneshot::Sender<AgentReport>,
}

/// Answers the call that sends a message.
pub(crate) type SendReply = oneshot::Sender<Result<Delivered, Undelivered>>;

/// A tool sends a message to a sub-agent.
pub(crate) struct SendRequest {
    pub(crate) key: TurnKey,
    pub(crate) limits: AgentLimits,
    pub(crate) layers: Arc<[LayerText]>,
    pub(crate) message: AgentMessage,
    /// What lies next to the transcript of the agent.
    pub(crate) known: Option<KnownAgent>,
    pub(crate) reply: SendReply,
}

/// Has the one that sent a message learn what became of it, also when what holds this is dropped.
pub(crate) struct MessageReply {
    to: ActorRef<SessionMsg>,
    spawn: SpawnId,
    fate: MessageFate,
}

impl MessageReply {
    pub(crate) fn new(to: ActorRef<SessionMsg>, spawn: SpawnId) -> Self {
        Self { to, spawn, fate: MessageFate::NotTaken }
    }

    /// Notes that the message was handed to the rules: from now on it may be on record.
    pub(crate) fn seen(mut self) -> Self {
        self.fate = MessageFate::Unclear;
        self
    }

    pub(crate) fn answer(mut self, fate: MessageFate) {
        self.fate = fate;
    }
}

impl Drop for MessageReply {
    fn drop(&mut self) {
        let answer = SessionMsg::MessageAnswered { spawn: self.spawn, fate: self.fate };
        let _gone = self.to.cast(answer);
    }
}
