//! One writer per session: a file lock that names its holder.
//!
//! The kernel frees the lock when its process ends, whatever becomes of the text; so a free lock
//! with text is stale and taken over with the next epoch. The file is never removed: removing it
//! would let two processes lock two files of one name.

use std::{
    fs::{self, File, TryLockError},
    io::{self, Read},
    os::unix::fs::FileExt,
    path::Path,
    sync::LazyLock,
};

use ennead_runtime::time::Timestamp;
use serde::{Deserialize, Serialize};

/// Bytes of a holder's text; what is longer was written by nobody we know.
const MAX_TEXT: u64 = 64 * 1024;

/// The process that holds the lock of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "process {} on {} since {}", self.pid, self.host, self.since)
    }
}

/// Why a lock could not be taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Another process holds the lock.
    #[error("the session is written by {}", .holder.as_ref().map_or("an unknown process".into(), ToString::to_string))]
    Held {
        /// Who, if the text of the lock can be read.
        holder: Option<Holder>,
    },
    /// The lock file cannot be used.
    #[error("cannot use the lock file")]
    File(#[source] io::Error),
}

/// A lock that is held until this is dropped.
#[derive(Debug)]
pub(crate) struct SessionLock {
    file: File,
    epoch: u64,
}

impl SessionLock {
    /// Takes the lock at `path`, whose directory exists.
    ///
    /// # Errors
    ///
    /// [`LockError::Held`] at once when somebody holds it.
    pub(crate) fn take(path: &Path, now: Timestamp) -> Result<Self, LockError> {
        let file = super::files::private()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(LockError::File)?;
        let locked = file.try_lock();
        let mut text = Vec::new();
        // What cannot be read names nobody; the lock itself is what counts.
        // With a bound, or its size would be asked for first.
        let (old, old_len): (Option<Holder>, _) =
            match (&file).take(MAX_TEXT).read_to_end(&mut text) {
                Ok(length) => (serde_json::from_slice(&text).ok(), length),
                Err(_) => (None, usize::MAX),
            };
        match locked {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LockError::Held { holder: old }),
            Err(TryLockError::Error(error)) => return Err(LockError::File(error)),
        }
        let epoch = old.map_or(0, |old| old.epoch) + 1;
        let holder = Holder {
            pid: std::process::id(),
            boot_id: BOOT_ID.clone(),
            host: HOST.clone(),
            epoch,
            since: now.to_string(),
        };
        write_over(&file, old_len, &holder).map_err(LockError::File)?;
        Ok(Self { file, epoch })
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
