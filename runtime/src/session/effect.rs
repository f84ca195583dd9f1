//! What a session wants done. The machine never does it itself.

use std::{sync::Arc, time::Duration};

use super::{
    agents::tree::{TreeAnswer, TreeQuestion},
    firing::SessionFiring,
    names::{
        CallName, MessageNumber, PromptId, RunNumber, RunOrigin, SpawnId, TurnKey, WriteTicket,
    },
};
use crate::{
    event::Event,
    hook::WatchedFile,
    ids::{AgentId, EntryId},
    lease::Lease,
    permission::PermissionMode,
    ports::{
        agents::{BackgroundAgent, EndedAgent},
        messages::{MessageFate, Undelivered},
    },
    run::{
        agent_types::AgentType,
        outcome::{RunError, RunOutcome},
    },
    transcript::entry::{Line, StoredText},
    turn::TurnSetup,
};

/// Something to be done. Effects of one input are carried out in order.
#[derive(Debug)]
pub enum SessionEffect {
    /// Publish an event to the subscribers.
    Publish(Event),
    /// Write lines; answered by [`SessionInput::Written`](super::SessionInput::Written).
    Write(Batch),
    /// Start or end actors. What follows waits until that is done.
    Spawn(SpawnEffect),
    /// The transcript is open and the conversation is known, or neither will come to be: answer
    /// those that wait for that.
    Ready {
        /// Whether prompts can be run.
        is_open: bool,
    },
    /// Report the outcome of a run. Frees the place of its prompt in the queue.
    Reply {
        /// What the run answers.
        origin: RunOrigin,
        /// The outcome, or why there is none.
        result: Box<Result<RunOutcome, RunError>>,
    },

    /// Lines that a turn waits for are safe.
    TurnRecorded {
        /// The key of the turn, as in `StartTurn`.
        key: TurnKey,
        /// The turn's own ticket of these lines, as in its `Append`.
        ticket: u64,
    },
    /// Put a turn into another permission mode.
    SetMode {
        /// The key of the turn, as in `StartTurn`.
        key: TurnKey,
        /// The mode that holds for it now.
        mode: PermissionMode,
    },
    /// Put all sub-agents at work into another permission mode.
    SetAgentsMode(PermissionMode),
    /// Ask a turn to be the last of its run.
    StopAfterTurn {
        /// The key of the turn, as in `StartTurn`.
        key: TurnKey,
    },
    /// End a turn if it was not ended, forget it, and answer with `TurnLeft` before any other input.
    LeaveTurn {
        /// The key of the turn, as in `StartTurn`.
        key: TurnKey,
    },
    /// No limit holds any more.
    UnwatchTime,

    /// Let a model call begin that waited for its place in the tree.
    AdmitCall(CallName),
    /// A request gets no sub-agent.
    RefuseAgent {
        /// The spawn, as in `SpawnAgent`.
        spawn: SpawnId,
        /// Why, in words for the model.
        why: String,
    },
    /// The caller of this request is gone, and no sub-agent was started.
    DropRequest {
        /// The spawn, as in `SpawnAgent`.
        spawn: SpawnId,
    },
    /// Have a sub-agent interrupt its run, close its transcript and end.
    CloseAgent(AgentId),
    /// Report how a sub-agent ended to the call that waits for it, once.
    ReportAgent {
        /// The name of the sub-agent in the tree.
        agent: AgentId,
        /// The outcome, or why there is none.
        result: Box<Result<RunOutcome, RunError>>,
    },
    /// Keep how an agent in the background ended, for calls that ask for it.
    KeepEnd(Box<EndedAgent>),
    /// The beginning of the run is safe that answers this prompt, which is the message of the session above.
    Begun(PromptId),
    /// Answer the one that sent a message to this session.
    MessageTaken {
        /// The message, as in [`SessionInput::Message`](super::SessionInput::Message).
        number: MessageNumber,
        /// What became of it.
        fate: MessageFate,
    },
    /// Hand a message to a sub-agent at work; answered by `MessageAnswered`.
    DeliverMessage {
        /// The message, as in `SendMessage`.
        spawn: SpawnId,
        /// The sub-agent that is handed the message.
        agent: AgentId,
        /// Names its line in the conversation of the sub-agent.
        id: EntryId,
    },
    /// Report to the call that sent a message that the sub-agent has it on record.
    MessageDelivered {
        /// The message, as in `SendMessage`.
        spawn: SpawnId,
        /// Whether the sub-agent had ended and goes on.
        goes_on: bool,
    },
    /// Report to the call that sent a message that it was not delivered.
    RefuseMessage {
        /// The message, as in `SendMessage`.
        spawn: SpawnId,
        /// The reason, which the model reads.
        why: Undelivered,
    },
    /// Ask the top session of the tree.
    AskTop(TreeQuestion),
    /// Answer an agent of the tree.
    AnswerAgent {
        /// The agent that asked.
        agent: AgentId,
        /// The answer, which names its question.
        answer: TreeAnswer,
    },
}

/// An effect by which actors are started or ended.
#[derive(Debug)]
pub enum SpawnEffect {
    /// Read the settings layers; answered by `SettingsRead`.
    ReadSettings,
    /// Read the earlier conversation and close its sidechains; answered by `Loaded`.
    LoadEarlier,
    /// Start the supervisor of a turn.
    StartTurn {
        /// Names the turn. Counts up within the life of the session.
        key: TurnKey,
        /// What it begins with.
        setup: Box<TurnSetup>,
        /// Whether it is to be the last of its run.
        is_last: bool,
    },
    /// End a turn and all that it started, and say `TurnQuiet` when nothing of it is at work.
    StopTurn {
        /// The key of the turn, as in `StartTurn`.
        key: TurnKey,
    },
    /// Say `TimeIsUp` at this reading of the clock; replaces an earlier limit.
    WatchTime {
        /// The run, counted from the opening of the session.
        run: RunNumber,
        /// The end of the time, by the clock that never goes back.
        deadline: Duration,
    },
    /// Start a sub-agent for a request. Where it works in the background, the request is answered at once, and
    /// `AgentKept` comes when it was started; but for one that goes on, of which `MessageAnswered` comes.
    StartAgent {
        /// The spawn, as in `SpawnAgent`.
        spawn: SpawnId,
        /// The name of the sub-agent in the tree.
        agent: AgentId,
        /// The type of the sub-agent: its prompt, tools and model.
        kind: Box<AgentType>,
        /// What it may hand on.
        lease: Lease,
        /// How it is reported, where it works in the background.
        background: Option<Box<BackgroundAgent>>,
        /// Names the line of the message with which it goes on from its transcript.
        again: Option<EntryId>,
    },
    /// Watch these files in place of those that were watched before; `FilesChanged` comes when one has changed.
    WatchFiles {
        /// The files; none where nothing is watched any more.
        files: Arc<[WatchedFile]>,
    },
    /// Start handlers that are not waited for; `HookEnded` comes of each.
    FireHooks(Box<SessionFiring>),
    /// Close the transcript, then end the session.
    CloseTranscript,
}

impl From<SpawnEffect> for SessionEffect {
    fn from(effect: SpawnEffect) -> Self {
        Self::Spawn(effect)
    }
}

/// Lines that are written at once.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Comes back with the answer.
    pub ticket: WriteTicket,
    /// The lines, in the order in which they are written.
    pub lines: Arc<Vec<Line>>,
    /// Texts that the lines name; written before them.
    pub stored: Vec<StoredText>,
    /// What the session is known by from now on, for other programs; follows the lines.
    pub title: Option<Arc<str>>,
    /// Whether they are to be on disk, where the durability mode says so for such lines.
    pub sync: bool,
}
