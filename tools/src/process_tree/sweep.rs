//! Finds and ends every process of a tree, also one that left its session.
//!
//! A process belongs to a tree if its session or group is the first one's, if it carries the tree's
//! mark in its environment, or if an ancestor of it does. What escapes is only a process that left
//! the session, lost its parent and wiped its environment; for that a PID namespace is needed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};

use super::MARKER;

/// A process, told apart from a later one with the same number by its start time.
pub(super) type Process = (i32, u64);

/// When a process was started, in ticks; with its number, its name.
pub(super) fn started(pid: i32) -> Option<u64> {
    Stat::read(pid).map(|stat| stat.started)
}

/// Kills all and waits until they are gone. Returns how many there were beside the leader, which
/// may be gone already.
pub(super) fn end_all(leader: Process, mark: &str) -> usize {
    let mut ended: BTreeSet<Process> = BTreeSet::new();
    let mut spared: BTreeSet<Process> = BTreeSet::new();
    loop {
        // A process can be started while we look, by one that we have not killed yet. Once a look
        // finds none, there is none left to start another.
        let found = find(leader, mark);
        let mut dying = Vec::new();
        for process in &found {
            if spared.contains(process) {
                continue;
            }
            match kill(*process) {
                Ok(Some(handle)) => {
                    dying.push(handle);
                    ended.insert(*process);
                }
                // It went by itself.
                Ok(None) => {}
                // It belongs to somebody else now.
                Err(_) => {
                    spared.insert(*process);
                }
            }
        }
        if found.is_subset(&spared) {
            ended.remove(&leader);
            return ended.len();
        }
        for handle in &dying {
            // Readable when the process has ended. A signal to us only makes us look once more.
            let _ = poll(&mut [PollFd::new(handle, PollFlags::IN)], None);
        }
    }
}

/// Sends the signal to this process and to no later one of the same number.
fn kill((pid, started): Process) -> rustix::io::Result<Option<rustix::fd::OwnedFd>> {
    let Some(number) = Pid::from_raw(pid) else { return Ok(None) };
    let gone = |errno| if errno == rustix::io::Errno::SRCH { Ok(None) } else { Err(errno) };
    let handle = match pidfd_open(number, PidfdFlags::empty()) {
        Ok(handle) => handle,
        Err(errno) => return gone(errno),
    };
    // Looked at after it was opened: the handle stands for what is seen here.
    if Stat::read(pid).is_none_or(|stat| stat.started != started) {
        return Ok(None);
    }
    match pidfd_send_signal(&handle, Signal::KILL) {
        Ok(()) => Ok(Some(handle)),
        Err(errno) => gone(errno),
    }
}

/// Living processes of the call.
fn find((leader, started): Process, mark: &str) -> BTreeSet<Process> {
    let mut all: BTreeMap<i32, Stat> = BTreeMap::new();
    let Ok(entries) = fs::read_dir("/proc") else { return BTreeSet::new() };
    for entry in entries.flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if let Some((pid, stat)) = pid.and_then(|pid| Some((pid, Stat::read(pid)?))) {
            all.insert(pid, stat);
        }
    }
    // Once the shell is gone and nothing of its session is left, its number may be another's.
    let is_ours = all.get(&leader).is_none_or(|stat| stat.started == started);
    let ourselves = i32::try_from(std::process::id()).unwrap_or(0);
    let mut found: BTreeSet<i32> = all
        .iter()
        .filter(|(pid, stat)| {
            is_ours && (**pid == leader || stat.group == leader || stat.session == leader)
                || has_mark(**pid, mark)
        })
        .map(|(pid, _)| *pid)
        .collect();
    loop {
        let children: Vec<i32> = all
            .iter()
            .filter(|(pid, stat)| found.contains(&stat.parent) && !found.contains(pid))
            .map(|(pid, _)| *pid)
            .collect();
        if children.is_empty() {
            break;
        }
        found.extend(children);
    }
    found.remove(&ourselves);
    found
        .into_iter()
        .filter_map(|pid| all.get(&pid).filter(|stat| stat.lives).map(|stat| (pid, stat.started)))
        .collect()
}

/// Whether the environment that a process was started with names the call.
fn has_mark(pid: i32, mark: &str) -> bool {
    let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else { return false };
    environment
        .split(|byte| *byte == 0)
        .filter_map(|entry| entry.strip_prefix(MARKER.as_bytes())?.strip_prefix(b"="))
        .any(|marks| marks.split(|byte| *byte == b',').any(|one| one == mark.as_bytes()))
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
