//! What the kernel reports of paths: a queue of inotify.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    mem::{self, MaybeUninit},
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
};

use rustix::{
    fs::{
        inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags},
        statfs,
    },
    io::Errno,
};

use super::{Added, Changed, MAX_REPORTS, remove_with_all_below};

/// Bytes of reports that are read at once; one has at most 272.
const BUFFER: usize = 4096;

/// All by which the state of a directory changes, and what it holds. Of a file `MODIFY` in addition.
const EVENTS: WatchFlags = WatchFlags::ATTRIB
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO);

/// The file systems that change by this kernel alone, which reports all of it: ext, XFS, Btrfs, F2FS, ZFS, tmpfs, overlayfs.
/// Numbers of Linux' `magic.h`, and of OpenZFS.
const LOCAL: &[u32] =
    &[0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x2fc1_2fc1, 0x0102_1994, 0x794c_7630];

/// The paths whose changes are reported.
#[derive(Debug)]
pub(super) struct Watches {
    /// `None` only while it is closed.
    queue: Option<OwnedFd>,
    paths: BTreeMap<i32, Vec<u8>>,
    /// By path; of what is no directory with `false`.
    numbers: BTreeMap<Vec<u8>, (i32, bool)>,
}

impl Watches {
    /// Opens a queue; `None` where the kernel gives no more.
    pub(super) fn start() -> Option<Self> {
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        Some(Self { queue: Some(queue), paths: BTreeMap::new(), numbers: BTreeMap::new() })
    }

    /// Returns how many paths are watched.
    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Watches a path, and each directory on the way to it, as long as there are not more than `max` in all. A path with a
    /// link in it leads elsewhere than its names say, and is unfit.
    pub(super) fn add(&mut self, path: &[u8], max: usize) -> Added {
        if !is_plain(path) {
            return Added::Unfit;
        }
        let slashes = path.iter().enumerate().filter(|it| *it.1 == b'/').map(|it| it.0.max(1));
        let ends = slashes.filter(|it| *it < path.len()).chain([path.len()]);
        for end in ends {
            let watched = match self.watch(&path[..end], WatchFlags::ONLYDIR, max) {
                Err(Errno::NOTDIR) if end == path.len() => {
                    self.watch(path, WatchFlags::MODIFY, max)
                }
                watched => watched,
            };
            match watched {
                Ok(()) => {}
                Err(Errno::NOENT) => return Added::Missing,
                Err(_) => return Added::Unfit,
            }
        }
        Added::Watched
    }

    fn watch(&mut self, path: &[u8], flags: WatchFlags, max: usize) -> Result<(), Errno> {
        let must_be_directory = flags.contains(WatchFlags::ONLYDIR);
        match self.numbers.get(path) {
            Some((_, false)) if must_be_directory => return Err(Errno::NOTDIR),
            Some(_) => return Ok(()),
            None => {}
        }
        let queue = self.queue.as_ref().filter(|_| self.len() < max).ok_or(Errno::NOSPC)?;
        let name = OsStr::from_bytes(path);
        let number = inotify::add_watch(queue, name, EVENTS | WatchFlags::DONT_FOLLOW | flags)?;
        if self.paths.contains_key(&number) {
            // Of a file with two names, one is reported.
            return Err(Errno::EXIST);
        }
        let is_local = statfs(name)
            .is_ok_and(|it| u32::try_from(it.f_type).is_ok_and(|it| LOCAL.contains(&it)));
        if !is_local {
            inotify::remove_watch(queue, number)?;
            return Err(Errno::NOTSUP);
        }
        self.paths.insert(number, path.to_owned());
        self.numbers.insert(path.to_owned(), (number, must_be_directory));
        Ok(())
    }

    /// Takes in what was reported. Returns whether that is all that there was.
    pub(super) fn take_reports(&mut self, mut take: impl FnMut(Changed<'_>)) -> bool {
        let Some(queue) = self.queue.take() else { return false };
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut reader = Reader::new(&queue, &mut buffer);
        let mut is_complete = false;
        for _ in 0..MAX_REPORTS {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::INTR) => continue,
                Err(error) => {
                    is_complete = error == Errno::AGAIN;
                    break;
                }
            };
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                break;
            }
            let Some(path) = self.paths.get(&event.wd()) else { continue };
            let changed = match event.file_name() {
                None => path.clone(),
                Some(name) => {
                    take(Changed::Itself(path));
                    [path.strip_suffix(b"/").unwrap_or(path), b"/", name.to_bytes()].concat()
                }
            };
            take(Changed::WithAllBelow(&changed));
            // They may watch now what has another name.
            for (number, _) in remove_with_all_below(&mut self.numbers, &changed) {
                self.paths.remove(&number);
                // It is gone already where what it watched is.
                let _is_gone = inotify::remove_watch(&queue, number);
            }
        }
        self.queue = Some(queue);
        is_complete
    }
}

impl Drop for Watches {
    /// The kernel takes some milliseconds to close a queue, which no scheduler thread waits for.
    fn drop(&mut self) {
        let queue = mem::take(&mut self.queue);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn_blocking(move || drop(queue));
        }
    }
}

/// Whether each part of a path is a name.
fn is_plain(path: &[u8]) -> bool {
    let Some(names) = path.strip_prefix(b"/") else { return false };
    names.is_empty() || names.split(|it| *it == b'/').all(|it| !matches!(it, b"" | b"." | b".."))
}
