//! A store whose accesses fail as a test plans it: a full disk, a write that is cut, a crash in between.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use ennead_tools::locked::Locked as _;

use super::{Holder, Lease, StoreError, SyncWork, TranscriptLog, TranscriptStore};

/// Passes all accesses on to another store, except those that a test has fail. For tests of what a program
/// does when its disk is full, and of a store of its own under an [`Ennead`](crate::Ennead).
///
/// Accesses are numbered by kind from 0, from when the store was made. Clones share plan and record.
///
/// ```
/// use std::{io::ErrorKind, sync::Arc};
/// use ennead::{
///     Ennead, Endpoint, Options, SessionOptions,
///     data::StoreAccess,
///     testing::{FaultyStore, Playbook},
///     transcript::FileStore,
/// };
///
/// # let workspace = tempfile::tempdir()?;
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let store = FaultyStore::new(Arc::new(FileStore::default()));
/// store.fail(StoreAccess::Append, 1, ErrorKind::StorageFull);
/// let playbook = Playbook::parse("[[rule]]\nname = \"hello\"\nreply = [{ text = \"hello\" }]", "hello.toml")?;
/// let ennead = Ennead::start(Options::simulated(playbook).transcript_store(Arc::new(store.clone()))).await?;
/// let session = ennead.open(SessionOptions::new(workspace.path(), Endpoint::simulated())).await?;
/// assert!(session.prompt("Hello?").await.is_err(), "what cannot be recorded is not answered");
/// assert!(session.prompt("Hello?").await.is_ok(), "the disk has space again");
/// ennead.shutdown().await;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct FaultyStore {
    store: Arc<dyn TranscriptStore>,
    faults: Arc<Mutex<FaultPlan>>,
}

/// An access to a store, or to a transcript that is open in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum StoreAccess {
    /// A transcript is opened: [`TranscriptStore::open`].
    Open,
    /// Bytes are read: [`TranscriptStore::read`], [`TranscriptStore::read_range`] and [`TranscriptLog::read`].
    Read,
    /// A text is replaced: [`TranscriptStore::write`].
    Write,
    /// A directory is listed: [`TranscriptStore::list`].
    List,
    /// A lock is taken: [`TranscriptStore::lock`].
    Lock,
    /// Lines are appended: [`TranscriptLog::append`].
    Append,
    /// A text that a line will name is kept: [`TranscriptLog::attach`].
    Attach,
    /// The work that [`TranscriptLog::sync`] returned is done.
    Sync,
    /// The name of the open transcript is looked at: [`TranscriptLog::ensure_in_place`].
    Look,
}

#[derive(Debug, Default)]
struct FaultPlan {
    /// Those that were begun, by kind.
    begun: BTreeMap<StoreAccess, usize>,
    planned: BTreeMap<(StoreAccess, usize), PlannedFault>,
    /// Those that are over, the oldest first.
    over: Vec<StoreAccess>,
}

/// What an access does instead of what it is asked for.
#[derive(Clone, Copy, Debug)]
enum PlannedFault {
    /// Of an append the first bytes are kept, of anything else nothing is done.
    Fail(usize, io::ErrorKind),
    /// The first bytes of an append are kept.
    Crash(usize),
}

impl FaultyStore {
    /// Passes everything on to a store.
    pub fn new(store: Arc<dyn TranscriptStore>) -> Self {
        Self { store, faults: Arc::default() }
    }

    /// Has an access fail; nothing of it is done.
    pub fn fail(&self, access: StoreAccess, nth: usize, error: io::ErrorKind) {
        self.plan(access, nth, PlannedFault::Fail(0, error));
    }

    /// Has an append fail after some of its bytes, all of them at most, as one does on a disk that becomes full.
    pub fn cut_append(&self, nth: usize, n_bytes: usize, error: io::ErrorKind) {
        self.plan(StoreAccess::Append, nth, PlannedFault::Fail(n_bytes, error));
    }

    /// Has an append panic after some of its bytes, all of them at most: the writer of the transcript
    /// ends, and another takes its place.
    pub fn crash_append(&self, nth: usize, n_bytes: usize) {
        self.plan(StoreAccess::Append, nth, PlannedFault::Crash(n_bytes));
    }

    /// Returns how many accesses of a kind were begun: the number of the next one.
    pub fn n_begun(&self, access: StoreAccess) -> usize {
        self.faults.locked().begun.get(&access).copied().unwrap_or(0)
    }

    /// Returns the accesses that are over, the oldest first, those that failed included.
    pub fn accesses(&self) -> Vec<StoreAccess> {
        self.faults.locked().over.clone()
    }

    fn plan(&self, access: StoreAccess, nth: usize, fault: PlannedFault) {
        self.faults.locked().planned.insert((access, nth), fault);
    }

    /// Counts an access and returns what was planned for it.
    fn begin(&self, access: StoreAccess) -> Option<PlannedFault> {
        let mut faults = self.faults.locked();
        let n_begun = faults.begun.entry(access).or_default();
        let nth = *n_begun;
        *n_begun += 1;
        faults.planned.remove(&(access, nth))
    }

    fn access<T>(
        &self,
        access: StoreAccess,
        work: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let result = match self.begin(access) {
            Some(PlannedFault::Fail(_, error)) => Err(StoreError::Failed(error.into())),
            Some(PlannedFault::Crash(_)) | None => work(),
        };
        self.faults.locked().over.push(access);
        result
    }
}

impl TranscriptStore for FaultyStore {
    fn open(&self, name: &Path) -> Result<Box<dyn TranscriptLog>, StoreError> {
        let log = self.access(StoreAccess::Open, || self.store.open(name))?;
        Ok(Box::new(FaultyLog { log, store: self.clone() }))
    }

    fn read(&self, name: &Path) -> Result<Vec<u8>, StoreError> {
        self.access(StoreAccess::Read, || self.store.read(name))
    }

    fn read_range(&self, name: &Path, offset: u64, max: u64) -> Result<Vec<u8>, StoreError> {
        self.access(StoreAccess::Read, || self.store.read_range(name, offset, max))
    }

    fn write(&self, name: &Path, bytes: &[u8]) -> Result<(), StoreError> {
        self.access(StoreAccess::Write, || self.store.write(name, bytes))
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>, StoreError> {
        self.access(StoreAccess::List, || self.store.list(directory))
    }

    fn lock(&self, name: &Path, holder: &Holder) -> Result<Lease, StoreError> {
        self.access(StoreAccess::Lock, || self.store.lock(name, holder))
    }
}

/// An open transcript of a [`FaultyStore`].
#[derive(Debug)]
struct FaultyLog {
    log: Box<dyn TranscriptLog>,
    store: FaultyStore,
}

impl TranscriptLog for FaultyLog {
    fn n_bytes(&mut self) -> Result<u64, StoreError> {
        self.log.n_bytes()
    }

    fn read(&mut self, offset: u64, max: u64) -> Result<Vec<u8>, StoreError> {
        self.store.access(StoreAccess::Read, || self.log.read(offset, max))
    }

    #[expect(clippy::panic, reason = "the crash that a test planned")]
    fn append(&mut self, bytes: &[u8]) -> Result<usize, StoreError> {
        let fault = self.store.begin(StoreAccess::Append);
        let n_kept = match fault {
            Some(PlannedFault::Fail(n_bytes, _) | PlannedFault::Crash(n_bytes)) => n_bytes,
            None => bytes.len(),
        };
        let kept = &bytes[..n_kept.min(bytes.len())];
        let appended = if kept.is_empty() { Ok(0) } else { self.log.append(kept) };
        self.store.faults.locked().over.push(StoreAccess::Append);
        match fault {
            Some(PlannedFault::Fail(_, error)) => Err(StoreError::Failed(error.into())),
            Some(PlannedFault::Crash(_)) => panic!("the writer crashes as planned"),
            None => appended,
        }
    }

    fn attach(&mut self, name: &Path, text: &[u8]) -> Result<(), StoreError> {
        self.store.access(StoreAccess::Attach, || self.log.attach(name, text))
    }

    fn sync(&mut self) -> SyncWork {
        let (sync, store) = (self.log.sync(), self.store.clone());
        Box::new(move || store.access(StoreAccess::Sync, sync))
    }

    fn ensure_in_place(&mut self, n_bytes: u64) -> Result<(), StoreError> {
        self.store.access(StoreAccess::Look, || self.log.ensure_in_place(n_bytes))
    }

    fn is_in_place(&self, n_bytes: u64) -> bool {
        self.log.is_in_place(n_bytes)
    }
}
