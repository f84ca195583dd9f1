//! Files and directories that only their owner may enter, made so that they are whole or not there.
//! Transcripts, locks and checkpoints are written by these.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
};

/// Returns options for a file that only its owner may read.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// Makes a directory that only its owner may enter, and those above it.
pub(crate) fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Opens something at `path`; makes its directory and tries again if there was none. Most of the time there is one, and
/// asking first would cost each session a system call.
pub(crate) fn in_directory<T>(path: &Path, open: impl Fn(&Path) -> io::Result<T>) -> io::Result<T> {
    match (open(path), path.parent()) {
        (Err(error), Some(directory)) if error.kind() == io::ErrorKind::NotFound => {
            make_directory(directory)?;
            open(path)
        }
        (opened, _) => opened,
    }
}

/// Writes a file so that it is there whole or not at all.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    let mut file =
        in_directory(&new, |new| private().write(true).create(true).truncate(true).open(new))?;
    file.write_all(bytes)?;
    fs::rename(&new, path)?;
    Ok(file)
}
