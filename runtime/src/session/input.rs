//! What happens to a session.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::{
    agents::tree::{TreeAnswer, TreeQuestion},
    heard_hooks::KeptHook,
    names::{CallName, MessageNumber, PromptId, RunNumber, SpawnId, TurnKey, WriteTicket},
};
use crate::{
    digest::Digest,
    hook::{EndedHook, FileChange},
    ids::{AgentId, EntryId, ToolUseId},
    lease::MaxCost,
    permission::PermissionMode,
    ports::{
        agents::{AgentPlacement, BackgroundAgent, EndedAgent},
        messages::{KnownAgent, MessageFate},
        shells::{EndedShell, ShellStatus},
    },
    run::{
        RunRequest,
        outcome::{RunError, RunOutcome},
    },
    step1_settings_resolution::{AgentLimits, Merged},
    time::Timestamp,
    tool::{ToolOutcome, ToolSpec},
    transcript::load::{Loaded, UsageTotals},
    turn::effect::{Append, TurnReport, WatchOrder},
};

/// When something happens, by both clocks of the session.
#[derive(Clone, Copy, Debug, Default)]
pub struct Now {
    /// The wall clock, for records.
    pub at: Timestamp,
    /// A clock that never goes back, for limits.
    pub elapsed: Duration,
}

/// Something that happens to a session.
#[derive(Debug)]
pub enum SessionInput {
    /// A prompt was accepted into the queue.
    Prompt {
        /// Names the prompt in [`SessionEffect::Reply`](super::SessionEffect::Reply).
        prompt: PromptId,
        /// The prompt and the limits of its run.
        request: Box<RunRequest>,
    },
    /// The one that started this session as a sub-agent sends it a message.
    Message {
        /// Names the message in [`SessionEffect::MessageTaken`](super::SessionEffect::MessageTaken).
        number: MessageNumber,
        /// Names its line in the conversation.
        id: EntryId,
        /// The text of the message, without secrets.
        text: String,
    },
    /// The run under way is to end now.
    Interrupt,
    /// The run under way is to end after its present turn.
    Stop,
    /// The session is to end.
    Close,
    /// The session is put into another permission mode, which is known to be open to it.
    SetMode(PermissionMode),

    /// The transcript was opened, or could not be.
    Opened(OpenedTranscript),
    /// The earlier conversation was read; the error says why it could not be.
    Loaded(Box<Result<EarlierConversation, String>>),
    /// The settings layers were read before the first run; `None` when they could not be.
    SettingsRead(Option<Arc<Merged>>),
    /// A write is safe, with the hash that the chain then ends in, or it is lost.
    Written {
        /// The ticket of its [`Batch`](super::Batch).
        ticket: WriteTicket,
        /// The error in words.
        result: Result<Digest, String>,
    },

    /// A turn wants lines written.
    Append {
        /// The key of the turn, as in `StartTurn`.
        key: TurnKey,
        /// The lines, with the ticket under which the turn waits for them.
        append: Box<Append>,
    },
    /// A turn waits and has no lines: those held back for it are written now.
    Flush,
    /// A turn has reached its end.
    TurnDone {
        /// The key of the turn, as in `StartTurn`.
        key: TurnKey,
        /// How the turn ended, with its last lines.
        report: Box<TurnReport>,
    },
    /// A turn cannot run, for a reason in words.
    TurnFailed {
        /// The key of the turn, as in `StartTurn`.
        key: TurnKey,
        /// The reason, in words.
        why: String,
    },
    /// The supervisor of a turn ended without a report.
    TurnCrashed {
        /// The key of the turn, as in `StartTurn`.
        key: TurnKey,
    },
    /// Nothing that a stopped turn started is at work any more, or the wait for that was given up.
    TurnQuiet {
        /// The key of the turn, as in `StartTurn`.
        key: TurnKey,
        /// Whether the wait was given up.
        late: bool,
    },
    /// A command goes on in the background.
    ShellKept(Box<ShellStatus>),
    /// Commands in the background have ended since this was last sent. Comes before the input that
    /// a turn may follow.
    ShellsEnded(Vec<EndedShell>),
    /// A sub-agent that was started works in the background.
    AgentKept(Box<BackgroundAgent>),
    /// Agents in the background have ended, in a walk of a recorded session: a living one learns of each with
    /// [`AgentEnded`](Self::AgentEnded). Comes before the input that a turn may follow.
    AgentsEnded(Vec<EndedAgent>),
    /// A hook that was not waited for has ended.
    HookEnded(Box<EndedHook>),
    /// What such hooks added is on record, and the model has not read it: a walk of a recorded session goes on so.
    HooksKept(Vec<KeptHook>),
    /// A turn says what files are watched by.
    Watch(Box<WatchOrder>),
    /// Watched files have changed.
    FilesChanged(Vec<FileChange>),
    /// The one that looks after watched files is gone.
    WatcherGone,
    /// An MCP server that was starting when the session was opened has answered, or cannot be had.
    ServerAnswered {
        /// Its tools, which join with the next turn.
        tools: Vec<Arc<ToolSpec>>,
        /// The notice about it, in words for people.
        notes: Vec<Arc<str>>,
    },
    /// The answer to [`SessionEffect::LeaveTurn`](super::SessionEffect::LeaveTurn).
    TurnLeft {
        /// The key of the turn, as in `StartTurn`.
        key: TurnKey,
        /// What the turn leaves to the session.
        left: TurnRemains,
    },
    /// The time of a run is up.
    TimeIsUp {
        /// The run, as in [`SpawnEffect::WatchTime`](super::SpawnEffect::WatchTime).
        run: RunNumber,
        /// The limit that was reached.
        deadline: Duration,
    },

    /// A model call of a turn asks the tree of agents for its share.
    CallWaits {
        /// The model call that waits.
        name: CallName,
        /// The limits in the settings of its turn.
        limits: AgentLimits,
        /// The most that it can use.
        max_cost: MaxCost,
    },
    /// A tool call wants a sub-agent.
    SpawnAgent(AgentRequest),
    /// A tool call sends a message to a sub-agent.
    SendMessage(Box<MessageRequest>),
    /// It is known what became of a message for a sub-agent.
    MessageAnswered {
        /// The message, as in `SendMessage`.
        spawn: SpawnId,
        /// Whether the sub-agent has it.
        fate: MessageFate,
    },
    /// The call that waited for a sub-agent is gone.
    StopAgent(ToolUseId),
    /// A sub-agent that was to be started cannot be, for a reason in words.
    AgentRefused {
        /// The name of the sub-agent in the tree.
        agent: AgentId,
        /// The reason, in words.
        why: String,
    },
    /// A sub-agent has ended its run.
    AgentEnded {
        /// The name of the sub-agent in the tree.
        agent: AgentId,
        /// The outcome of its run, or why there is none.
        result: Box<Result<RunOutcome, RunError>>,
    },
    /// A sub-agent crashed; what it and those below it used is known from their transcripts.
    AgentCrashed {
        /// The name of the sub-agent in the tree.
        agent: AgentId,
        /// What each agent used.
        used: Vec<(AgentId, UsageTotals)>,
    },
    /// An agent of the tree asks its top session.
    TreeQuestion(TreeQuestion),
    /// The top session of the tree has answered.
    TreeAnswer(TreeAnswer),
}

/// How the opening of a transcript went.
#[derive(Debug)]
pub enum OpenedTranscript {
    /// The file has no lines yet.
    New,
    /// The file holds an earlier conversation.
    Existing,
    /// Another writer replaces one that crashed.
    Restarted,
    /// It cannot be written, for a reason in words.
    Failed(String),
}

/// An earlier conversation, as a session goes on with it.
#[derive(Debug)]
pub struct EarlierConversation {
    /// What its transcript holds.
    pub loaded: Loaded,
    /// What became of calls without a result, by the sub-agents that they had started.
    pub committed: BTreeMap<ToolUseId, ToolOutcome>,
    /// What its sub-agents used.
    pub agents: Vec<(AgentId, UsageTotals)>,
    /// Agents that worked in the background and of whose end the model has not learned.
    pub ended: Vec<EndedAgent>,
    /// Hooks whose words the model has not read.
    pub hooks: Vec<KeptHook>,
    /// Messages for the session that its conversation does not show yet, by the names of their lines.
    pub unread: Vec<(EntryId, String)>,
    /// Files that could not be read or closed, in words for people.
    pub problems: Vec<String>,
    /// What the turns of an open run have after the system prompt.
    pub system: Option<String>,
    /// The conversation as far as the line that the session goes on from, where that is not the last one.
    pub cut: Option<Box<Loaded>>,
}

/// What a turn that was ended from outside leaves.
#[derive(Clone, Debug, Default)]
pub struct TurnRemains {
    /// Outcomes of calls that could no longer be undone.
    pub committed: BTreeMap<ToolUseId, ToolOutcome>,
    /// Whether the model call that was let go was sent.
    pub was_sent: bool,
}

/// What a tool call asks a sub-agent with.
#[derive(Clone, Debug)]
pub struct AgentRequest {
    /// Names the spawn in [`SpawnEffect::StartAgent`](super::SpawnEffect::StartAgent).
    pub spawn: SpawnId,
    /// The key of the turn whose call asks.
    pub key: TurnKey,
    /// The limits in the settings of its turn.
    pub limits: AgentLimits,
    /// The tool call that waits for the report.
    pub call: ToolUseId,
    /// Its place among the sub-agents of that call, where it asks for several.
    pub part: Option<u32>,
    /// The type that the model named; `None` means `general-purpose`.
    pub agent_type: Option<Arc<str>>,
    /// Whether its call waits for it.
    pub placement: AgentPlacement,
    /// Its task in a few words.
    pub description: Arc<str>,
    /// Whether a hook handler wants it, and no call: it can read, and nothing else.
    pub verifies: bool,
}

/// What a tool call sends a message with.
#[derive(Clone, Debug)]
pub struct MessageRequest {
    /// Names the message in [`SessionEffect::MessageDelivered`](super::SessionEffect::MessageDelivered).
    pub spawn: SpawnId,
    /// The key of the turn whose call asks.
    pub key: TurnKey,
    /// The limits in the settings of its turn.
    pub limits: AgentLimits,
    /// The tool call that waits for the answer.
    pub call: ToolUseId,
    /// The sub-agent that it is for.
    pub agent: AgentId,
    /// What is known of that agent by what lies next to its transcript; `None`: there is none.
    pub known: Option<KnownAgent>,
}
