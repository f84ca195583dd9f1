//! Directories that hold nothing for a session, as long as they do not change.
//!
//! Sessions that are opened by the thousand in one place look for the same files in the same
//! directories, mostly in vain. A name cannot appear in a directory without changing the
//! directory's times, so one `stat` of it stands for one of each name. The time of its last change
//! is looked at beside that of its last modification: it also moves when permissions do, and nobody
//! can put it back.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use ennead_runtime::time::Timestamp;

/// Directories that are remembered at most.
const MAX_DIRECTORIES: usize = 4096;

/// A change may bear the same time as the one before it, when both fall into one tick of the file
/// system's clock. Kernels tick every 10 ms at the slowest; some file systems keep whole seconds,
/// even ones in the worst case.
const TICK_NS: i128 = 50_000_000;
const COARSE_TICK_NS: i128 = 2_000_000_000;

/// State of a directory: device, inode, and its times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    device: u64,
    inode: u64,
    mtime_ns: i128,
    ctime_ns: i128,
}

/// Which directories were found to hold nothing, and in what state.
#[derive(Debug, Default)]
pub(super) struct Without {
    directories: Mutex<BTreeMap<PathBuf, Seen>>,
}

impl Without {
    /// The state of a directory, to be taken before looking into it.
    pub(super) fn look(directory: &Path) -> Option<Seen> {
        let found = fs::metadata(directory).ok()?;
        let ns = |seconds, rest| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        Some(Seen {
            device: found.dev(),
            inode: found.ino(),
            mtime_ns: ns(found.mtime(), found.mtime_nsec()),
            ctime_ns: ns(found.ctime(), found.ctime_nsec()),
        })
    }

    /// Whether the directory holds nothing still.
    pub(super) fn is_known(&self, directory: &Path) -> bool {
        let known = self.map().get(directory).copied();
        known.is_some_and(|known| Self::look(directory) == Some(known))
    }

    /// The directory held nothing, not even a link to nowhere. Not believed when it has only just
    /// been changed.
    pub(super) fn remember(&self, directory: &Path, seen: Option<Seen>, now: Timestamp) {
        let now_ns = i128::from(now.0) * 1_000_000;
        let Some(seen) = seen.filter(|it| it.is_settled(now_ns)) else { return };
        let mut map = self.map();
        if MAX_DIRECTORIES <= map.len() {
            map.clear();
        }
        map.insert(directory.to_owned(), seen);
    }

    fn map(&self) -> std::sync::MutexGuard<'_, BTreeMap<PathBuf, Seen>> {
        // Entries are put in whole, so a panic elsewhere spoils nothing.
        self.directories.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    /// Whether a later change is sure to bear another time.
    fn is_settled(self, now_ns: i128) -> bool {
        let last = self.mtime_ns.max(self.ctime_ns);
        let is_coarse = last % 1_000_000_000 == 0;
        last + if is_coarse { COARSE_TICK_NS } else { TICK_NS } < now_ns
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use ennead_runtime::ports::Clock;

    use super::*;
    use crate::world::clock::SystemClock;

    /// As if the directory had stood as it is for a minute.
    fn remember(without: &Without, path: &Path) {
        let later = Timestamp(SystemClock::new().now().0 + 60_000);
        without.remember(path, Without::look(path), later);
    }

    #[test]
    fn directory_is_known_until_something_changes_in_it() {
        let directory = tempfile::tempdir().unwrap();
        let (path, without) = (directory.path(), Without::default());
        assert!(!without.is_known(path));
        remember(&without, path);
        assert!(without.is_known(path));
        fs::write(path.join("CLAUDE.md"), "Be kind.").unwrap();
        assert!(!without.is_known(path));
        fs::remove_file(path.join("CLAUDE.md")).unwrap();
        assert!(!without.is_known(path));
    }

    #[test]
    fn permissions_and_times_that_are_put_back_are_changes() {
        let directory = tempfile::tempdir().unwrap();
        let (path, without) = (directory.path(), Without::default());
        remember(&without, path);
        // The clock of a file system may stand still for some milliseconds.
        let before = Without::look(path);
        while Without::look(path) == before {
            fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
        }
        assert!(!without.is_known(path));
        remember(&without, path);
        let (before, modified) = (Without::look(path), fs::metadata(path).unwrap().modified());
        while Without::look(path) == before {
            fs::write(path.join("CLAUDE.md"), "Be kind.").unwrap();
            fs::File::open(path).unwrap().set_modified(*modified.as_ref().unwrap()).unwrap();
        }
        assert!(!without.is_known(path));
    }

    #[test]
    fn directory_that_was_just_changed_is_not_remembered() {
        let directory = tempfile::tempdir().unwrap();
        let (path, without) = (directory.path(), Without::default());
        without.remember(path, Without::look(path), SystemClock::new().now());
        assert!(!without.is_known(path));
        remember(&without, &path.join("not there"));
        assert!(!without.is_known(&path.join("not there")));
    }

    #[test]
    fn times_in_whole_seconds_settle_later() {
        let seen = |mtime_ns| Seen { device: 1, inode: 2, mtime_ns, ctime_ns: 0 };
        assert!(seen(1_000_000_001).is_settled(1_050_000_002));
        assert!(!seen(1_000_000_001).is_settled(1_050_000_001));
        assert!(seen(1_000_000_000).is_settled(3_000_000_001));
        assert!(!seen(1_000_000_000).is_settled(3_000_000_000));
    }
}
