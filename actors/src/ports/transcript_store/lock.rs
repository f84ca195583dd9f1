//! One writer per session: a file lock that names its holder.
//!
//! The kernel frees the lock when its process ends, whatever becomes of the text; so a free lock
//! with text is stale and taken over with the next epoch. The file is never removed: removing it
//! would let two processes lock two files of one name.

use std::{
    fs::{self, File, TryLockError},
    io::{self, Read},
    os::unix::fs::{FileExt, MetadataExt},
    path::Path,
    sync::LazyLock,
};

use ennead_runtime::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::StoreError;
use crate::groundwork::files;

/// Bytes of a holder's text at most; a longer text was not written by ennead.
const MAX_TEXT: u64 = 64 * 1024;

/// The process that holds the lock of a session.
///
/// ```
/// use ennead::{OpenError, data::Holder};
///
/// /// Returns who writes the transcript that cannot be opened.
/// fn writer(error: &OpenError) -> Option<&Holder> {
///     match error {
///         OpenError::Locked { holder } => holder.as_ref(),
///         _ => None,
///     }
/// }
/// # assert!(writer(&OpenError::Ended).is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Holder {
    /// Id of the process.
    pub pid: u32,
    /// Which start of the machine `pid` belongs to.
    pub boot_id: String,
    /// Name of the machine that it runs on.
    pub host: String,
    /// Counts takeovers of this session, from 1.
    pub epoch: u64,
    /// When it was taken; RFC 3339.
    pub since: String,
}

impl Holder {
    /// Makes the holder that represents this process, at this time. Its epoch is 0: it holds nothing yet.
    pub(crate) fn this_process(now: Timestamp) -> Self {
        Self {
            pid: std::process::id(),
            boot_id: BOOT_ID.clone(),
            host: HOST.clone(),
            epoch: 0,
            since: now.to_string(),
        }
    }
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "process {} on {} since {}", self.pid, self.host, self.since)
    }
}

/// Which file a lock is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LockedFile {
    device: u64,
    inode: u64,
}

impl LockedFile {
    /// Whether another file has the name: somebody removed this one, and another process locked a new one. Where no
    /// file has it, no other process writes yet.
    pub(crate) fn is_replaced_at(self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|it| Self::of(&it) != self)
    }

    fn of(found: &fs::Metadata) -> Self {
        Self { device: found.dev(), inode: found.ino() }
    }
}

/// A lock that is held until this is dropped.
#[derive(Debug)]
pub(crate) struct SessionLock {
    file: File,
    epoch: u64,
}

impl SessionLock {
    /// Takes the lock at `path` for `holder`, whose epoch does not count.
    ///
    /// # Errors
    ///
    /// [`StoreError::Locked`] at once when somebody holds it.
    pub(crate) fn take(path: &Path, holder: &Holder) -> Result<Self, StoreError> {
        let file = files::in_directory(path, |path| {
            files::private().read(true).write(true).create(true).truncate(false).open(path)
        })
        .map_err(|error| named(path.parent().unwrap_or(path), &error))?;
        let locked = file.try_lock();
        let mut text = Vec::new();
        // What cannot be read names no holder; the lock itself is what counts.
        // With a bound, or its size would be asked for first.
        let (old, old_len): (Option<Holder>, _) =
            match (&file).take(MAX_TEXT).read_to_end(&mut text) {
                Ok(length) => (serde_json::from_slice(&text).ok(), length),
                Err(_) => (None, usize::MAX),
            };
        match locked {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StoreError::Locked { holder: old }),
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        let epoch = old.map_or(0, |old| old.epoch) + 1;
        write_over(&file, old_len, &Holder { epoch, ..holder.clone() })?;
        Ok(Self { file, epoch })
    }

    /// Returns which file it is on, if the system says so.
    pub(crate) fn identity(&self) -> Option<LockedFile> {
        self.file.metadata().ok().map(|it| LockedFile::of(&it))
    }

    /// Counts takeovers of this session, from 1.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }
}

impl Drop for SessionLock {
    fn drop(&mut self) {
        // Closing is not enough: a process that is just being spawned has a copy of the handle until
        // it runs its program, and the lock would be held as long.
        let _closed_anyway = self.file.unlock();
    }
}

/// The error with the directory that it is about, which is what people can change.
fn named(directory: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", directory.display()))
}

/// Facts of the machine, read once.
static BOOT_ID: LazyLock<String> = LazyLock::new(|| line_of("/proc/sys/kernel/random/boot_id"));
static HOST: LazyLock<String> = LazyLock::new(|| line_of("/proc/sys/kernel/hostname"));

fn write_over(file: &File, old_len: usize, holder: &Holder) -> io::Result<()> {
    let mut text = serde_json::to_vec(holder)?;
    text.push(b'\n');
    file.write_all_at(&text, 0)?;
    if text.len() < old_len {
        file.set_len(text.len() as u64)?;
    }
    Ok(())
}

fn line_of(path: &str) -> String {
    fs::read_to_string(path).map_or_else(|_| "unknown".into(), |text| text.trim().into())
}
