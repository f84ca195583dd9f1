//! Keeps transcripts open. Owns their writers and the flusher, receives from sessions, child of a shard.
//!
//! A session that ends, in order or not, takes its children with it; its writer is not among them,
//! so what was handed over reaches the file. A writer that crashes is started again on the same
//! file. When the archive itself fails the shard ends: what cannot be recorded is not done.

pub(crate) mod flusher;
mod handle;

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use ennead_runtime::{
    ports::Clock,
    step1_settings_resolution::Durability,
    transcript::{entry::LineFrame, seal::Head},
};
use ennead_tools::locked::Locked as _;
use ractor::{
    Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, ActorStatus, SupervisionEvent,
};

use self::flusher::Flusher;
pub use self::handle::WriterHandle;
use crate::{
    groundwork::{
        directory::{ActorKind, Directory, Registration},
        supervision::spawn,
    },
    ports::{
        errors::OpenError,
        transcript_store::{Lease, TranscriptStore, layout::TranscriptPaths},
    },
    storage::{
        checkpoint::Acknowledged,
        redaction::Redaction,
        transcript_writer::{NOT_OPENED, TranscriptWriter, WriterMsg, WriterSetup},
    },
};

/// Restarts of a writer in a row without a line acknowledged in between.
const MAX_RESTARTS: u32 = 3;

/// What the archive receives.
#[expect(missing_debug_implementations, reason = "holds functions")]
pub enum ArchiveMsg {
    /// Opens a transcript and starts its writer.
    Open(OpenTranscript),
    /// Close it once everything sent before is answered.
    Close {
        /// Path of the transcript.
        file: PathBuf,
        /// Called when it is closed; also when it was not open.
        done: Option<CloseReply>,
    },
    /// Close everything and end.
    Shutdown(Option<CloseReply>),
}

/// Called when something is closed.
pub(crate) type CloseReply = Arc<dyn Fn() + Send + Sync>;

/// Receives what became of an [`OpenTranscript`]: once, and once more after each restart.
pub(crate) type OpenReply = Arc<dyn Fn(OpenOutcome) + Send + Sync>;

/// The lock of a session. Held by the archive, so that it outlives a crash of the writer.
pub(crate) type LockSlot = Arc<Mutex<Option<Lease>>>;

/// Whether another process has taken over the session of this lock.
pub(crate) fn is_lost(slot: &LockSlot) -> bool {
    slot.locked().as_ref().is_some_and(Lease::is_lost)
}

/// A transcript to be opened for appending.
#[expect(missing_debug_implementations, reason = "holds a function")]
pub struct OpenTranscript {
    /// Paths of the transcript and of its folder.
    pub paths: TranscriptPaths,
    /// What all its conversation lines have in common. With an agent in it, it is a sidechain and
    /// covered by the lock of its top session.
    pub frame: LineFrame,
    /// When lines are forced to disk.
    pub durability: Durability,
    /// Of a sidechain: JSON text of the file next to it.
    pub meta: Option<Arc<str>>,
    /// Takes secrets out of what is written.
    pub redaction: Redaction,
    /// Whose it is. When this actor ends without closing it, it is closed.
    pub owner: Option<ActorCell>,
    /// Receives what became of it.
    pub reply: OpenReply,
}

/// What became of an [`OpenTranscript`].
#[derive(Debug)]
pub enum OpenOutcome {
    /// Lines can be appended.
    Ready {
        /// Sends lines to the writer.
        handle: WriterHandle,
        /// The end of the chain.
        head: Head,
        /// The file was empty: there is nothing to go on with.
        is_new: bool,
        /// Counts takeovers of the session, from 1; 0 for sidechains.
        epoch: u64,
    },
    /// The writer crashed and another one took over. Everything unanswered must be sent again, in
    /// the same order.
    Restarted {
        /// Takes lines from now on.
        handle: WriterHandle,
    },
    /// It is not open, or no longer.
    Failed(OpenError),
}

/// What the archive needs.
#[derive(Clone, Debug)]
pub struct ArchiveSetup {
    /// For the text of locks.
    pub clock: Arc<dyn Clock>,
    /// The store that holds the transcripts.
    pub store: Arc<dyn TranscriptStore>,
    /// Where the archive and its writers are entered.
    pub directory: Directory,
}

/// The actor that keeps transcripts open.
#[derive(Debug)]
pub struct Archive;

#[expect(missing_debug_implementations, reason = "holds functions")]
pub struct ArchiveState {
    setup: ArchiveSetup,
    flusher: Flusher,
    open: BTreeMap<File, ArchiveEntry>,
    by_writer: BTreeMap<ActorId, File>,
    by_owner: BTreeMap<ActorId, File>,
    shutdown: Option<Option<CloseReply>>,
    _registration: Registration,
}

/// Names an open transcript: the text of its path. Comparing paths part by part takes many times as
/// long, and a file that is written in two ways is found by its lock.
type File = Arc<OsStr>;

struct ArchiveEntry {
    writer: ActorRef<WriterMsg>,
    transcript: OpenTranscript,
    lock: LockSlot,
    acknowledged: Acknowledged,
    /// Restarts since this offset was acknowledged.
    restarts: (u32, u64),
    /// Called when it is closed; `None` until one is wanted.
    closing: Option<Vec<CloseReply>>,
    /// Waits to open it once more when it is closed.
    next: Option<OpenTranscript>,
}

impl ArchiveEntry {
    fn close(&mut self, done: Option<CloseReply>) {
        self.closing.get_or_insert_default().extend(done);
        // One that has ended already is reported by the runtime.
        self.writer.cast(WriterMsg::Close).ok();
    }

    /// Marks the file as closed, and wakes the one that waits for it.
    fn closed(self) -> Option<OpenTranscript> {
        self.closing.into_iter().flatten().for_each(|done| done());
        self.next
    }

    /// Whether its owner has ended without closing it. Word of that may still be on its way.
    fn is_orphan(&self) -> bool {
        self.transcript.owner.as_ref().is_some_and(has_ended)
    }
}

impl Actor for Archive {
    type Msg = ArchiveMsg;
    type State = ArchiveState;
    type Arguments = ArchiveSetup;

    async fn pre_start(
        &self,
        myself: ActorRef<ArchiveMsg>,
        setup: ArchiveSetup,
    ) -> Result<ArchiveState, ActorProcessingErr> {
        let registration = setup.directory.enter(ActorKind::Archive, None, myself.get_cell());
        Ok(ArchiveState {
            setup,
            flusher: Flusher::default(),
            open: BTreeMap::new(),
            by_writer: BTreeMap::new(),
            by_owner: BTreeMap::new(),
            shutdown: None,
            _registration: registration,
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<ArchiveMsg>,
        message: ArchiveMsg,
        state: &mut ArchiveState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            ArchiveMsg::Open(transcript) => Box::pin(open(&myself, transcript, state)).await,
            ArchiveMsg::Close { file, done } => close(&file, done, state),
            ArchiveMsg::Shutdown(done) => {
                for entry in state.open.values_mut() {
                    entry.close(None);
                }
                state.shutdown = Some(done);
                end_if_empty(&myself, state);
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<ArchiveMsg>,
        event: SupervisionEvent,
        state: &mut ArchiveState,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            // A writer that was killed has ended like a crashed one: what was sent to it and not
            // written is gone with its mailbox.
            SupervisionEvent::ActorTerminated(child, _, reason) => {
                let is_killed = reason.as_deref().is_some_and(|it| it != NOT_OPENED);
                Box::pin(on_child_end(&myself, child.get_id(), is_killed, state)).await;
            }
            SupervisionEvent::ActorFailed(child, error) => {
                tracing::warn!(%error, "a transcript writer or its session crashed");
                Box::pin(on_child_end(&myself, child.get_id(), true, state)).await;
            }
            _ => {}
        }
        Ok(())
    }
}

/// A writer, or the owner of a transcript, has ended.
async fn on_child_end(
    myself: &ActorRef<ArchiveMsg>,
    child: ActorId,
    is_crash: bool,
    state: &mut ArchiveState,
) {
    if let Some(file) = state.by_owner.remove(&child)
        && let Some(entry) = state.open.get_mut(&file)
        && entry.transcript.owner.as_ref().is_some_and(|it| it.get_id() == child)
    {
        entry.close(None);
    }
    if let Some(file) = state.by_writer.remove(&child) {
        if is_crash {
            restart(myself, file, state).await;
        } else if let Some(next) = state.open.remove(&file).and_then(ArchiveEntry::closed) {
            open(myself, next, state).await;
        }
    }
    end_if_empty(myself, state);
}

async fn open(myself: &ActorRef<ArchiveMsg>, transcript: OpenTranscript, state: &mut ArchiveState) {
    let file = transcript.paths.file.as_os_str();
    if let Some(entry) = state.open.get_mut(file).filter(|_| state.shutdown.is_none()) {
        if entry.next.is_none() && (entry.closing.is_some() || entry.is_orphan()) {
            entry.next = Some(transcript);
            return entry.close(None);
        }
        return (transcript.reply)(OpenOutcome::Failed(OpenError::AlreadyOpen));
    }
    if state.shutdown.is_some() {
        return (transcript.reply)(OpenOutcome::Failed(OpenError::AlreadyOpen));
    }
    let file = File::from(file);
    if let Some(owner) = &transcript.owner {
        myself.monitor(owner.clone());
        if has_ended(owner) {
            // It ended before it was watched; nothing else would close this.
            return;
        }
        state.by_owner.insert(owner.get_id(), Arc::clone(&file));
    }
    let (lock, acknowledged) = (LockSlot::default(), Acknowledged::default());
    match spawn_writer(myself, &file, &transcript, &lock, &acknowledged, false, state).await {
        Some(writer) => {
            let restarts = (0, 0);
            let (closing, next) = (None, None);
            let entry =
                ArchiveEntry { writer, transcript, lock, acknowledged, restarts, closing, next };
            state.open.insert(file, entry);
        }
        None => (transcript.reply)(OpenOutcome::Failed(OpenError::Crashed)),
    }
}

async fn restart(myself: &ActorRef<ArchiveMsg>, file: File, state: &mut ArchiveState) {
    let Some(mut entry) = state.open.remove(&file) else { return };
    let end = entry.acknowledged.locked().clone();
    // Without it the one before died before it could say that it is ready.
    let restarted = end.is_some();
    let at = end.map_or(0, |it| it.offset);
    entry.restarts = if entry.restarts.1 == at { (entry.restarts.0 + 1, at) } else { (1, at) };
    let writer = if entry.restarts.0 <= MAX_RESTARTS {
        let ArchiveEntry { transcript, lock, acknowledged, .. } = &entry;
        spawn_writer(myself, &file, transcript, lock, acknowledged, restarted, state).await
    } else {
        None
    };
    match writer {
        Some(writer) => {
            entry.writer = writer;
            if entry.closing.is_some() {
                entry.close(None);
            }
            state.open.insert(file, entry);
        }
        None => {
            (entry.transcript.reply)(OpenOutcome::Failed(OpenError::Crashed));
            if let Some(next) = entry.closed() {
                (next.reply)(OpenOutcome::Failed(OpenError::Crashed));
            }
        }
    }
}

async fn spawn_writer(
    myself: &ActorRef<ArchiveMsg>,
    file: &File,
    transcript: &OpenTranscript,
    lock: &LockSlot,
    acknowledged: &Acknowledged,
    restarted: bool,
    state: &mut ArchiveState,
) -> Option<ActorRef<WriterMsg>> {
    let setup = WriterSetup {
        paths: transcript.paths.clone(),
        frame: transcript.frame.clone(),
        durability: transcript.durability,
        lock: transcript.frame.agent.is_none().then(|| lock.clone()),
        meta: transcript.meta.clone(),
        redaction: transcript.redaction.clone(),
        store: state.setup.store.clone(),
        flusher: state.flusher.clone(),
        directory: state.setup.directory.clone(),
        clock: state.setup.clock.clone(),
        acknowledged: acknowledged.clone(),
        restarted,
        reply: transcript.reply.clone(),
    };
    let writer = spawn(TranscriptWriter, setup, myself.get_cell()).await.ok()?;
    state.by_writer.insert(writer.get_id(), Arc::clone(file));
    Some(writer)
}

fn close(file: &Path, done: Option<CloseReply>, state: &mut ArchiveState) {
    match state.open.get_mut(file.as_os_str()) {
        Some(entry) => entry.close(done),
        None => done.into_iter().for_each(|done| done()),
    }
}

fn has_ended(actor: &ActorCell) -> bool {
    ActorStatus::Stopping <= actor.get_status()
}

fn end_if_empty(myself: &ActorRef<ArchiveMsg>, state: &mut ArchiveState) {
    if state.open.is_empty()
        && let Some(done) = state.shutdown.take()
    {
        done.into_iter().for_each(|done| done());
        myself.stop(None);
    }
}
