//! Whose a directory of a worktree is.
//!
//! A lock of the kernel on the directory itself: it goes with the last holder, however that ends,
//! and with its process at the latest. So it is certain whether the owner still lives.

use std::{
    fs::{self, File, TryLockError},
    io::{self, ErrorKind},
    os::unix::fs::MetadataExt,
    path::Path,
    sync::Arc,
};

use rustix::fs::{Mode, OFlags};

/// A directory that is somebody's as long as a clone of this lives.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    #[expect(dead_code, reason = "kept for its lock")]
    directory: Arc<File>,
}

impl Claim {
    /// Makes a directory. `None` if there is something, or somebody was faster.
    pub(super) fn make(path: &Path) -> io::Result<Option<Self>> {
        match fs::create_dir(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(None),
            made => made?,
        }
        let directory = open(path)?;
        let is_locked = match directory.try_lock() {
            Ok(()) => true,
            Err(TryLockError::WouldBlock) => false,
            // No file system with locks. Nobody can take it over there either.
            Err(TryLockError::Error(_)) => true,
        };
        Ok((is_locked && is_still(path, &directory)).then(|| Self::of(directory)))
    }

    /// Takes over a directory that has no owner any longer.
    pub(super) fn take_over(path: &Path) -> Option<Self> {
        let directory = open(path).ok()?;
        directory.try_lock().ok()?;
        is_still(path, &directory).then(|| Self::of(directory))
    }

    fn of(directory: File) -> Self {
        Self { directory: Arc::new(directory) }
    }
}

fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

/// Between opening and locking, an owner may have removed it.
fn is_still(path: &Path, directory: &File) -> bool {
    let names = |it: fs::Metadata| (it.dev(), it.ino());
    let there = fs::symlink_metadata(path).map(names);
    there.is_ok_and(|there| directory.metadata().map(names).is_ok_and(|it| it == there))
}
