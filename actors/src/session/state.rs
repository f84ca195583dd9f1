//! What a session's actor holds: what its decisions name by number, and what it shares with its children.

use std::{collections::BTreeMap, sync::Arc};

use ennead_runtime::{
    ports::BoxFuture,
    session::{Machine, MessageNumber, PromptId},
    step1_settings_resolution::Durability,
    transcript::entry::LineFrame,
};
use ractor::{ActorId, ActorProcessingErr, ActorRef};
use tokio::sync::oneshot;

use super::{
    agents::children::Children,
    chosen::ChosenSettings,
    context::SessionContext,
    message::{MessageReply, RunReply},
    opening::Readiness,
    processes::Processes,
    timer::RunTimer,
    turn_handles::TurnHandles,
    watcher::FileWatcher,
    woken::WokenRuns,
};
use crate::{
    groundwork::{
        directory::Registration,
        mailbox::{Mailbox, Slot},
        supervision::HandlerResult,
    },
    ports::{
        events::EndOfEvents,
        transcript_store::layout::{Layout, TranscriptPaths},
    },
    storage::{
        archive::{ArchiveMsg, WriterHandle},
        transcript_writer::ReplyTo,
    },
    turn::{
        hook_runner::{HookMsg, HookRequest},
        source_reader::FirstLook,
    },
    world::source_files::Fingerprints,
};

/// Where and how a session's transcript is opened.
#[derive(Clone, Debug)]
pub(crate) struct OpenPlan {
    pub(crate) paths: TranscriptPaths,
    pub(crate) frame: LineFrame,
    pub(crate) durability: Durability,
    pub(crate) meta: Option<Arc<str>>,
    /// Spares the first turn to read the settings again.
    pub(crate) first_look: Option<FirstLook>,
}

/// What a session's actor holds.
pub(crate) struct SessionState {
    /// Dropped before the replies of runs are: subscribers learn first that there are no more events.
    pub(super) _end_of_events: EndOfEvents,
    pub(super) machine: Machine,
    pub(super) session_context: Arc<SessionContext>,
    pub(super) archive: ActorRef<ArchiveMsg>,
    pub(super) layout: Layout,
    pub(super) open: OpenPlan,
    pub(super) writer: Option<WriterHandle>,
    /// Goes with every write.
    pub(super) recorded: ReplyTo,
    pub(super) readiness: Readiness,
    /// Reads the earlier conversation.
    pub(super) loader: Option<ActorId>,
    /// Reads the settings before the first run.
    pub(super) settings_reader: Option<ActorId>,
    /// Waits for MCP servers that were not ready when the session was opened.
    pub(super) server_waiter: Option<ActorId>,
    /// Who waits for the end of a run, and the place of its prompt in the queue.
    pub(super) prompts: BTreeMap<PromptId, (RunReply, Slot)>,
    pub(super) last_prompt: PromptId,
    /// The prompt that is a message of the session above, which is to know when it is safe.
    pub(super) begins: Option<(PromptId, MessageReply)>,
    /// Messages of the session above that are not answered.
    pub(super) messages: BTreeMap<MessageNumber, MessageReply>,
    pub(super) last_message: MessageNumber,
    pub(super) turn: Option<TurnHandles>,
    pub(super) timer: Option<RunTimer>,
    /// Boxed, because most sessions have none.
    pub(super) watcher: Option<Box<FileWatcher>>,
    pub(super) fingerprints: Option<Fingerprints>,
    pub(super) chosen: ChosenSettings,
    pub(super) hooks: Option<Mailbox<Box<HookRequest>, HookMsg>>,
    pub(super) children: Children,
    pub(super) woken: WokenRuns,
    pub(super) processes: Processes,
    /// Who waits for the session to be closed.
    pub(super) closing: Vec<oneshot::Sender<()>>,
    /// Whether the hooks at the end were run, or are running.
    pub(super) has_ended_hooks: bool,
    pub(super) _registration: Registration,
}

/// What waits for children to start; nothing, most of the time.
pub(super) type Starting<'a> = Result<Option<BoxFuture<'a, HandlerResult>>, ActorProcessingErr>;
