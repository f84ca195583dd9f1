//! Whether an open file is still the one of its name, and what becomes of it if not.
//!
//! Appending goes on without an error when the name is given to another file or taken away; what is
//! written then is gone with the last handle. No lock prevents that, so somebody has to look.

use std::{
    fs::{self, File, Metadata},
    io::{self, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::archive::files;

/// Whether this file is the one of this name. So it is, too, when nobody may look.
pub(super) fn is_in_place(file: &File, path: &Path) -> bool {
    let id = |it: Metadata| (it.dev(), it.ino());
    match (fs::metadata(path), file.metadata()) {
        (Ok(there), Ok(here)) => id(there) == id(here),
        (Err(error), _) => error.kind() != io::ErrorKind::NotFound,
        (_, Err(_)) => true,
    }
}

/// Writes what the file of this name held to a name that is free: its own if it can be, or
/// `<name>.kept`, where whoever reads it finds what lies beside it.
pub(super) fn keep(path: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    let copies = (0_u32..100).map(|n| match n {
        0 => path.to_owned(),
        1 => path.with_extension("kept"),
        n => path.with_extension(format!("kept{n}")),
    });
    for copy in copies {
        let open = |copy: &Path| files::private().write(true).create_new(true).open(copy);
        match files::in_directory(&copy, open) {
            Ok(mut file) => {
                file.write_all(bytes)?;
                file.sync_all()?;
                return Ok(copy);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}
