//! What is at the paths that every turn looks at, kept as long as the kernel reports no change.
//!
//! A turn looks for settings files and instruction files (TRN-4) in a dozen places, each a call of the system, and in most is
//! nothing, as before. Here the kernel reports what has changed. It queues the report of a new name in a directory before the
//! call that made the name returns, and a [`FilesLook`] reads the queue first: so it answers what `stat` would answer, whoever
//! made the change. A file system that is mounted somewhere is reported, too.
//!
//! Kept are directories, and that nothing is there. A file that is there is looked at each time: not all by which it changes is
//! reported. So is what a link is on the way to, and what lies in a file system that others than this kernel change. What was
//! kept is believed for [`LONGEST_BELIEF`] and then looked at again, since some changes are not reported even so: a
//! directory's time of modification that is set alone, and what is done to a layer of an overlay and not through it.

use std::{
    fs::{self, Metadata},
    io,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::Path,
    sync::Mutex,
    time::Duration,
};

use ennead_runtime::{ports::Clock as _, step7_permission_gate::path_resolution::PathEntry};
use ennead_tools::locked::Locked as _;

mod cache;
#[cfg(not(target_os = "linux"))]
mod no_watches;
#[cfg(target_os = "linux")]
mod watches;

use super::{clock::SystemClock, real_paths::look_up};
use cache::{Cache, FoundPath, Report, Seen};

/// How long what was seen at a path is believed, at most, where no change is reported.
const LONGEST_BELIEF: Duration = Duration::from_millis(200);

/// Looks before the kernel is asked for reports: a user has 128 queues of reports, and who looks a few times needs none.
const FIRST_LOOKS: u32 = 32;

/// Reports that are taken in by one look, at most, about a microsecond each.
const MAX_REPORTS: usize = 512;

/// Paths that are kept at most, and directories that are watched at most.
const MAX_PATHS: usize = 4096;
const MAX_DIRECTORIES: usize = 1024;

/// How long each path is looked at each time after reports were lost, or a directory that is watched was moved, removed or had its
/// permissions changed.
const PAUSE: Duration = Duration::from_secs(1);

/// How long what is kept stays when there is no room for more; then all of it makes room. So long, too, a path that is
/// looked at each time goes on to be.
const LONGEST_FULL: Duration = Duration::from_secs(10);

/// A change may bear the same time as the one before it, when both fall into one tick of the file
/// system's clock. Kernels tick every 10 ms at the slowest; some file systems keep whole seconds,
/// even ones in the worst case.
const TICK_NS: i128 = 50_000_000;
const COARSE_TICK_NS: i128 = 2_000_000_000;

/// What is at a path: what distinguishes one state of a file or directory from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PathState {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) n_bytes: u64,
    pub(super) mtime_ns: i128,
    pub(super) ctime_ns: i128,
}

impl PathState {
    pub(super) fn of(found: &Metadata) -> Self {
        let ns = |seconds, rest| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        Self {
            device: found.dev(),
            inode: found.ino(),
            n_bytes: found.size(),
            mtime_ns: ns(found.mtime(), found.mtime_nsec()),
            ctime_ns: ns(found.ctime(), found.ctime_nsec()),
        }
    }

    /// Returns whether a later change is sure to bear another time.
    pub(super) fn is_settled(self, now_ns: i128) -> bool {
        let last = self.mtime_ns.max(self.ctime_ns);
        let is_coarse = last % 1_000_000_000 == 0;
        last + if is_coarse { COARSE_TICK_NS } else { TICK_NS } < now_ns
    }
}

/// What distinguishes one state of a file from another, for those who keep it: modification time in nanoseconds, bytes,
/// inode.
type Version = (i128, u64, u64);

/// Returns the version of what is at a path; `None` where nothing is. A link that leads nowhere for ever is something: what
/// it represents cannot be read.
pub(super) fn version_at(path: &Path) -> Option<Version> {
    version(path, fs::metadata(path).map(|it| PathState::of(&it)))
}

fn version(path: &Path, found: io::Result<PathState>) -> Option<Version> {
    let found = found.or_else(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Err(error),
        _ => fs::symlink_metadata(path).map(|it| PathState::of(&it)),
    });
    found.ok().map(|it| (it.mtime_ns, it.n_bytes, it.inode))
}

/// Keeps what is at paths. One for all sessions of an [`Ennead`](crate::Ennead).
#[derive(Debug, Default)]
pub(super) struct FileStates {
    clock: SystemClock,
    cache: Mutex<Cache>,
}

impl FileStates {
    /// Makes what watches from the first look on.
    #[cfg(test)]
    pub(super) fn watching() -> Self {
        let states = Self::default();
        states.cache.locked().n_looks = FIRST_LOOKS;
        states
    }

    /// Takes in what the kernel has reported; what is then asked of the look is as it is now. Costs one call of the system where
    /// nothing is reported, and at most [`MAX_REPORTS`] reports.
    pub(super) fn look(&self) -> FilesLook<'_> {
        let now = self.clock.elapsed();
        self.cache.locked().refresh(now);
        FilesLook { states: self, now }
    }
}

/// A look at paths, at one time. Nothing waits for a call that it makes.
#[derive(Clone, Copy, Debug)]
pub(super) struct FilesLook<'a> {
    states: &'a FileStates,
    now: Duration,
}

impl FilesLook<'_> {
    /// Returns what is at a path, through links, as `stat` does.
    ///
    /// # Errors
    ///
    /// As those of `stat`; where nothing is, of the kind `NotFound`.
    pub(super) fn state(self, path: &Path) -> io::Result<PathState> {
        match self.seen(path) {
            Seen::Directory(state) => Ok(state),
            Seen::Nothing => Err(io::Error::from(io::ErrorKind::NotFound)),
            Seen::EachTime => fs::metadata(path).map(|it| PathState::of(&it)),
        }
    }

    /// Returns the state of a directory, where all that changes it is reported.
    pub(super) fn reported(self, directory: &Path) -> Option<PathState> {
        match self.seen(directory) {
            Seen::Directory(state) => Some(state),
            Seen::Nothing | Seen::EachTime => None,
        }
    }

    /// Returns what is at a path. A link at its end is not followed.
    pub(super) fn entry(self, path: &str) -> PathEntry {
        match self.seen(Path::new(path)) {
            Seen::Directory(_) => PathEntry::Directory,
            Seen::Nothing => PathEntry::Missing,
            Seen::EachTime => look_up(path),
        }
    }

    /// Returns as [`version_at`] does.
    pub(super) fn version(self, path: &Path) -> Option<Version> {
        version(path, self.state(path))
    }

    /// Returns whether anything is at a path. A link that leads nowhere counts as nothing.
    pub(super) fn exists(self, path: &Path) -> bool {
        self.state(path).is_ok()
    }

    fn seen(self, path: &Path) -> Seen {
        let name = path.as_os_str().as_bytes();
        let order = match self.states.cache.locked().find(name, self.now) {
            FoundPath::Kept(seen) => return seen,
            FoundPath::Unknown(order) => order,
        };
        let found = order.carry_out(path);
        let seen = found.seen;
        self.states.cache.locked().keep(&order, name, found, self.now);
        seen
    }
}

#[cfg(test)]
mod tests;
