//! The processes that something started, with all that they started in turn.
//!
//! It keeps the promise that nothing of it outlives the one that owns it: however that ends,
//! also by dropping it, a thread ends the whole tree, and only then lets go of the owner's `guard`.

#[cfg(target_os = "linux")]
mod link;
#[cfg(target_os = "linux")]
mod outside;
#[cfg(target_os = "linux")]
pub mod reaper;
mod start;
#[cfg(target_os = "linux")]
mod sweep;

#[cfg(target_os = "linux")]
use std::{ffi::OsStr, os::unix::process::ExitStatusExt};
use std::{
    ffi::OsString,
    io,
    process::ExitStatus,
    sync::atomic::{AtomicU64, Ordering},
};

use ennead_runtime::ports::WorkGuard;
use process_wrap::tokio::ChildWrapper;
pub use start::{HOOK_FILE, ProcessInput, ProcessLaunch, Started};
use tokio::runtime::Handle;

/// The variable that marks all processes of a tree. A list, as a command may run another ennead.
const MARKER: &str = "ENNEAD_CALL";

/// Makes a mark that no other tree has. `kind` names the kind of tree.
pub fn new_mark(kind: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{kind}-{}-{number}", std::process::id())
}

/// The value of [`MARKER`] for processes with this mark: after those that we carry ourselves.
fn marks_with(mark: &str) -> OsString {
    let mut marks = std::env::var_os(MARKER).unwrap_or_default();
    if !marks.is_empty() {
        marks.push(",");
    }
    marks.push(mark);
    marks
}

/// What becomes of processes that are still there when the first one has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// The processes that are left are ended.
    Ends,
    /// Processes that remain are meant to stay.
    Stays,
}

impl Rest {
    /// Returns the word by which a reaper receives it.
    #[cfg(target_os = "linux")]
    fn word(self) -> &'static str {
        match self {
            Rest::Ends => "ends",
            Rest::Stays => "stays",
        }
    }

    #[cfg(target_os = "linux")]
    fn read(word: &OsStr) -> Option<Self> {
        [Rest::Ends, Rest::Stays].into_iter().find(|it| word == it.word())
    }
}

/// All processes of a call, a hook or a server. Ended when dropped.
#[derive(Debug)]
pub struct ProcessTree {
    /// Taken when the tree is being ended.
    processes: Option<Processes>,
    runtime: Handle,
}

impl ProcessTree {
    /// Waits for the first process; where there is a reaper and the rest ends, also for that. May be
    /// dropped and called again.
    ///
    /// # Errors
    ///
    /// When the system cannot say how it ended.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        let Some(processes) = &mut self.processes else { return std::future::pending().await };
        let status = processes.child.wait().await?;
        processes.has_exited = true;
        Ok(processes.reaper_status().unwrap_or(status))
    }

    /// Drops its owner's `guard`, and keeps this one until nothing of the tree is left.
    pub(crate) fn hold_by(&mut self, guard: WorkGuard) {
        if let Some(processes) = &mut self.processes {
            processes.guard = guard;
        }
    }

    /// Asks all of the first one's group to end, and does not wait for that.
    pub fn ask_to_end(&self) {
        if let Some(processes) = &self.processes {
            processes.ask_to_end();
        }
    }

    /// Leaves what is left of the tree, once the first process has ended: it is meant to stay.
    pub fn leave(mut self) {
        if let Some(mut processes) = self.processes.take_if(|it| it.has_exited) {
            processes.is_ended = true;
        }
    }

    /// Ends what is left and says how many processes outlived the first one.
    pub async fn end(mut self) -> usize {
        let Some(mut processes) = self.processes.take() else { return 0 };
        let ended = self.runtime.spawn_blocking(move || processes.end());
        // A panic in there ends the processes by dropping them.
        ended.await.unwrap_or_default()
    }
}

impl Drop for ProcessTree {
    fn drop(&mut self) {
        if let Some(mut processes) = self.processes.take() {
            // If the runtime is being shut down, the closure is dropped and ends them then.
            self.runtime.spawn_blocking(move || processes.end());
        }
    }
}

#[derive(Debug)]
struct Processes {
    /// The first process, or its reaper.
    child: Box<dyn ChildWrapper>,
    /// The first process, once its number is known.
    #[cfg(target_os = "linux")]
    leader: Option<sweep::Process>,
    #[cfg(target_os = "linux")]
    reaper: Option<start::Reaper>,
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux tells of others"))]
    mark: String,
    has_exited: bool,
    is_ended: bool,
    guard: WorkGuard,
    /// What it reaches a network through.
    #[cfg(target_os = "linux")]
    proxy: Option<crate::sandbox::Proxy>,
}

impl Processes {
    /// Ends all and waits until they are gone. Returns how many were left in addition to the first
    /// one.
    fn end(&mut self) -> usize {
        self.is_ended = true;
        let n_ended = self.end_rest();
        if !self.has_exited {
            // Also where there is no sweep. The number is still ours, as the child is not reaped.
            let _gone_already = self.child.start_kill();
        }
        n_ended
    }

    #[cfg(target_os = "linux")]
    fn end_rest(&mut self) -> usize {
        // A reaper that was killed itself says nothing.
        match self.reaper.take().and_then(start::Reaper::end) {
            Some(n_left) => n_left,
            None => {
                let whose = sweep::SweepTarget::Marked { leader: self.leader, mark: &self.mark };
                sweep::end_all(whose).n_ended
            }
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn end_rest(&mut self) -> usize {
        0
    }

    /// What the reaper says of how the first process ended.
    #[cfg(target_os = "linux")]
    fn reaper_status(&mut self) -> Option<ExitStatus> {
        Some(ExitStatus::from_raw(self.reaper.as_mut()?.status()?))
    }

    #[cfg(not(target_os = "linux"))]
    fn reaper_status(&mut self) -> Option<ExitStatus> {
        None
    }

    fn ask_to_end(&self) {
        #[cfg(target_os = "linux")]
        if let Some(reaper) = &self.reaper {
            return reaper.ask_to_end();
        }
        // 15 is SIGTERM everywhere. The group may be gone by now.
        let _gone = self.child.signal(15);
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        if !self.is_ended {
            self.end();
        }
    }
}
