//! Writes one transcript. Child of the archive, so that it outlives the session.
//!
//! All lines of one message are one write, done here and now: a write goes to the page cache and
//! takes about a microsecond. A sync takes milliseconds and is the flusher's. Answers keep the order
//! of the messages, so what was acknowledged is always a prefix of the file.

mod file;
mod write_error;

use std::{collections::VecDeque, io, path::Path, sync::Arc, time::Duration};

use ennead_runtime::{
    ids::SessionId,
    ports::Clock,
    session::WriteTicket,
    step1_settings_resolution::Durability,
    transcript::{
        entry::{Line, LineFrame, RecordKind, StoredText},
        seal::Head,
    },
};
use ennead_tools::locked::Locked as _;
use ractor::{Actor, ActorProcessingErr, ActorRef};

use file::TranscriptFile;
pub use write_error::WriteError;

use crate::{
    groundwork::directory::{ActorKind, Directory, Registration},
    ports::{
        errors::OpenError,
        transcript_store::{Holder, Lease, StoreError, TranscriptStore, layout::TranscriptPaths},
    },
    storage::{
        archive::{
            LockSlot, OpenOutcome, OpenReply, WriterHandle,
            flusher::{Flusher, SyncRequest},
            is_lost,
        },
        checkpoint::{Acknowledged, Checkpoint},
        redaction::Redaction,
    },
};

/// Lines to be appended, in order.
///
/// After [`OpenOutcome::Restarted`] the one that waits for answers sends everything unanswered once
/// more, in the same order. Lines that had reached the file are recognised by their content and not
/// written again.
#[expect(missing_debug_implementations, reason = "holds a function")]
pub struct Append {
    /// The lines, in the order in which they are written.
    pub lines: Arc<Vec<Line>>,
    /// Texts that they name; kept next to the transcript before the lines are written.
    pub stored: Vec<StoredText>,
    /// What the session is known by from now on; follows the lines.
    pub title: Option<Arc<str>>,
    /// Under [`Durability::Turn`]: answer when it is on disk.
    pub sync: bool,
    /// Comes back with the answer.
    pub ticket: WriteTicket,
    /// Receives the result of the append.
    pub reply: ReplyTo,
}

/// Receives that lines were recorded. Called on the writer's thread: it sends a message and returns.
pub(crate) type ReplyTo = Arc<dyn Fn(Recorded) + Send + Sync>;

/// The answer to an [`Append`].
#[derive(Debug)]
pub struct Recorded {
    /// Ticket of the append that is answered.
    pub ticket: WriteTicket,
    /// The place of its last line. After an error it is not known how much of it is on the file;
    /// sent again, the rest is written.
    pub result: Result<Head, WriteError>,
}

/// What a writer receives.
pub(crate) enum WriterMsg {
    /// Open the file. Sent by the writer to itself.
    Start,
    /// Appends lines to the transcript.
    Append(Append),
    /// What was written up to there is on disk, or not. Sent by the flusher.
    Synced {
        /// Bytes of the file that were synced.
        upto: u64,
        /// The result of the sync.
        result: Result<(), StoreError>,
    },
    /// Answer what is open, leave a checkpoint, end.
    Close,
}

/// What a writer is made of.
pub(crate) struct WriterSetup {
    pub(crate) paths: TranscriptPaths,
    pub(crate) frame: LineFrame,
    pub(crate) durability: Durability,
    /// `None` for sidechains, which are covered by the lock of their top session.
    pub(crate) lock: Option<LockSlot>,
    /// JSON text of the file next to a sidechain.
    pub(crate) meta: Option<Arc<str>>,
    pub(crate) redaction: Redaction,
    pub(crate) store: Arc<dyn TranscriptStore>,
    pub(crate) flusher: Flusher,
    pub(crate) directory: Directory,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) acknowledged: Acknowledged,
    pub(crate) restarted: bool,
    pub(crate) reply: OpenReply,
}

/// How often a lock that is held is tried for again, and the pause before each: 200 ms together.
const LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Time in which the name of a file is not looked at twice while a run goes on. A user who takes a transcript
/// away is faster, and a run of many short rounds would look at nothing else.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The reason with which a writer ends that could not open its file and has reported that.
pub(crate) const NOT_OPENED: &str = "not opened";

/// The actor that writes one transcript.
#[derive(Debug)]
pub(crate) struct TranscriptWriter;

pub(crate) struct TranscriptWriterState {
    setup: WriterSetup,
    file: Option<TranscriptFile>,
    _registration: Registration,
    /// Appends that are not answered, oldest first.
    waiting: VecDeque<PendingWrite>,
    syncing: bool,
    synced: u64,
    closing: bool,
    /// When it was last looked whether the file still has its name.
    looked: Option<Duration>,
    /// The lines that could not be written, or not be forced to disk. Others wait until these come
    /// again.
    failed: Option<(Arc<Vec<Line>>, WriteError)>,
}

struct PendingWrite {
    ticket: WriteTicket,
    lines: Arc<Vec<Line>>,
    reply: ReplyTo,
    needs_sync: bool,
    result: Result<Checkpoint, WriteError>,
}

impl Actor for TranscriptWriter {
    type Msg = WriterMsg;
    type State = TranscriptWriterState;
    type Arguments = WriterSetup;

    async fn pre_start(
        &self,
        myself: ActorRef<WriterMsg>,
        setup: WriterSetup,
    ) -> Result<TranscriptWriterState, ActorProcessingErr> {
        myself.cast(WriterMsg::Start)?;
        let LineFrame { session, agent, .. } = &setup.frame;
        let session = match agent {
            Some(agent) => SessionId::of_agent(session, agent),
            None => session.clone(),
        };
        let cell = myself.get_cell();
        let registration = setup.directory.enter(ActorKind::TranscriptWriter, Some(&session), cell);
        Ok(TranscriptWriterState {
            setup,
            file: None,
            waiting: VecDeque::new(),
            syncing: false,
            synced: 0,
            closing: false,
            looked: None,
            failed: None,
            _registration: registration,
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<WriterMsg>,
        message: WriterMsg,
        state: &mut TranscriptWriterState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            WriterMsg::Start => Box::pin(start(&myself, state)).await,
            WriterMsg::Append(append) => write(append, state),
            WriterMsg::Synced { upto, result } => synced(upto, result, state),
            WriterMsg::Close => state.closing = true,
        }
        answer(state);
        sync(&myself, state);
        if state.waiting.is_empty() && state.closing && !wants_sync_to_close(state) {
            close(&myself, state);
        }
        Ok(())
    }
}

async fn start(myself: &ActorRef<WriterMsg>, state: &mut TranscriptWriterState) {
    match open(&state.setup).await {
        Ok((file, epoch)) => {
            let handle = WriterHandle::new(myself.clone());
            let (head, is_new) = (file.end().head, file.end().offset == 0);
            state.file = Some(file);
            (state.setup.reply)(if state.setup.restarted {
                OpenOutcome::Restarted { handle }
            } else {
                OpenOutcome::Ready { handle, head, is_new, epoch }
            });
        }
        Err(error) => {
            (state.setup.reply)(OpenOutcome::Failed(error));
            myself.stop(Some(NOT_OPENED.into()));
        }
    }
}

/// Takes the lock of the session. One of a process that is just being killed is held until the system
/// has cleared that away, so it is tried for again, for a while.
async fn lock(setup: &WriterSetup) -> Result<Lease, OpenError> {
    let path = setup.paths.lock();
    let mut n_tries = 0;
    loop {
        let holder = Holder::this_process(setup.clock.now());
        match setup.store.lock(&path, &holder) {
            Ok(lease) => return Ok(lease),
            Err(StoreError::Locked { .. }) if n_tries < LOCK_TRIES => n_tries += 1,
            Err(StoreError::Locked { holder }) => return Err(OpenError::Locked { holder }),
            Err(error) => return Err(OpenError::LockFile(error.into())),
        }
        tokio::time::sleep(LOCK_PAUSE).await;
    }
}

/// An error with the path that it is about.
fn at(path: &Path) -> impl FnOnce(StoreError) -> OpenError {
    let path = path.display().to_string();
    move |error| {
        let error = io::Error::from(error);
        OpenError::File(io::Error::new(error.kind(), format!("{path}: {error}")))
    }
}

async fn open(setup: &WriterSetup) -> Result<(TranscriptFile, u64), OpenError> {
    let mut epoch = 0;
    if let Some(slot) = &setup.lock {
        let is_taken = slot.locked().is_some();
        if !is_taken {
            let lock = lock(setup).await?;
            slot.locked().replace(lock);
        }
        epoch = slot.locked().as_ref().map_or(0, Lease::epoch);
    }
    let file = TranscriptFile::open(
        setup.paths.clone(),
        setup.frame.clone(),
        setup.redaction.clone(),
        setup.store.clone(),
        setup.acknowledged.clone(),
    )
    .map_err(at(&setup.paths.file))?;
    if let Some(meta) = &setup.meta {
        let path = setup.paths.meta();
        let meta = setup.redaction.redactor().json(meta);
        setup.store.write(&path, meta.as_bytes()).map_err(at(&path))?;
    }
    Ok((file, epoch))
}

fn write(append: Append, state: &mut TranscriptWriterState) {
    let Append { lines, stored, title, sync, ticket, reply } = append;
    let needs_sync = match state.setup.durability {
        Durability::Process => false,
        Durability::Turn => sync,
        Durability::Entry => true,
    };
    let now = state.setup.clock.elapsed();
    let is_due = state.looked.is_none_or(|it| LOOK_EVERY <= now.saturating_sub(it));
    // Not at every write: what is to be safe by now is to be found by now.
    let looks = sync && (is_due || lines.iter().any(bounds_run));
    if looks && state.setup.lock.as_ref().is_some_and(is_lost) {
        state.file.iter_mut().for_each(TranscriptFile::give_up);
    }
    let result = match (&mut state.file, &state.failed) {
        // What follows lost lines would be in their place: they come first.
        (Some(_), Some((failed, error))) if **failed != *lines => Err(error.clone()),
        (Some(file), _) if !state.closing => {
            let written = file.append(&lines, &stored, title.as_deref());
            if looks {
                state.looked = Some(now);
                written.and_then(|end| file.ensure_in_place().map(|()| end))
            } else {
                written
            }
        }
        _ => Err(WriteError::Closed),
    };
    match &result {
        Ok(_) => state.failed = None,
        Err(error) if state.failed.is_none() => {
            state.failed = Some((Arc::clone(&lines), error.clone()));
        }
        Err(_) => {}
    }
    state.waiting.push_back(PendingWrite { ticket, lines, reply, needs_sync, result });
}

/// Whether a run begins or ends with this line.
fn bounds_run(line: &Line) -> bool {
    let Line::Harness(record) = line else { return false };
    matches!(record.what, RecordKind::RunStart { .. } | RecordKind::RunEnd { .. })
}

fn synced(upto: u64, result: Result<(), StoreError>, state: &mut TranscriptWriterState) {
    state.syncing = false;
    match result {
        Ok(()) => state.synced = upto,
        Err(error) => {
            let error = WriteError::sync(&state.setup.paths.file, error.into());
            if let Some(file) = &mut state.file {
                file.mark_unverified();
            }
            let is_lost = |it: &PendingWrite| {
                it.needs_sync && it.result.as_ref().is_ok_and(|end| end.offset <= upto)
            };
            let Some(first) = state.waiting.iter().position(is_lost) else { return };
            // Whatever follows comes again after it, so none of it may count as recorded.
            state.failed = Some((Arc::clone(&state.waiting[first].lines), error.clone()));
            for waiting in state.waiting.iter_mut().skip(first).filter(|it| it.result.is_ok()) {
                waiting.result = Err(error.clone());
            }
        }
    }
}

/// Answers from the front what needs to wait no longer.
fn answer(state: &mut TranscriptWriterState) {
    while let Some(first) = state.waiting.front() {
        if first.needs_sync && first.result.as_ref().is_ok_and(|end| state.synced < end.offset) {
            return;
        }
        let Some(PendingWrite { ticket, reply, result, .. }) = state.waiting.pop_front() else {
            return;
        };
        if let (Ok(end), Some(file)) = (&result, &state.file) {
            file.acknowledge(end.clone());
        }
        reply(Recorded { ticket, result: result.map(|end| end.head) });
    }
}

fn sync(myself: &ActorRef<WriterMsg>, state: &mut TranscriptWriterState) {
    let needed = state.waiting.iter().any(|it| it.needs_sync && it.result.is_ok())
        || wants_sync_to_close(state);
    let Some(file) = state.file.as_mut().filter(|_| needed && !state.syncing) else { return };
    state.syncing = true;
    let upto = file.end().offset;
    let writer = myself.clone();
    state.setup.flusher.sync(SyncRequest {
        work: file.sync(),
        done: Box::new(move |result| {
            // A writer that has ended waits for nothing.
            writer.cast(WriterMsg::Synced { upto, result }).ok();
        }),
    });
}

/// Whether the end of the file is still to be forced to disk, so that a checkpoint can speak of it.
/// After a failure there is none.
fn wants_sync_to_close(state: &TranscriptWriterState) -> bool {
    let is_on_disk = |it: &TranscriptFile| it.end().offset <= state.synced;
    state.closing && state.file.as_ref().is_some_and(|it| it.needs_checkpoint() && !is_on_disk(it))
}

fn close(myself: &ActorRef<WriterMsg>, state: &mut TranscriptWriterState) {
    if let Some(mut file) = state.file.take() {
        file.complete_vault();
        if !file.is_in_place() {
            // No answer is waited for any more, and a user who removed the file meanwhile wants it gone.
            tracing::warn!("a transcript was closed that is no longer where it was");
        } else if file.needs_checkpoint()
            && let Err(error) = file.leave_checkpoint()
        {
            tracing::debug!(%error, "no checkpoint left; the next writer reads the transcript");
        }
    }
    if let Some(slot) = &state.setup.lock {
        slot.locked().take();
    }
    myself.stop(None);
}
