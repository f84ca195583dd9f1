//! What is done to a transcript file, as a port, so that a full disk can be tried out.

use std::{
    fmt::Debug,
    fs::{self, File, Metadata},
    io::{self, Write},
    path::Path,
};

/// Writes and syncs the bytes of transcripts.
pub trait FileOps: Send + Sync + Debug {
    /// Writes once to the file and returns the number of bytes written, which may be less than was given.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<usize>;

    /// Returns when the content is on disk.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    fn sync(&self, file: &File) -> io::Result<()>;

    /// Returns the metadata of the file of this name, and those of the open file: two system calls.
    fn look(&self, name: &Path, file: &File) -> (io::Result<Metadata>, io::Result<Metadata>) {
        (fs::metadata(name), file.metadata())
    }
}

/// Writes to the file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealFiles;

impl FileOps for RealFiles {
    fn write(&self, mut file: &File, bytes: &[u8]) -> io::Result<usize> {
        file.write(bytes)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_data()
    }
}
