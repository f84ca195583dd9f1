//! Opens the file that the gate decided about, and no other.
//!
//! Between the decision and the opening, a link may have been exchanged. So a directory is opened
//! and the kernel asked where it really is; files are then opened, made and renamed relative to
//! that handle, without following links.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File, Permissions},
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, flock};

/// Why a checked path could not be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    /// Nothing exists at the path.
    #[error("File does not exist.")]
    Missing,
    /// A directory is there.
    #[error("EISDIR: this is a directory, not a file.")]
    IsDirectory,
    /// A directory was wanted and something else is there.
    #[error("ENOTDIR: this is not a directory.")]
    NotADirectory,
    /// A device, FIFO or socket.
    #[error("This is neither a file nor a directory.")]
    Special,
    /// It is no longer what was checked.
    #[error("The path leads elsewhere than when permission was given (now {found}).")]
    Exchanged {
        /// Where it leads now.
        found: String,
    },
    /// The system says no.
    #[error("Cannot open: {0}.")]
    Io(#[source] io::Error),
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing,
            io::ErrorKind::IsADirectory => Self::IsDirectory,
            io::ErrorKind::NotADirectory => Self::NotADirectory,
            _ => Self::Io(error),
        }
    }
}

impl From<rustix::io::Errno> for OpenError {
    fn from(errno: rustix::io::Errno) -> Self {
        match errno {
            // A link where there was none: no path that was checked ends in one.
            rustix::io::Errno::LOOP => Self::Exchanged { found: "a link".into() },
            errno => io::Error::from(errno).into(),
        }
    }
}

/// Opens a file for reading.
pub(crate) fn open_file(real: &Path) -> Result<File, OpenError> {
    let (parent, name) = split(real)?;
    Directory::open(parent)?.open_file(name)
}

/// Returns the directory and the name of a file.
pub(crate) fn split(real: &Path) -> Result<(&Path, &OsStr), OpenError> {
    match (real.parent(), real.file_name()) {
        (Some(parent), Some(name)) => Ok((parent, name)),
        _ => Err(OpenError::IsDirectory),
    }
}

/// An open directory that is where it was thought to be.
#[derive(Debug)]
pub(crate) struct Directory {
    handle: File,
}

impl Directory {
    /// Opens a directory by its real path.
    pub(crate) fn open(real: &Path) -> Result<Self, OpenError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = File::from(rustix::fs::openat(CWD, real, flags, Mode::empty())?);
        let found = real_path_of(&handle, real)?;
        if found != real {
            return Err(OpenError::Exchanged { found: found.display().to_string() });
        }
        Ok(Self { handle })
    }

    /// Opens a directory and makes what is missing of it.
    pub(crate) fn open_or_make(real: &Path) -> Result<Self, OpenError> {
        let mut missing: Vec<&OsStr> = Vec::new();
        for ancestor in real.ancestors() {
            match Self::open(ancestor) {
                Ok(directory) => {
                    return missing
                        .iter()
                        .rev()
                        .try_fold(directory, |directory, name| directory.make_directory(name));
                }
                Err(OpenError::Missing) => missing.extend(ancestor.file_name()),
                Err(other) => return Err(other),
            }
        }
        Err(OpenError::Missing)
    }

    fn make_directory(&self, name: &OsStr) -> Result<Self, OpenError> {
        match rustix::fs::mkdirat(&self.handle, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = File::from(rustix::fs::openat(&self.handle, name, flags, Mode::empty())?);
        Ok(Self { handle })
    }

    /// Locks the directory against others that ask for the same, until the handle is dropped.
    pub(crate) fn lock(&self, tries: u32, pause: Duration) -> Result<File, OpenError> {
        // A handle of its own: a lock goes with its last handle.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = File::from(rustix::fs::openat(&self.handle, ".", flags, Mode::empty())?);
        let mut n = 0;
        loop {
            match flock(&handle, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(handle),
                Err(rustix::io::Errno::WOULDBLOCK) if n < tries => n += 1,
                Err(errno) => return Err(errno.into()),
            }
            thread::sleep(pause);
        }
    }

    /// Opens a regular file of this directory for reading.
    pub(crate) fn open_file(&self, name: &OsStr) -> Result<File, OpenError> {
        // NONBLOCK: opening a FIFO would wait for its writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(&self.handle, name, flags, Mode::empty())?);
        let kind = file.metadata()?.file_type();
        if kind.is_dir() {
            Err(OpenError::IsDirectory)
        } else if kind.is_file() {
            Ok(file)
        } else {
            Err(OpenError::Special)
        }
    }

    /// Returns whether the file may be written, were it not replaced.
    pub(crate) fn check_writable(&self, name: &OsStr) -> Result<(), OpenError> {
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        rustix::fs::openat(&self.handle, name, flags, Mode::empty())?;
        Ok(())
    }

    /// Writes a new file next to `name` that is to take its place.
    ///
    /// The file is never open to more people than it finally is: it is made with the permissions
    /// of the old one, which the umask can only narrow until all is written.
    pub(crate) fn prepare(
        &self,
        name: &OsStr,
        bytes: &[u8],
        permissions: Option<Permissions>,
    ) -> Result<Prepared<'_>, OpenError> {
        let prepared = self.make_temporary(name, permissions.as_ref())?;
        (&prepared.file).write_all(bytes)?;
        if let Some(permissions) = permissions {
            // After the writing, which takes away the bits that give a program its owner's rights.
            prepared.file.set_permissions(permissions)?;
        }
        // Or a power cut after the rename leaves an empty file.
        prepared.file.sync_data()?;
        Ok(prepared)
    }

    /// Makes the file, still empty, with its final permissions as far as the umask lets it.
    fn make_temporary(
        &self,
        name: &OsStr,
        permissions: Option<&Permissions>,
    ) -> Result<Prepared<'_>, OpenError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(permissions.map_or(0o666, |it| it.mode() & 0o777));
        let mut n = 0_u32;
        let (temporary, handle) = loop {
            let temporary = OsString::from(format!(".ennead-{n}.tmp"));
            match rustix::fs::openat(&self.handle, &temporary, flags, mode) {
                Ok(handle) => break (temporary, handle),
                // Another call is at it, or one was killed at it.
                Err(rustix::io::Errno::EXIST) if n < 10_000 => n += 1,
                Err(errno) => return Err(errno.into()),
            }
        };
        Ok(Prepared {
            directory: self,
            temporary,
            name: name.to_owned(),
            file: File::from(handle),
            renamed: false,
        })
    }
}

/// A written file that is not in its place yet. Removed when dropped.
#[derive(Debug)]
pub(crate) struct Prepared<'a> {
    directory: &'a Directory,
    temporary: OsString,
    name: OsString,
    file: File,
    renamed: bool,
}

impl Prepared<'_> {
    /// Returns the file that was opened.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Puts it in its place, at once for every reader. There is no way back from here.
    pub(crate) fn commit(mut self) -> Result<(), OpenError> {
        let directory = &self.directory.handle;
        rustix::fs::renameat(directory, &self.temporary, directory, &self.name)?;
        self.renamed = true;
        Ok(())
    }
}

impl Drop for Prepared<'_> {
    fn drop(&mut self) {
        if !self.renamed {
            // Nothing more can be done about a file that cannot be removed.
            let _ = rustix::fs::unlinkat(&self.directory.handle, &self.temporary, AtFlags::empty());
        }
    }
}

/// Returns where an open file really is.
pub(crate) fn real_path_of(handle: &File, opened_as: &Path) -> io::Result<PathBuf> {
    use std::os::fd::AsRawFd;
    // Without /proc the path is followed again: that finds links, but not a quick exchange.
    fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd()))
        .or_else(|_| fs::canonicalize(opened_as))
}

#[cfg(test)]
mod tests;
