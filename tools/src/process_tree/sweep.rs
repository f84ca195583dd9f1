//! Finds and ends every process of a tree, also one that left its session.
//!
//! Two ways to say which those are. Below a reaper, all are its descendants and nothing can leave.
//! Without one, a process belongs to a tree if its session or group is the first one's, if it carries
//! the tree's mark in its environment, or if an ancestor of it does. What escapes then is only a process
//! that left the session, lost its parent and wiped its environment.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, thread,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};

use super::MARKER;

/// A process, distinguished from a later one with the same number by its start time.
pub(super) type Process = (i32, u64);

/// How long a killed process is waited for. The kernel keeps one in the middle of a call that it does
/// not break off, such as one to a server of files that is gone.
const DYING: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

/// Looks in a row that must find nothing where a process may be overlooked: one that takes the place
/// of its parent while we look can be missed once, and is seen next time.
const EMPTY_LOOKS: u32 = 2;

/// Looks that are repeated because a process between two programs showed no environment, and the
/// pause between them. It takes microseconds to get there, and some never have an environment.
const UNCLEAR_LOOKS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(1);

/// Returns when a process was started, in ticks; its number and this name it.
pub(super) fn started(pid: i32) -> Option<u64> {
    Stat::read(pid).map(|stat| stat.started)
}

/// Which processes are to be ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum SweepTarget<'a> {
    /// Those of a session, and those with this mark. The leader may be gone already.
    Marked { leader: Option<Process>, mark: &'a str },
    /// All descendants of this process, without itself.
    Below(i32),
}

/// What a sweep did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SweepCount {
    /// Processes that were ended, without the leader.
    pub(super) n_ended: usize,
    /// Processes that are still there: they belong to another user, or the kernel does not let go of
    /// them.
    pub(super) n_spared: usize,
}

/// Kills all and waits until they are gone.
pub(super) fn end_all(whose: SweepTarget<'_>) -> SweepCount {
    let mut ended: BTreeSet<Process> = BTreeSet::new();
    let mut spared: BTreeSet<Process> = BTreeSet::new();
    let (mut n_empty, mut n_unclear) = (0, 0);
    while n_empty < EMPTY_LOOKS {
        // A process can be started while we look, by one that we have not killed yet. Once no look
        // finds any, there is none left to start another.
        let look = whose.look();
        if look.found.is_subset(&spared) {
            if look.is_unclear && n_unclear < UNCLEAR_LOOKS {
                n_unclear += 1
            } else {
                n_empty += 1
            }
            thread::sleep(PAUSE);
            continue;
        }
        n_empty = 0;
        let mut dying = Vec::new();
        for process in look.found {
            if spared.contains(&process) {
                continue;
            }
            match kill(process) {
                Ok(Some(handle)) => dying.push((process, handle)),
                // It went by itself.
                Ok(None) => {}
                // It belongs to somebody else now.
                Err(_) => {
                    spared.insert(process);
                }
            }
        }
        for (process, handle) in dying {
            // Readable when the process has ended. A signal to us only makes us look once more.
            match poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&DYING)) {
                Ok(0) => spared.insert(process),
                _ => ended.insert(process),
            };
        }
    }
    if let SweepTarget::Marked { leader: Some(leader), .. } = whose {
        ended.remove(&leader);
    }
    SweepCount { n_ended: ended.len(), n_spared: spared.len() }
}

/// Sends the signal to this process and to no later one of the same number.
fn kill((pid, started): Process) -> rustix::io::Result<Option<rustix::fd::OwnedFd>> {
    let Some(number) = Pid::from_raw(pid) else { return Ok(None) };
    let gone = |errno| if errno == rustix::io::Errno::SRCH { Ok(None) } else { Err(errno) };
    let handle = match pidfd_open(number, PidfdFlags::empty()) {
        Ok(handle) => handle,
        Err(errno) => return gone(errno),
    };
    // Looked at after it was opened: the handle represents what is seen here.
    if Stat::read(pid).is_none_or(|stat| stat.started != started) {
        return Ok(None);
    }
    match pidfd_send_signal(&handle, Signal::KILL) {
        Ok(()) => Ok(Some(handle)),
        Err(errno) => gone(errno),
    }
}

/// What one look at all processes found.
struct Look {
    /// Living processes of the tree.
    found: BTreeSet<Process>,
    /// Some process may be one of them and could not be distinguished just now.
    is_unclear: bool,
}

impl SweepTarget<'_> {
    fn look(self) -> Look {
        let mut all: BTreeMap<i32, Stat> = BTreeMap::new();
        let mut is_unclear = false;
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
            if let Some((pid, stat)) = pid.and_then(|pid| Some((pid, Stat::read(pid)?))) {
                all.insert(pid, stat);
            }
        }
        let ourselves = i32::try_from(std::process::id()).unwrap_or(0);
        let mut found: BTreeSet<i32> = match self {
            SweepTarget::Below(ancestor) => BTreeSet::from([ancestor]),
            SweepTarget::Marked { leader, mark } => {
                // Once the shell is gone and nothing of its session is left, its number may be another's.
                let is_ours = |(pid, started): &Process| {
                    all.get(pid).is_none_or(|stat| stat.started == *started)
                };
                let number = leader.filter(is_ours).map(|it| it.0);
                let started = leader.map_or(0, |it| it.1);
                let mut is_member = |pid: i32, stat: &Stat| {
                    number.is_some_and(|it| [pid, stat.group, stat.session].contains(&it))
                        || match has_mark(pid, mark) {
                            Marked::Yes => true,
                            Marked::No => false,
                            Marked::Unclear => {
                                // Threads of the kernel have no environment either, and are older.
                                is_unclear |= stat.lives && started <= stat.started;
                                false
                            }
                        }
                };
                all.iter().filter(|(pid, stat)| is_member(**pid, stat)).map(|it| *it.0).collect()
            }
        };
        let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
        for (pid, stat) in &all {
            children.entry(stat.parent).or_default().push(*pid);
        }
        let mut parents: Vec<i32> = found.iter().copied().collect();
        while let Some(parent) = parents.pop() {
            let of_it = children.get(&parent).into_iter().flatten();
            parents.extend(of_it.filter(|it| found.insert(**it)));
        }
        if let SweepTarget::Below(ancestor) = self {
            found.remove(&ancestor);
        }
        found.remove(&ourselves);
        let living = |pid| all.get(&pid).filter(|it| it.lives).map(|it| (pid, it.started));
        Look { found: found.into_iter().filter_map(living).collect(), is_unclear }
    }
}

enum Marked {
    Yes,
    No,
    /// The process has no environment, or none yet.
    Unclear,
}

/// Whether the environment that a process was started with names the call.
fn has_mark(pid: i32, mark: &str) -> Marked {
    let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else { return Marked::No };
    if environment.is_empty() {
        return Marked::Unclear;
    }
    let mut marks = environment
        .split(|byte| *byte == 0)
        .filter_map(|entry| entry.strip_prefix(MARKER.as_bytes())?.strip_prefix(b"="))
        .flat_map(|marks| marks.split(|byte| *byte == b','));
    if marks.any(|one| one == mark.as_bytes()) { Marked::Yes } else { Marked::No }
}

/// What the kernel says of a process.
struct Stat {
    lives: bool,
    parent: i32,
    group: i32,
    session: i32,
    started: u64,
}

impl Stat {
    fn read(pid: i32) -> Option<Self> {
        let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let text = String::from_utf8_lossy(&text);
        // The name before it is in parentheses and may hold anything.
        let (_, fields) = text.rsplit_once(") ")?;
        let fields: Vec<&str> = fields.split(' ').collect();
        Some(Self {
            // A zombie can touch nothing any more.
            lives: !matches!(*fields.first()?, "Z" | "X"),
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
        })
    }
}
