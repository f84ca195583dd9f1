//! Whether an open file is still the one of its name, and what becomes of it if not.
//!
//! Appending goes on without an error when the name is given to another file or taken away; what is
//! written then is gone with the last handle. No lock prevents that, so somebody has to look.

use std::{
    fs::{self, File, Metadata},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::StoreError;
use crate::groundwork::files;

/// Makes sure that an open file of this many bytes at least is the file of its name, where those who
/// read it look. Returns the file in its place, if another one had to be made.
///
/// # Errors
///
/// [`StoreError::Replaced`], with a copy of what was written.
pub(super) fn restored(file: &File, path: &Path, n_bytes: u64) -> Result<Option<File>, StoreError> {
    if matches!(standing(file, path, n_bytes), Standing::Kept | Standing::Moved) {
        return Ok(None);
    }
    match whole(file).and_then(|bytes| keep(path, &bytes)) {
        // What was taken away is there again: `git stash -u` does that to all that is not
        // tracked.
        Ok((copy, file)) if copy == path => {
            tracing::warn!(path = %path.display(), "the transcript was gone; it is there again");
            Ok(Some(file))
        }
        kept => Err(StoreError::Replaced { kept: kept.ok().map(|(copy, _)| copy) }),
    }
}

/// Returns whether an open file is still the file of its name.
pub(super) fn is_in_place(file: &File, path: &Path, n_bytes: u64) -> bool {
    standing(file, path, n_bytes) == Standing::Kept
}

fn whole(mut file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What has become of the name of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// The permissions are those of the file, or deny access.
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
