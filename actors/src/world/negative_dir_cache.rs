//! Directories that hold nothing for a session, as long as they do not change.
//!
//! Sessions that are opened by the thousand in one place look for the same files in the same
//! directories, mostly in vain. A name cannot appear in a directory without changing the
//! directory's times (some network and FUSE file systems apart), so one `stat` of it takes the place of
//! one for each name. The time of its last change is looked at in addition to that of its last
//! modification: it also moves when permissions do, and no program can put it back.

use std::{collections::BTreeMap, ffi::OsString, io, path::Path, sync::Mutex};

use ennead_runtime::{ports::Clock, time::Timestamp};

use super::{
    clock::SystemClock,
    file_states::{FilesLook, PathState},
};
use ennead_tools::locked::Locked as _;

/// Directories that are remembered at most.
const MAX_DIRECTORIES: usize = 4096;

/// Which directories were found to hold none of some names, and in what state.
#[derive(Debug)]
pub(super) struct NegativeDirCache {
    names: &'static [&'static str],
    directories: Mutex<BTreeMap<OsString, PathState>>,
}

impl NegativeDirCache {
    /// Makes a cache that knows no directory yet.
    pub(super) fn new(names: &'static [&'static str]) -> Self {
        Self { names, directories: Mutex::default() }
    }

    /// Returns whether the directory holds none of the names, whatever they would be of. A link to nowhere counts as
    /// held: what it leads to may come into being without a change of the directory. So does what cannot be looked at.
    pub(super) fn holds_none(&self, directory: &Path, look: FilesLook<'_>) -> bool {
        // Before the look, so that what changes during it counts as just changed.
        let now = SystemClock::new().now();
        let seen = match look.state(directory) {
            // Before what is in it, which may change meanwhile.
            Ok(found) => found,
            Err(error) => return error.kind() == io::ErrorKind::NotFound,
        };
        if self.map().get(directory.as_os_str()) == Some(&seen) {
            return true;
        }
        let is_barren = self.names.iter().all(|name| {
            let found = directory.join(name).symlink_metadata();
            found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        });
        if is_barren {
            self.remember(directory, seen, now);
        }
        is_barren
    }

    /// The directory held nothing. Not believed when it has only just been changed.
    fn remember(&self, directory: &Path, seen: PathState, now: Timestamp) {
        if !seen.is_settled(i128::from(now.0) * 1_000_000) {
            return;
        }
        let mut map = self.map();
        if MAX_DIRECTORIES <= map.len() {
            map.clear();
        }
        map.insert(directory.into(), seen);
    }

    fn map(&self) -> std::sync::MutexGuard<'_, BTreeMap<OsString, PathState>> {
        // Entries are put in whole, so a panic elsewhere spoils nothing.
        self.directories.locked()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt, symlink},
    };

    use super::*;
    use crate::world::file_states::FileStates;

    const NAMES: &[&str] = &["CLAUDE.md"];

    fn state(path: &Path) -> PathState {
        PathState::of(&fs::metadata(path).unwrap())
    }

    fn holds_none(without: &NegativeDirCache, path: &Path) -> bool {
        without.holds_none(path, FileStates::default().look())
    }

    /// As if the directory had been as it is for a minute.
    fn remember(without: &NegativeDirCache, path: &Path) {
        let later = Timestamp(SystemClock::new().now().0 + 60_000);
        without.remember(path, state(path), later);
    }

    fn is_known(without: &NegativeDirCache, path: &Path) -> bool {
        without.map().get(path.as_os_str()) == Some(&state(path))
    }

    #[test]
    fn directory_is_known_until_something_changes_in_it() {
        let directory = tempfile::tempdir().unwrap();
        let (path, without) = (directory.path(), NegativeDirCache::new(NAMES));
        assert!(holds_none(&without, path));
        remember(&without, path);
        assert!(is_known(&without, path) && holds_none(&without, path));
        fs::write(path.join("CLAUDE.md"), "Be kind.").unwrap();
        assert!(!is_known(&without, path) && !holds_none(&without, path));
        fs::remove_file(path.join("CLAUDE.md")).unwrap();
        assert!(!is_known(&without, path) && holds_none(&without, path));
    }

    #[test]
    fn link_to_nowhere_is_something_and_a_missing_directory_holds_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let (path, without) = (directory.path(), NegativeDirCache::new(NAMES));
        fs::write(path.join("other"), "").unwrap();
        assert!(holds_none(&without, path) && holds_none(&without, &path.join("not there")));
        symlink(path.join("later.md"), path.join("CLAUDE.md")).unwrap();
        assert!(!path.join("CLAUDE.md").exists() && !holds_none(&without, path));
    }

    #[test]
    fn permissions_and_times_that_are_put_back_are_changes() {
        let directory = tempfile::tempdir().unwrap();
        let (path, without) = (directory.path(), NegativeDirCache::new(NAMES));
        remember(&without, path);
        // The clock of a file system may stand still for some milliseconds.
        let before = state(path);
        while state(path) == before {
            fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
        }
        assert!(!is_known(&without, path));
        remember(&without, path);
        let (before, modified) = (state(path), fs::metadata(path).unwrap().modified());
        while state(path) == before {
            fs::write(path.join("CLAUDE.md"), "Be kind.").unwrap();
            fs::File::open(path).unwrap().set_modified(*modified.as_ref().unwrap()).unwrap();
        }
        assert!(!is_known(&without, path) && !holds_none(&without, path));
    }

    #[test]
    fn directory_that_was_just_changed_is_not_remembered() {
        let directory = tempfile::tempdir().unwrap();
        let (path, without) = (directory.path(), NegativeDirCache::new(NAMES));
        assert!(holds_none(&without, path));
        assert!(without.map().is_empty());
    }
}
