//! Reads files whose names or places others may have chosen: a repository, mostly.
//!
//! Such a name may be a link to anything: a secret of the user, a pipe that is never written to, a
//! device that never ends. [`Root`] follows links itself, part by part and from handle to handle, so
//! that none leads out of the directory and none can be exchanged after it was looked at. What is read
//! is a regular file of bounded size, and none that the kernel makes up.

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read},
    os::{fd::AsFd, unix::ffi::OsStringExt, unix::fs::MetadataExt},
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags},
    io::Errno,
};

/// Bytes of a file of settings or servers at most.
pub const MAX_TEXT: u64 = 2 * 1024 * 1024;

/// Links that are followed for one name; the kernel follows as many.
const MAX_LINKS: u32 = 40;

/// Opens a directory for looking into it, which asks for no right to list it.
#[cfg(target_os = "linux")]
const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens a file. Opening a pipe would wait for its writer, were it not for `NONBLOCK`.
const FILE: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// Nothing exists at the path.
    #[error("it does not exist")]
    Missing,
    /// A link leads out of the directory that the file belongs to.
    #[error("it is a link that leads out of {}", root.display())]
    Outside {
        /// The directory that the path leads out of.
        root: PathBuf,
    },
    /// Links lead in a circle, or on and on.
    #[error("it is a link that leads nowhere")]
    TooManyLinks,
    /// A directory, a pipe, a socket or a device.
    #[error("it is not a regular file")]
    NotRegular,
    /// A file of `/proc`, `/sys`, `/dev` or the like.
    #[error("it is a file that the system makes up")]
    MadeUp,
    /// More bytes than allowed.
    #[error("it has more than {max_bytes} bytes")]
    TooLarge {
        /// How many are allowed.
        max_bytes: u64,
    },
    /// It is not UTF-8.
    #[error("it is not UTF-8 text")]
    NotText,
    /// The operating system refuses to read the file.
    #[error("{0}")]
    Io(#[source] io::Error),
}

impl ReadError {
    /// Returns whether nothing is there, so that nothing is lost.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Missing)
    }
}

impl From<Errno> for ReadError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT | Errno::NOTDIR => Self::Missing,
            errno => Self::Io(errno.into()),
        }
    }
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::Missing,
            _ => Self::Io(error),
        }
    }
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Io(error) => error,
            ReadError::Missing => io::ErrorKind::NotFound.into(),
            ReadError::NotText => io::Error::new(io::ErrorKind::InvalidData, error.to_string()),
            other => io::Error::new(io::ErrorKind::InvalidInput, other.to_string()),
        }
    }
}

/// A directory out of which no name leads.
#[derive(Debug)]
pub struct Root {
    handle: File,
    /// The path as it was given.
    given: PathBuf,
    real: PathBuf,
}

/// A regular file that is open for reading.
#[derive(Debug)]
pub struct OpenedFile {
    file: File,
    /// Where the file lies, without links.
    pub real: PathBuf,
    /// Names the file on this machine: device and inode.
    pub id: (u64, u64),
}

impl Root {
    /// Opens a directory. Links on the way to it are followed.
    ///
    /// # Errors
    ///
    /// [`ReadError::Missing`] and those of the file system.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let handle = File::from(rustix::fs::openat(CWD, path, DIRECTORY, Mode::empty())?);
        let real = crate::paths::real_path_of(&handle, path)?;
        Ok(Self { handle, given: path.to_owned(), real })
    }

    /// Returns the directory without links.
    pub fn real(&self) -> &Path {
        &self.real
    }

    /// Returns the name of an absolute path inside this directory, as it is written.
    pub fn name_of<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        path.strip_prefix(&self.given).or_else(|_| path.strip_prefix(&self.real)).ok()
    }

    /// Opens a regular file by its name in this directory. Links are followed as long as they stay
    /// inside.
    ///
    /// # Errors
    ///
    /// [`ReadError`], all but [`ReadError::TooLarge`] and [`ReadError::NotText`].
    pub fn open_file(&self, name: &Path) -> Result<OpenedFile, ReadError> {
        let mut walk = Walk { root: self, above: Vec::new(), rest: VecDeque::new(), links: 0 };
        walk.push(name)?;
        walk.run()
    }

    /// Reads a whole file of this directory.
    ///
    /// # Errors
    ///
    /// Those of [`Root::open_file`], and [`ReadError::TooLarge`].
    pub fn read(&self, name: &Path, max_bytes: u64) -> Result<Vec<u8>, ReadError> {
        self.open_file(name)?.read(max_bytes)
    }

    /// Reads a whole text of this directory, of at most [`MAX_TEXT`] bytes.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn read_text(&self, name: &Path) -> Result<String, ReadError> {
        text(self.read(name, MAX_TEXT)?)
    }
}

impl OpenedFile {
    /// Reads all of it.
    ///
    /// # Errors
    ///
    /// [`ReadError::TooLarge`] and those of the file system.
    pub fn read(self, max_bytes: u64) -> Result<Vec<u8>, ReadError> {
        let mut bytes = Vec::new();
        // One more than allowed: what a file says of its size need not hold.
        self.file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
        if max_bytes < bytes.len() as u64 {
            return Err(ReadError::TooLarge { max_bytes });
        }
        Ok(bytes)
    }

    /// Returns the handle of the open file.
    pub fn into_file(self) -> File {
        self.file
    }

    fn checked(handle: impl Into<File>, real: PathBuf) -> Result<Self, ReadError> {
        let file = handle.into();
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(ReadError::NotRegular);
        }
        let id = (found.dev(), found.ino());
        Ok(Self { file, real, id })
    }
}

/// Opens a regular file by a name that the user chose, wherever it leads.
///
/// # Errors
///
/// [`ReadError`], all but [`ReadError::Outside`].
pub fn open_chosen(path: &Path) -> Result<OpenedFile, ReadError> {
    let handle = File::from(rustix::fs::openat(CWD, path, FILE, Mode::empty())?);
    let real = crate::paths::real_path_of(&handle, path)?;
    OpenedFile::checked(handle, real)
}

/// Reads a text whose name the user chose, of at most [`MAX_TEXT`] bytes.
///
/// # Errors
///
/// [`ReadError`], all but [`ReadError::Outside`].
pub fn read_chosen_text(path: &Path) -> Result<String, ReadError> {
    text(open_chosen(path)?.read(MAX_TEXT)?)
}

/// Returns the user whose rights this process has.
pub fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn text(bytes: Vec<u8>) -> Result<String, ReadError> {
    String::from_utf8(bytes).map_err(|_| ReadError::NotText)
}

/// The way from a root to a file.
struct Walk<'a> {
    root: &'a Root,
    /// Directories below the root that were entered.
    above: Vec<(File, OsString)>,
    /// Names that are still to be followed; `..` is one.
    rest: VecDeque<OsString>,
    links: u32,
}

impl Walk<'_> {
    /// Puts the parts of a path before those that are left.
    fn push(&mut self, path: &Path) -> Result<(), ReadError> {
        let inside = if path.is_absolute() {
            self.above.clear();
            let inside = self.root.name_of(path);
            inside.ok_or_else(|| ReadError::Outside { root: self.root.given.clone() })?
        } else {
            path
        };
        for part in inside.components().rev() {
            match part {
                Component::Normal(name) => self.rest.push_front(name.to_owned()),
                Component::ParentDir => self.rest.push_front("..".into()),
                Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
            }
        }
        Ok(())
    }

    fn run(mut self) -> Result<OpenedFile, ReadError> {
        while let Some(name) = self.rest.pop_front() {
            if name == ".." {
                let left = self.above.pop();
                left.ok_or_else(|| ReadError::Outside { root: self.root.given.clone() })?;
                continue;
            }
            let here = self.above.last().map_or(&self.root.handle, |(handle, _)| handle);
            let found = rustix::fs::statat(here, &name, AtFlags::SYMLINK_NOFOLLOW)?;
            match FileType::from_raw_mode(found.st_mode) {
                FileType::Symlink => {
                    let target = rustix::fs::readlinkat(here, &name, Vec::new())?;
                    self.links += 1;
                    if MAX_LINKS < self.links {
                        return Err(ReadError::TooManyLinks);
                    }
                    self.push(Path::new(&OsString::from_vec(target.into_bytes())))?;
                }
                FileType::Directory => {
                    let flags = DIRECTORY | OFlags::NOFOLLOW;
                    let handle = rustix::fs::openat(here, &name, flags, Mode::empty())?;
                    self.above.push((handle.into(), name));
                }
                FileType::RegularFile if self.rest.is_empty() => {
                    let flags = FILE | OFlags::NOFOLLOW;
                    let handle = rustix::fs::openat(here, &name, flags, Mode::empty())?;
                    if is_made_up(&handle)? {
                        return Err(ReadError::MadeUp);
                    }
                    return OpenedFile::checked(handle, self.real(&name));
                }
                FileType::RegularFile => return Err(ReadError::Missing),
                _ => return Err(ReadError::NotRegular),
            }
        }
        Err(ReadError::NotRegular)
    }

    fn real(&self, name: &OsStr) -> PathBuf {
        let above = self.above.iter().map(|(_, name)| name.as_os_str());
        above.chain([name]).fold(self.root.real.clone(), |path, part| path.join(part))
    }
}

/// Whether a file lies where the system shows itself as files. A workspace may contain such a place,
/// as the root directory does.
fn is_made_up(file: impl AsFd) -> Result<bool, ReadError> {
    let device = rustix::fs::fstat(&file)?.st_dev;
    let device_of = |path: &str| rustix::fs::stat(path).ok().map(|it| it.st_dev);
    let root = device_of("/");
    // Where one of them is an ordinary directory, its device says nothing.
    let shown = ["/proc", "/sys", "/dev"].map(device_of);
    if shown.iter().any(|it| *it == Some(device) && *it != root) {
        return Ok(true);
    }
    is_of_the_kernel(file)
}

/// Whether the file system is one in which the kernel makes up what is read. Several may be mounted
/// anywhere. The numbers are those of `linux/magic.h`.
#[cfg(target_os = "linux")]
fn is_of_the_kernel(file: impl AsFd) -> Result<bool, ReadError> {
    const KINDS: [u64; 13] = [
        0x0000_9fa0, // proc
        0x6265_6572, // sysfs
        0x0027_e0eb, // cgroup
        0x6367_7270, // cgroup2
        0x6462_6720, // debugfs
        0x7472_6163, // tracefs
        0x7363_6673, // securityfs
        0xf97c_ff8c, // selinux
        0xcafe_4a11, // bpf
        0x6265_6570, // configfs
        0xde5e_81e4, // efivarfs
        0x6165_676c, // pstore
        0x0000_1cd1, // devpts
    ];
    let kind = rustix::fs::fstatfs(&file)?.f_type;
    // Its type differs between machines.
    Ok(KINDS.iter().any(|it| (*it & 0xffff_ffff) == (kind as u64 & 0xffff_ffff)))
}

#[cfg(not(target_os = "linux"))]
fn is_of_the_kernel(_: impl AsFd) -> Result<bool, ReadError> {
    Ok(false)
}

#[cfg(test)]
mod tests;
