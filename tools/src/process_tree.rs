//! The processes that something started, with all that they started in turn.
//!
//! Alone here is the promise that nothing of it outlives whoever owns it: however that ends, also by
//! dropping it, a thread ends the whole tree, and only then lets go of the owner's `hold`.

#[cfg(target_os = "linux")]
mod sweep;

use std::{
    ffi::OsString,
    io,
    process::ExitStatus,
    sync::atomic::{AtomicU64, Ordering},
};

use ennead_runtime::ports::Hold;
use process_wrap::tokio::ChildWrapper;
use tokio::runtime::Handle;

/// The variable that marks all processes of a tree. A list, as a command may run another ennead.
pub const MARKER: &str = "ENNEAD_CALL";

/// A mark that no other tree has. `kind` says of what it is.
pub fn new_mark(kind: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{kind}-{}-{number}", std::process::id())
}

/// The value of [`MARKER`] for processes with this mark: behind those that we carry ourselves.
pub fn marks_with(mark: &str) -> OsString {
    let mut marks = std::env::var_os(MARKER).unwrap_or_default();
    if !marks.is_empty() {
        marks.push(",");
    }
    marks.push(mark);
    marks
}

/// All processes of a call, a hook or a server. Ended when dropped.
#[derive(Debug)]
pub struct Tree {
    /// Taken when the tree is being ended.
    processes: Option<Processes>,
    runtime: Handle,
}

impl Tree {
    /// The tree below `child`, all of whose processes carry `mark`: it was started with [`MARKER`]
    /// set to [`marks_with`] that, as the leader of a session or group. `hold` is kept until the tree
    /// is ended. To be called on a runtime, where its end will be waited for.
    pub fn new(child: Box<dyn ChildWrapper>, mark: String, hold: Hold) -> Self {
        let leader = child.id().and_then(|pid| i32::try_from(pid).ok());
        // Not reaped yet, so the number is the shell's.
        #[cfg(target_os = "linux")]
        let leader = leader.and_then(|pid| Some((pid, sweep::started(pid)?)));
        let processes =
            Processes { child, leader, mark, has_exited: false, is_ended: false, _hold: hold };
        Self { processes: Some(processes), runtime: Handle::current() }
    }

    /// Waits for the shell. May be dropped and called again.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        let Some(processes) = &mut self.processes else { return std::future::pending().await };
        let status = processes.child.wait().await?;
        processes.has_exited = true;
        Ok(status)
    }

    /// Asks all of the group to end. Nobody waits for that.
    pub fn ask_to_end(&self) {
        if let Some(processes) = &self.processes {
            // 15 is SIGTERM everywhere. The group may be gone by now.
            let _gone = processes.child.signal(15);
        }
    }

    /// Lets go of what is left, once the first process has ended: it is meant to stay.
    pub fn leave(mut self) {
        if let Some(mut processes) = self.processes.take_if(|it| it.has_exited) {
            processes.is_ended = true;
        }
    }

    /// Ends what is left and says how many that were.
    pub async fn end(mut self) -> usize {
        let Some(mut processes) = self.processes.take() else { return 0 };
        let ended = self.runtime.spawn_blocking(move || processes.end());
        // A panic in there ends the processes by dropping them.
        ended.await.unwrap_or_default()
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if let Some(mut processes) = self.processes.take() {
            // If the runtime is being shut down, the closure is dropped and ends them then.
            self.runtime.spawn_blocking(move || processes.end());
        }
    }
}

#[derive(Debug)]
struct Processes {
    child: Box<dyn ChildWrapper>,
    #[cfg(target_os = "linux")]
    leader: Option<sweep::Process>,
    #[cfg(not(target_os = "linux"))]
    #[expect(dead_code, reason = "only Linux tells which processes there are")]
    leader: Option<i32>,
    mark: String,
    has_exited: bool,
    is_ended: bool,
    _hold: Hold,
}

impl Processes {
    /// Ends all and waits until they are gone. Returns how many were left beside the shell.
    fn end(&mut self) -> usize {
        self.is_ended = true;
        let n_ended = self.sweep();
        if !self.has_exited {
            // Also where there is no sweep. The number is still ours, as the shell is not reaped.
            let _gone_already = self.child.start_kill();
        }
        n_ended
    }

    #[cfg(target_os = "linux")]
    fn sweep(&self) -> usize {
        self.leader.map_or(0, |leader| sweep::end_all(leader, &self.mark))
    }

    #[cfg(not(target_os = "linux"))]
    fn sweep(&self) -> usize {
        0
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        if !self.is_ended {
            self.end();
        }
    }
}
