//! Why lines are not recorded: all that others know of a disk that fails.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Why lines are not recorded.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The write failed, perhaps after a part of the bytes.
    #[error("the transcript {} cannot be written: {}", file.display(), in_words(cause))]
    Write {
        /// Path of the transcript.
        file: PathBuf,
        /// The error of the operating system.
        #[source]
        cause: Arc<io::Error>,
    },
    /// Only a part was written, and the system does not say why.
    #[error("only {written} of {length} bytes were written to the transcript {}", file.display())]
    Short {
        /// Path of the transcript.
        file: PathBuf,
        /// Bytes that were written before.
        written: usize,
        /// Bytes that should have been.
        length: usize,
    },
    /// A text that the lines name cannot be kept.
    #[error("{}, which the transcript names, cannot be written: {}", file.display(), in_words(cause))]
    Stored {
        /// Where it was to be.
        file: PathBuf,
        /// The error of the operating system.
        #[source]
        cause: Arc<io::Error>,
    },
    /// After an earlier failure the end of the file cannot be read.
    #[error("the end of the transcript {} cannot be read: {}", file.display(), in_words(cause))]
    Read {
        /// Path of the transcript.
        file: PathBuf,
        /// The error of the operating system.
        #[source]
        cause: Arc<io::Error>,
    },
    /// It is written and may not be on disk.
    #[error("the transcript {} cannot be forced to disk: {}", file.display(), in_words(cause))]
    Sync {
        /// Path of the transcript.
        file: PathBuf,
        /// The error of the operating system.
        #[source]
        cause: Arc<io::Error>,
    },
    /// Another file is in its place, or none. Nothing is written any more: it could not be found.
    #[error("the transcript was replaced or removed while it was written to; {}", kept_in(kept.as_ref()))]
    Replaced {
        /// A copy of all that was written; `None` when none could be made.
        kept: Option<PathBuf>,
    },
    /// Another process has taken over the session. Nothing is written any more.
    #[error("another process has taken over the session; nothing more of it is recorded here")]
    LeaseLost,
    /// The transcript was closed.
    #[error("the transcript is closed")]
    Closed,
}

impl WriteError {
    pub(super) fn write(file: &Path, error: io::Error) -> Self {
        Self::Write { file: file.to_owned(), cause: Arc::new(error) }
    }

    pub(super) fn stored(file: &Path, error: io::Error) -> Self {
        Self::Stored { file: file.to_owned(), cause: Arc::new(error) }
    }

    pub(super) fn read(file: &Path, error: io::Error) -> Self {
        Self::Read { file: file.to_owned(), cause: Arc::new(error) }
    }

    pub(super) fn sync(file: &Path, error: io::Error) -> Self {
        Self::Sync { file: file.to_owned(), cause: Arc::new(error) }
    }
}

/// What a person can do something about, in words that are the same on every system.
fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull => "no space left on the disk".into(),
        io::ErrorKind::QuotaExceeded => "the quota of the disk is used up".into(),
        io::ErrorKind::FileTooLarge => "the limit on the size of files is reached".into(),
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only".into(),
        _ => error.to_string(),
    }
}

fn kept_in(kept: Option<&PathBuf>) -> String {
    kept.map_or_else(|| "what it held is lost".into(), |it| format!("see {}", it.display()))
}
