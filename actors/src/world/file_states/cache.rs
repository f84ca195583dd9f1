//! What was seen at paths, and which directories are watched for it.

use std::{
    collections::BTreeMap, ffi::OsStr, fs, io, os::unix::ffi::OsStrExt, path::Path, sync::Arc,
    time::Duration,
};

#[cfg(not(target_os = "linux"))]
use super::no_watches::NoWatches as Watches;
#[cfg(target_os = "linux")]
use super::watches::Watches;
use super::{
    FIRST_LOOKS, LONGEST_BELIEF, LONGEST_FULL, MAX_DIRECTORIES, MAX_PATHS, PAUSE, PathState,
};

/// What was seen at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// A directory, each of whose changes is reported.
    Directory(PathState),
    /// Nothing. It is reported when something comes.
    Nothing,
    /// What is there, or may be, is to be looked at each time.
    EachTime,
}

impl Seen {
    fn is_believed(self, since: Duration, now: Duration) -> bool {
        let longest = match self {
            Self::Directory(_) | Self::Nothing => LONGEST_BELIEF,
            Self::EachTime => LONGEST_FULL,
        };
        now < since + longest
    }
}

/// A report of the kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Report<'a> {
    /// The directory that it is about.
    pub(super) number: i32,
    /// The name in it; `None`: it is about the directory itself.
    pub(super) name: Option<&'a [u8]>,
}

/// What is known of a path.
#[derive(Debug)]
pub(super) enum FoundPath {
    Kept(Seen),
    /// It is to be looked at.
    Unknown(LookOrder),
}

/// How a path is to be looked at.
#[derive(Debug)]
pub(super) struct LookOrder {
    watches: Arc<Watches>,
    /// The number of reports that were taken in.
    n_reports: u64,
    /// How many bytes of the path name a directory that is not watched yet, from the root on.
    unwatched: Vec<usize>,
}

/// What a look at a path found.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) seen: Seen,
    /// The directories that are watched now: bytes of the path, and number.
    pub(super) added: Vec<(usize, i32)>,
}

impl LookOrder {
    /// Looks at a path. Directories on the way are watched first, so that what changes during the look is reported after it.
    pub(super) fn carry_out(&self, path: &Path) -> Finding {
        let name = path.as_os_str().as_bytes();
        let mut added = Vec::new();
        for &end in &self.unwatched {
            match self.watches.add(Path::new(OsStr::from_bytes(&name[..end]))) {
                Ok(number) => added.push((end, number)),
                Err(error) => {
                    let is_there = io::Error::from(error).kind() != io::ErrorKind::NotFound;
                    let seen = if is_there { Seen::EachTime } else { Seen::Nothing };
                    return Finding { seen, added };
                }
            }
        }
        let seen = match fs::symlink_metadata(path) {
            Ok(found) if found.is_dir() => Seen::Directory(PathState::of(&found)),
            _ => Seen::EachTime,
        };
        Finding { seen, added }
    }
}

/// What was seen, and what is watched.
#[derive(Debug, Default)]
pub(super) struct Cache {
    pub(super) n_looks: u32,
    pub(super) watches: Option<Arc<Watches>>,
    /// When watching begins anew, at the earliest.
    next: Option<Duration>,
    lacks_room: bool,
    /// Reports that were taken in. What was seen before one of them may not be so any more.
    n_reports: u64,
    pub(super) seen: BTreeMap<Vec<u8>, (Duration, Seen)>,
    /// The directories that are watched, by number and by path.
    paths: BTreeMap<i32, Vec<u8>>,
    numbers: BTreeMap<Vec<u8>, i32>,
}

impl Cache {
    /// Forgets what the kernel has reported as changed.
    pub(super) fn refresh(&mut self, now: Duration) {
        if self.n_looks < FIRST_LOOKS {
            self.n_looks += 1;
            return;
        }
        if (self.watches.is_none() || self.lacks_room) && self.next.is_none_or(|it| it <= now) {
            self.end(now + LONGEST_FULL);
            self.watches = Watches::start().map(Arc::new);
        }
        let Some(watches) = self.watches.clone() else { return };
        let mut is_sound = true;
        let is_complete = watches.take_reports(|report| is_sound &= self.take(&report));
        if !is_complete || !is_sound {
            self.end(now + PAUSE);
        }
    }

    /// Forgets everything, and watches nothing before that time.
    fn end(&mut self, next: Duration) {
        let (n_looks, n_reports) = (self.n_looks, self.n_reports + 1);
        *self = Self { n_looks, n_reports, next: Some(next), ..Self::default() };
    }

    /// Takes in a report. Returns false where a directory that is watched may have another name now.
    fn take(&mut self, report: &Report<'_>) -> bool {
        self.n_reports += 1;
        let Some(directory) = self.paths.get(&report.number) else { return true };
        let Some(name) = report.name else { return false };
        let path = [directory.strip_suffix(b"/").unwrap_or(directory), b"/", name].concat();
        if self.numbers.contains_key(&path) {
            return false;
        }
        self.seen.remove(directory);
        self.seen.remove(&path);
        let below = [&path, &b"/"[..]].concat();
        let first_below = |seen: &BTreeMap<Vec<u8>, _>| {
            let (first, _) = seen.range(below.clone()..).next()?;
            first.starts_with(&below).then(|| first.clone())
        };
        while let Some(it) = first_below(&self.seen) {
            self.seen.remove(&it);
        }
        true
    }

    /// Returns what is known of a path.
    pub(super) fn find(&mut self, name: &[u8], now: Duration) -> FoundPath {
        if let Some((since, seen)) = self.seen.get(name)
            && seen.is_believed(*since, now)
        {
            return FoundPath::Kept(*seen);
        }
        let Some(watches) = self.watches.as_ref().filter(|_| is_plain(name)) else {
            return FoundPath::Kept(Seen::EachTime);
        };
        let slashes = name.iter().enumerate().filter(|it| *it.1 == b'/').map(|it| it.0.max(1));
        let ends = slashes.filter(|it| *it < name.len()).chain([name.len()]);
        let unwatched: Vec<usize> =
            ends.filter(|it| !self.numbers.contains_key(&name[..*it])).collect();
        if MAX_PATHS <= self.seen.len() || MAX_DIRECTORIES < self.numbers.len() + unwatched.len() {
            self.lacks_room = true;
            return FoundPath::Kept(Seen::EachTime);
        }
        let (watches, n_reports) = (Arc::clone(watches), self.n_reports);
        FoundPath::Unknown(LookOrder { watches, n_reports, unwatched })
    }

    /// Keeps what a look found, unless something was reported meanwhile.
    pub(super) fn keep(&mut self, order: &LookOrder, name: &[u8], found: Finding, now: Duration) {
        if order.n_reports != self.n_reports {
            return;
        }
        let mut seen = found.seen;
        for (end, number) in found.added {
            let path = &name[..end];
            match self.paths.get(&number) {
                // A directory with two names is reported by one of them.
                Some(other) if other != path => {
                    seen = Seen::EachTime;
                    break;
                }
                Some(_) => {}
                None => {
                    self.paths.insert(number, path.to_owned());
                    self.numbers.insert(path.to_owned(), number);
                }
            }
        }
        self.seen.insert(name.to_owned(), (now, seen));
    }
}

/// Whether each part of a path is a name.
fn is_plain(path: &[u8]) -> bool {
    let Some(names) = path.strip_prefix(b"/") else { return false };
    names.is_empty() || names.split(|it| *it == b'/').all(|it| !matches!(it, b"" | b"." | b".."))
}
