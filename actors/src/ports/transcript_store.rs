//! Where transcripts are kept: a port, and the file system as its default.
//!
//! A store keeps byte strings under names. It knows nothing of lines, hashes or checkpoints: what is
//! appended, what is passed over and what a torn end means is decided by the writer, so every store
//! gives the same transcript.

mod faulty;
mod files;
pub(crate) mod guard;
mod in_place;
pub(crate) mod layout;
mod lock;

use std::{
    any::Any,
    fmt::{self, Debug},
    io,
    path::{Path, PathBuf},
};

use ennead_runtime::saturating::Saturating as _;

pub use faulty::{FaultyStore, StoreAccess};
pub use files::FileStore;
pub use lock::Holder;

/// Keeps transcripts.
///
/// A name is a path: `<directory>/<session>.jsonl` is a transcript, `<directory>/<session>.lock` is its
/// lock and `<session>.checkpoint` its checkpoint. Below `<directory>/<session>/`, `subagents/` has the
/// transcripts of sub-agents and a `.meta.json` for each, and `stored/` has texts that lines name. With a key in
/// `ennead.redact.vault`, `<session>/vault` and `subagents/agent-<id>.vault` are opened as well; their lines are sealed. The
/// directory is [`SessionOptions::transcripts`](crate::SessionOptions::transcripts); a store without
/// directories takes the path for a key. Long results of tools are files under that directory whatever
/// the store is, since tools read them by their path; where no directory is named, `.transcripts` in the workspace
/// is made for them and kept out of git.
///
/// A transcript that is appended to is never changed otherwise. [`TranscriptStore::open`],
/// [`TranscriptStore::lock`], [`TranscriptStore::write`] and the methods of [`TranscriptLog`] are called on
/// the thread that runs sessions: what takes longer than about a millisecond belongs into
/// [`TranscriptLog::sync`]. [`TranscriptStore::read`] and [`TranscriptStore::list`] may take long.
///
/// ```
/// use std::{path::Path, sync::Arc};
/// use ennead::{Options, transcript::{FileStore, TranscriptStore}};
///
/// let store: Arc<dyn TranscriptStore> = Arc::new(FileStore::default());
/// let directory = tempfile::tempdir()?;
/// store.write(&directory.path().join("a"), b"text")?;
/// assert_eq!(store.read(&directory.path().join("a"))?, b"text");
/// let options = Options::default().transcript_store(store);
/// # Ok::<(), ennead::data::StoreError>(())
/// ```
pub trait TranscriptStore: Debug + Send + Sync {
    /// Opens the transcript of this name for appending; makes an empty one where there is none.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    fn open(&self, name: &Path) -> Result<Box<dyn TranscriptLog>, StoreError>;

    /// Reads all bytes under a name.
    ///
    /// # Errors
    ///
    /// [`StoreError::Missing`] when there are none; [`StoreError::Failed`].
    fn read(&self, name: &Path) -> Result<Vec<u8>, StoreError>;

    /// Reads at most `max` bytes under a name from an offset on, fewer only at the end. A long transcript is read so,
    /// piece by piece; a store that does not say how reads all of it each time.
    ///
    /// # Errors
    ///
    /// Those of [`TranscriptStore::read`].
    fn read_range(&self, name: &Path, offset: u64, max: u64) -> Result<Vec<u8>, StoreError> {
        let mut bytes = self.read(name)?;
        bytes.truncate(usize::saturating(offset.saturating_add(max)));
        Ok(bytes.split_off(bytes.len().min(usize::saturating(offset))))
    }

    /// Writes bytes under a name in place of older ones, all of them or none.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`]; what was there before is then still there.
    fn write(&self, name: &Path, bytes: &[u8]) -> Result<(), StoreError>;

    /// Returns the names directly below a directory, in any order; none where there is no directory.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>, StoreError>;

    /// Takes a lock without waiting. `holder` is the one that takes it; its `epoch` is 0, the store counts
    /// takeovers. A lock whose holder is gone is free.
    ///
    /// # Errors
    ///
    /// [`StoreError::Locked`] when another holds it; [`StoreError::Failed`].
    fn lock(&self, name: &Path, holder: &Holder) -> Result<Lease, StoreError>;
}

/// A transcript that is open for appending.
pub trait TranscriptLog: Debug + Send {
    /// Returns the number of bytes.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    fn n_bytes(&mut self) -> Result<u64, StoreError>;

    /// Returns at most `max` bytes from an offset on, fewer only at the end.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    fn read(&mut self, offset: u64, max: u64) -> Result<Vec<u8>, StoreError>;

    /// Appends bytes and returns how many: fewer than given only where no more could be. From then on
    /// they outlive a crash of the writer, though not yet one of the machine.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`]. The end of the transcript is then read before anything else is appended.
    fn append(&mut self, bytes: &[u8]) -> Result<usize, StoreError>;

    /// Keeps a text that a line appended later will name. One that is there under this name is the same.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    fn attach(&mut self, name: &Path, text: &[u8]) -> Result<(), StoreError>;

    /// Returns what makes everything so far outlive a crash of the machine: texts first, lines last. It is
    /// called on a thread of its own, where it may wait.
    fn sync(&mut self) -> SyncWork;

    /// Makes sure that readers find what was appended, `n_bytes` at least, under its name. Called
    /// whenever lines are to be safe.
    ///
    /// # Errors
    ///
    /// [`StoreError::Replaced`] when something else is under the name; nothing is appended from then on.
    fn ensure_in_place(&mut self, n_bytes: u64) -> Result<(), StoreError> {
        let _unused = n_bytes;
        Ok(())
    }

    /// Returns whether readers find what was appended under its name. Nothing is put right.
    fn is_in_place(&self, n_bytes: u64) -> bool {
        let _unused = n_bytes;
        true
    }
}

/// Makes what was appended outlive a crash of the machine.
pub type SyncWork = Box<dyn FnOnce() -> Result<(), StoreError> + Send>;

/// A lock that is held until this is dropped.
pub struct Lease {
    epoch: u64,
    /// Frees the lock when it is dropped.
    _guard: Box<dyn Any + Send>,
    is_lost: Option<Box<dyn Fn() -> bool + Send>>,
}

impl Lease {
    /// Makes the lease of a lock. `epoch` counts takeovers from 1; `guard` frees the lock when it is dropped.
    pub fn new(epoch: u64, guard: impl Any + Send) -> Self {
        Self { epoch, _guard: Box::new(guard), is_lost: None }
    }

    /// The same of a lock that another one can take although it is held. `is_lost` says whether that has happened;
    /// it is called on the thread that runs sessions.
    #[must_use]
    pub fn watched(self, is_lost: impl Fn() -> bool + Send + 'static) -> Self {
        Self { is_lost: Some(Box::new(is_lost)), ..self }
    }

    /// Returns whether another one has taken the lock. Nothing may be written then.
    pub fn is_lost(&self) -> bool {
        self.is_lost.as_ref().is_some_and(|it| it())
    }

    /// Counts takeovers of the lock, from 1.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }
}

impl Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

/// Why a store did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Nothing is under the name.
    #[error("there is nothing of this name")]
    Missing,
    /// Another one holds the lock.
    #[error("the session is written by {}", .holder.as_ref().map_or("an unknown process".into(), ToString::to_string))]
    Locked {
        /// Who, if that is known.
        holder: Option<Holder>,
    },
    /// Something else is under the name of an open transcript, or nothing.
    #[error("the transcript was replaced or removed while it was written to")]
    Replaced {
        /// Where a copy of all that was appended is; `None` when none could be made.
        kept: Option<PathBuf>,
    },
    /// The medium failed. Another error than one of the system goes into [`io::Error::other`].
    #[error(transparent)]
    Failed(#[from] io::Error),
}

impl From<StoreError> for io::Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Failed(cause) => cause,
            StoreError::Missing => io::Error::new(io::ErrorKind::NotFound, error),
            StoreError::Locked { .. } | StoreError::Replaced { .. } => io::Error::other(error),
        }
    }
}
