//! Directories that hold nothing for a session, as long as they do not change.
//!
//! Sessions that are opened by the thousand in one place look for the same files in the same
//! directories, mostly in vain. A name cannot appear in a directory without changing the
//! directory's modification time, so one `stat` of it stands for one of each name.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use ennead_runtime::ports::Clock;

use super::clock::SystemClock;

/// Directories that are remembered at most.
const MAX_DIRECTORIES: usize = 4096;

/// A change may bear the same time as the one before it, when both fall into one tick of the file
/// system's clock. Kernels tick every 10 ms at the slowest; some file systems keep whole seconds,
/// even ones in the worst case.
const TICK_NS: i128 = 50_000_000;
const COARSE_TICK_NS: i128 = 2_000_000_000;

/// State of a directory: device, inode, modification time in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    device: u64,
    inode: u64,
    mtime_ns: i128,
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
        let mtime_ns = i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec());
        Some(Seen { device: found.dev(), inode: found.ino(), mtime_ns })
    }

    /// Whether the directory holds nothing still.
    pub(super) fn is_known(&self, directory: &Path) -> bool {
        let known = self.map().get(directory).copied();
        known.is_some_and(|known| Self::look(directory) == Some(known))
    }

    /// The directory held nothing. Not believed for long when it has only just been changed.
    pub(super) fn remember(&self, directory: &Path, seen: Option<Seen>) {
        let now_ns = i128::from(SystemClock::new().now().0) * 1_000_000;
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
        let is_coarse = self.mtime_ns % 1_000_000_000 == 0;
        self.mtime_ns + if is_coarse { COARSE_TICK_NS } else { TICK_NS } < now_ns
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    fn set_mtime(directory: &Path, ago: Duration) {
        #[expect(clippy::disallowed_methods, reason = "files have the machine's time")]
        let time = SystemTime::now() - ago;
        fs::File::open(directory).unwrap().set_modified(time).unwrap();
    }

    #[test]
    fn directory_is_known_until_a_name_appears_in_it() {
        let directory = tempfile::tempdir().unwrap();
        let (path, without) = (directory.path(), Without::default());
        assert!(!without.is_known(path));
        set_mtime(path, Duration::from_secs(60));
        without.remember(path, Without::look(path));
        assert!(without.is_known(path));
        fs::write(path.join("CLAUDE.md"), "Be kind.").unwrap();
        assert!(!without.is_known(path));
        fs::remove_file(path.join("CLAUDE.md")).unwrap();
        assert!(!without.is_known(path));
    }

    #[test]
    fn directory_that_was_just_changed_is_not_remembered() {
        let directory = tempfile::tempdir().unwrap();
        let (path, without) = (directory.path(), Without::default());
        set_mtime(path, Duration::ZERO);
        without.remember(path, Without::look(path));
        assert!(!without.is_known(path));
        without.remember(&path.join("not there"), Without::look(&path.join("not there")));
        assert!(!without.is_known(&path.join("not there")));
    }

    #[test]
    fn times_in_whole_seconds_settle_later() {
        let seen = |mtime_ns| Seen { device: 1, inode: 2, mtime_ns };
        assert!(seen(1_000_000_001).is_settled(1_050_000_002));
        assert!(!seen(1_000_000_001).is_settled(1_050_000_001));
        assert!(seen(1_000_000_000).is_settled(3_000_000_001));
        assert!(!seen(1_000_000_000).is_settled(3_000_000_000));
    }
}
