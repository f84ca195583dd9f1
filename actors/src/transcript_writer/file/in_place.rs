//! Whether an open file is still the one of its name, and what becomes of it if not.
//!
//! Appending goes on without an error when the name is given to another file or taken away; what is
//! written then is gone with the last handle. No lock prevents that, so somebody has to look.

use std::{
    fs::{self, File, Metadata},
    io::{self, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{TranscriptFile, WriteError};
use crate::archive::files;

impl TranscriptFile {
    /// Makes sure that what was written is the file of its name, where the one that reads it looks.
    ///
    /// # Errors
    ///
    /// [`WriteError::Replaced`], from then on.
    pub(crate) fn stay(&mut self) -> Result<(), WriteError> {
        if let Some(replaced) = &self.replaced {
            return Err(replaced.clone());
        }
        if matches!(self.standing(), Standing::Kept | Standing::Moved) {
            return Ok(());
        }
        match self.read_from(0).and_then(|bytes| keep(&self.place.file, &bytes)) {
            // What was taken away is there again: `git stash -u` does that to all that is not
            // tracked.
            Ok((path, file)) if path == self.place.file => {
                tracing::warn!(path = %path.display(), "the transcript was gone; it is there again");
                self.file = Arc::new(file);
                Ok(())
            }
            kept => {
                let kept = kept.ok().map(|(path, _)| path);
                Err(self.replaced.insert(WriteError::Replaced { kept }).clone())
            }
        }
    }

    /// Whether it is still the file of its name.
    pub(crate) fn is_in_place(&self) -> bool {
        self.standing() == Standing::Kept
    }

    fn standing(&self) -> Standing {
        standing(&self.file, &self.place.file, self.end.offset)
    }
}

/// What has become of the name of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It is the file's, or nobody may look.
    Kept,
    /// The file bears another name now; nothing is lost.
    Moved,
    /// The file bears no name any more, and nothing is in its place.
    Removed,
    /// Another file is there, or the file was cut.
    Replaced,
}

/// Looks what has become of the name of a file that has this many bytes at least.
fn standing(file: &File, path: &Path, length: u64) -> Standing {
    let id = |it: &Metadata| (it.dev(), it.ino());
    match (fs::metadata(path), file.metadata()) {
        (_, Err(_)) => Standing::Kept,
        (_, Ok(here)) if here.len() < length => Standing::Replaced,
        (Ok(there), Ok(here)) if id(&there) == id(&here) => Standing::Kept,
        (Ok(_), Ok(_)) => Standing::Replaced,
        (Err(error), Ok(_)) if error.kind() != io::ErrorKind::NotFound => Standing::Kept,
        (Err(_), Ok(here)) if here.nlink() == 0 => Standing::Removed,
        (Err(_), Ok(_)) => Standing::Moved,
    }
}

/// Writes what the file of this name held to a name that is free: its own if it can be, or
/// `<name>.kept`, where the one that reads it finds what lies next to it. Gives the copy, open for
/// appending.
fn keep(path: &Path, bytes: &[u8]) -> io::Result<(PathBuf, File)> {
    let copies = (0_u32..100).map(|n| match n {
        0 => path.to_owned(),
        1 => path.with_extension("kept"),
        n => path.with_extension(format!("kept{n}")),
    });
    for copy in copies {
        let open =
            |copy: &Path| files::private().read(true).append(true).create_new(true).open(copy);
        match files::in_directory(&copy, open) {
            Ok(mut file) => {
                file.write_all(bytes)?;
                file.sync_all()?;
                return Ok((copy, file));
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}
