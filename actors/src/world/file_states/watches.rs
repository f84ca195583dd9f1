//! What the kernel reports of directories: a queue of inotify, and the table of mounts.

use std::{
    fs::File,
    mem::{self, MaybeUninit},
    os::fd::{AsFd as _, OwnedFd},
    path::Path,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{
        Mode, OFlags, fstatfs,
        inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags},
        ioctl_getflags, open,
    },
    io::Errno,
};

use super::{MAX_REPORTS, Report};

/// Bytes of reports that are read at once; one has at most 272.
const BUFFER: usize = 4096;

/// All by which the state of a directory changes, and what it holds. What a file in it holds is not reported.
const EVENTS: WatchFlags = WatchFlags::ATTRIB
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO);

/// A directory, and no link to one.
const DIRECTORY: WatchFlags = WatchFlags::DONT_FOLLOW.union(WatchFlags::ONLYDIR);

/// The file systems in which names come and go by this kernel alone: ext, XFS, Btrfs, F2FS, tmpfs, overlayfs. Numbers of
/// Linux' `magic.h`.
const LOCAL: &[u32] = &[0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x0102_1994, 0x794c_7630];

/// Flag of a directory in which one name is another in other letters (`FS_CASEFOLD_FL` of Linux' `fs.h`).
const CASEFOLD: u32 = 0x4000_0000;

/// What reports the changes of directories.
#[derive(Debug)]
pub(super) struct Watches {
    /// `None` only while it is closed.
    queue: Option<OwnedFd>,
    mounts: File,
}

impl Watches {
    /// Begins without a directory; `None` where the kernel gives no more queues.
    pub(super) fn start() -> Option<Self> {
        let mounts = File::open("/proc/self/mountinfo").ok()?;
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        Some(Self { queue: Some(queue), mounts })
    }

    /// Watches a directory, and returns its number. A directory has the same one under all its names.
    ///
    /// # Errors
    ///
    /// `ENOENT` where nothing is. Others where it is not a directory, or not all that changes in it would be reported.
    pub(super) fn add(&self, path: &Path) -> Result<i32, Errno> {
        let queue = self.queue.as_ref().ok_or(Errno::BADF)?;
        let number = inotify::add_watch(queue, path, EVENTS | DIRECTORY)?;
        if is_fit(path) == Ok(true) {
            return Ok(number);
        }
        self.remove(number);
        Err(Errno::NOTSUP)
    }

    /// Ends a watch; without effect where its directory is gone.
    pub(super) fn remove(&self, number: i32) {
        if let Some(queue) = &self.queue {
            let _is_gone = inotify::remove_watch(queue, number);
        }
    }

    /// Hands on what was reported. Returns whether that is all that there was: reports may be lost, and of what is mounted
    /// over a directory there are none.
    pub(super) fn take_reports(&self, mut take: impl FnMut(Report<'_>)) -> bool {
        let Some(queue) = &self.queue else { return false };
        let mut asked =
            [PollFd::new(queue, PollFlags::IN), PollFd::new(&self.mounts, PollFlags::PRI)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        if poll(&mut asked, Some(&at_once)).is_err() || !asked[1].revents().is_empty() {
            return false;
        }
        if asked[0].revents().is_empty() {
            return true;
        }
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut reader = Reader::new(queue.as_fd(), &mut buffer);
        for _ in 0..MAX_REPORTS {
            match reader.next() {
                Ok(event) if event.events().contains(ReadFlags::QUEUE_OVERFLOW) => return false,
                Ok(event) => take(Report {
                    number: event.wd(),
                    name: event.file_name().map(|it| it.to_bytes()),
                }),
                Err(Errno::INTR) => {}
                Err(error) => return error == Errno::AGAIN,
            }
        }
        false
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

/// Whether all that changes in a directory is reported, by the names that it is asked for by.
fn is_fit(path: &Path) -> Result<bool, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = open(path, flags, Mode::empty())?;
    let kind = fstatfs(&directory)?.f_type;
    let is_local = u32::try_from(kind).is_ok_and(|it| LOCAL.contains(&it));
    // Some have no flags.
    let is_folding = ioctl_getflags(&directory).is_ok_and(|it| it.bits() & CASEFOLD != 0);
    Ok(is_local && !is_folding)
}
