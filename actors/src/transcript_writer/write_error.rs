//! Why lines are not recorded. Alone, since it is what everybody else knows of a disk that fails.

use std::{io, path::PathBuf, sync::Arc};

/// Why lines are not recorded.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The write failed.
    #[error("the transcript cannot be written")]
    Write(#[source] Arc<io::Error>),
    /// Only a part was written; mostly a full disk.
    #[error("only {written} of {length} bytes were written")]
    Short {
        /// Bytes that were.
        written: usize,
        /// Bytes that should have been.
        length: usize,
    },
    /// A text that the lines name cannot be kept.
    #[error("a text beside the transcript cannot be written")]
    Stored(#[source] Arc<io::Error>),
    /// After an earlier failure the end of the file cannot be read.
    #[error("the end of the transcript cannot be read")]
    Read(#[source] Arc<io::Error>),
    /// It is written and may not be on disk.
    #[error("the transcript cannot be forced to disk")]
    Sync(#[source] Arc<io::Error>),
    /// Another file stands in its place, or none. Nothing is written any more: it could not be found.
    #[error("the transcript was replaced or removed while it was written to; {}", kept_in(kept.as_ref()))]
    Replaced {
        /// A copy of all that was written; `None` when none could be made.
        kept: Option<PathBuf>,
    },
    /// The transcript was closed.
    #[error("the transcript is closed")]
    Closed,
}

impl WriteError {
    pub(super) fn write(error: io::Error) -> Self {
        Self::Write(Arc::new(error))
    }

    pub(super) fn stored(error: io::Error) -> Self {
        Self::Stored(Arc::new(error))
    }

    pub(super) fn read(error: io::Error) -> Self {
        Self::Read(Arc::new(error))
    }
}

fn kept_in(kept: Option<&PathBuf>) -> String {
    kept.map_or_else(|| "what it held is lost".into(), |it| format!("see {}", it.display()))
}
