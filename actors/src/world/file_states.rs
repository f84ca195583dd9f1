//! What is at the paths that every turn looks at, kept as long as the kernel reports no change.
//!
//! A turn looks at its settings files and instruction files (TRN-4): a dozen paths, each a call of the system, in which
//! nothing has changed as a rule. Here the kernel tells what has: it queues a report of a change before the call that made
//! it returns, so that a [`Look`], which takes in what is queued, answers as the calls would have, whoever made the change.
//!
//! Some changes are not reported: a file system that is mounted on a directory, a file that is written through a mapping in
//! memory, a directory's time of modification that is set alone. What was seen is therefore believed for [`LONGEST_BELIEF`] and then looked at again. A path through a link, on a
//! file system that other machines or processes may change, or that cannot be watched is looked at each time.

use std::{
    collections::BTreeMap,
    fs::{self, FileType, Metadata},
    io,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::Path,
    sync::{Mutex, MutexGuard},
    time::{Duration, Instant},
};

use ennead_runtime::step7_permission_gate::path_resolution::PathEntry;
use ennead_tools::locked::Locked as _;

#[cfg(target_os = "linux")]
mod watches;
#[cfg(not(target_os = "linux"))]
#[path = "file_states/no_watches.rs"]
mod watches;

use super::real_paths::{entry_of, look_up};
use watches::Watches;

/// How long what was seen at a path is believed, at most, where no change is reported.
const LONGEST_BELIEF: Duration = Duration::from_millis(200);

/// Looks before the kernel is asked for reports: a user has 128 queues of reports, and who looks a few times needs none.
const FIRST_LOOKS: u32 = 32;

/// Paths that are kept at most, and paths that are watched at most.
const MAX_PATHS: usize = 4096;

/// Reports that are taken in by one look, at most, some hundred nanoseconds each. More are as good as lost.
pub(super) const MAX_REPORTS: usize = 512;

/// How long what is kept stays when there is no room for more; then all of it makes room.
const LONGEST_FULL: Duration = Duration::from_secs(10);

/// A change may bear the same time as the one before it, when both fall into one tick of the file
/// system's clock. Kernels tick every 10 ms at the slowest; some file systems keep whole seconds,
/// even ones in the worst case.
const TICK_NS: i128 = 50_000_000;
const COARSE_TICK_NS: i128 = 2_000_000_000;

/// What is at a path: what distinguishes one state of a file or directory from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PathState {
    pub(super) kind: FileType,
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
            kind: found.file_type(),
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

/// Keeps what is at paths. One for all sessions of a process.
#[derive(Debug, Default)]
pub(super) struct FileStates(Mutex<Cache>);

impl FileStates {
    /// Takes in what the kernel has reported; what is then asked of the look is as it is now. Costs one call of the system, and
    /// at most [`MAX_REPORTS`] reports. Others wait for the look to end.
    pub(super) fn look(&self) -> Look<'_> {
        let (mut cache, now) = (self.0.locked(), Instant::now());
        cache.refresh(now);
        Look { cache, now }
    }
}

/// A look at paths, at one time.
#[derive(Debug)]
pub(super) struct Look<'a> {
    cache: MutexGuard<'a, Cache>,
    now: Instant,
}

impl Look<'_> {
    /// Returns what is at a path, through links, as `stat` does.
    ///
    /// # Errors
    ///
    /// As those of `stat`; where nothing is, of the kind `NotFound`.
    pub(super) fn state(&mut self, path: &Path) -> io::Result<PathState> {
        match self.cache.seen_at(path, self.now) {
            Seen::State(state) => Ok(state),
            Seen::Nothing => Err(io::Error::from(io::ErrorKind::NotFound)),
            Seen::Unfit => fs::metadata(path).map(|it| PathState::of(&it)),
        }
    }

    /// Returns what is at a path. A link at its end is not followed.
    pub(super) fn entry(&mut self, path: &str) -> PathEntry {
        match self.cache.seen_at(Path::new(path), self.now) {
            Seen::State(state) => entry_of(state.kind),
            Seen::Nothing => PathEntry::Missing,
            Seen::Unfit => look_up(path),
        }
    }

    /// Returns as [`version_at`] does.
    pub(super) fn version(&mut self, path: &Path) -> Option<Version> {
        let found = self.state(path);
        version(path, found)
    }

    /// Returns whether anything is at a path. A link that leads nowhere counts as nothing.
    pub(super) fn exists(&mut self, path: &Path) -> bool {
        self.state(path).is_ok()
    }
}

/// What adding a path comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Added {
    /// Something is there. Its changes are reported, and its end.
    Watched,
    /// Nothing is there. It is reported when something comes.
    Missing,
    /// Not all that changes there would be reported.
    Unfit,
}

/// What has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Changed<'a> {
    /// The state of a directory.
    Itself(&'a [u8]),
    /// What is at a path, and perhaps at those below it.
    WithAllBelow(&'a [u8]),
}

/// What was seen at a path.
#[derive(Clone, Copy, Debug)]
enum Seen {
    State(PathState),
    Nothing,
    /// Changes there are not reported.
    Unfit,
}

#[derive(Debug, Default)]
struct Cache {
    n_looks: u32,
    watches: Option<Watches>,
    /// When watching began, or could not.
    begun: Option<Instant>,
    seen: BTreeMap<Vec<u8>, (Instant, Seen)>,
}

impl Cache {
    /// Forgets what the kernel has reported as changed.
    fn refresh(&mut self, now: Instant) {
        if self.n_looks < FIRST_LOOKS {
            self.n_looks += 1;
            return;
        }
        let has_begun_lately = self.begun.is_some_and(|it| now < it + LONGEST_FULL);
        let has_room = self.watches.as_ref().is_some_and(|it| it.len() < MAX_PATHS);
        if !has_begun_lately && !(has_room && self.seen.len() < MAX_PATHS) {
            (self.watches, self.begun) = (Watches::start(), Some(now));
            self.seen.clear();
        }
        let Self { watches: Some(watches), seen, .. } = self else { return };
        let is_complete = watches.take_reports(|changed| match changed {
            Changed::Itself(path) => drop(seen.remove(path)),
            Changed::WithAllBelow(path) => drop(remove_with_all_below(seen, path)),
        });
        if !is_complete {
            // What else has changed is not known. Where that much changes, it is not asked again at once.
            (self.watches, self.begun) = (None, Some(now));
            self.seen.clear();
        }
    }

    /// Returns what is at a path, and keeps it where changes are reported.
    fn seen_at(&mut self, path: &Path, now: Instant) -> Seen {
        let Some(watches) = &mut self.watches else { return Seen::Unfit };
        let name = path.as_os_str().as_bytes();
        if let Some((when, seen)) = self.seen.get(name)
            && now < *when + LONGEST_BELIEF
        {
            return *seen;
        }
        // Watched first, so that what changes during the look is reported after it.
        let seen = match watches.add(name, MAX_PATHS) {
            Added::Watched => match fs::symlink_metadata(path) {
                Ok(found) if !found.is_symlink() => Seen::State(PathState::of(&found)),
                _ => Seen::Unfit,
            },
            Added::Missing => Seen::Nothing,
            Added::Unfit => Seen::Unfit,
        };
        if self.seen.len() < MAX_PATHS {
            self.seen.insert(name.to_owned(), (now, seen));
        }
        seen
    }
}

/// Removes what is kept for a path and for all paths below it.
fn remove_with_all_below<T>(map: &mut BTreeMap<Vec<u8>, T>, path: &[u8]) -> Vec<T> {
    let mut removed: Vec<T> = map.remove(path).into_iter().collect();
    // Of the root it is the root.
    let below = [path.strip_suffix(b"/").unwrap_or(path), b"/"].concat();
    while let Some((key, _)) =
        map.range(below.clone()..).next().filter(|it| it.0.starts_with(&below))
    {
        let key = key.clone();
        removed.extend(map.remove(&key));
    }
    removed
}

#[cfg(test)]
mod tests;
