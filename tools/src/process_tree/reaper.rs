//! The reaper: a small process between us and a program, from whose descendants none can get away.
//!
//! It is the executable of this process, started once more under another name. Whatever loses its
//! parent below it becomes its child (`PR_SET_CHILD_SUBREAPER`), also a daemon that has left session
//! and group and wiped its environment. So "nothing is left" is what the kernel says, once the reaper
//! has no children, and not what a look at `/proc` did not find. When the process that started it is
//! gone, however that came about, it ends everything below it and itself.
//!
//! A program below it can kill it, as any process of its user; what is left is then found as without
//! a reaper.

use std::{
    ffi::OsString,
    io::{self, Read},
    os::{fd::AsFd, unix::net::UnixStream},
    process::{ExitCode, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicI32, Ordering},
    },
    thread::JoinHandle,
};

use ennead_runtime::sandbox::{SandboxNetwork, SandboxPolicy};
use process_wrap::std::{ChildWrapper, CommandWrap, ProcessSession};
use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitOptions, getpid, kill_process_group, set_child_subreaper, wait},
};

use super::{
    Rest,
    link::{self, ASK_TO_END, Report},
    outside::{self, null, own_link},
    sweep::{self, SweepTarget},
};
use crate::{
    helper::{self, BUBBLEWRAP, FIRST, INSIDE, OUTER, PROBE, PROBE_PROCESSES},
    locked::Locked as _,
    sandbox::{self, Confinement},
};
use ennead_runtime::saturating::Saturating as _;

/// Runs the reaper, if this process was started as one, and returns its exit code. To be called before anything else by
/// the `main` of a program whose commands are to leave nothing behind:
///
/// ```no_run
/// # use std::process::ExitCode;
/// fn main() -> ExitCode {
///     if let Some(ended) = ennead_tools::process_tree::reaper::serve() {
///         return ended;
///     }
///     // The program.
///     ExitCode::SUCCESS
/// }
/// ```
///
/// A program that does not call it runs its commands without a reaper: processes that leave their
/// session are then found by a mark in their environment, and those of a host that is killed stay.
pub fn serve() -> Option<ExitCode> {
    let mut words = std::env::args_os();
    if !helper::is_started(&mut words) {
        helper::offer();
        return None;
    }
    Some(if keep(words).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What the threads of a reaper share.
struct ReaperThreads {
    link: UnixStream,
    /// The program, as the leader of its group; 0 when it has ended.
    first: AtomicI32,
    /// Whether no process is left below this one.
    is_over: AtomicBool,
    /// How the program ended, as `wait` gives it.
    status: Mutex<i32>,
    sweep: Mutex<Option<JoinHandle<u32>>>,
}

/// `words`: what becomes of the rest, the policy of the sandbox or nothing, the program and its
/// arguments.
fn keep(mut words: impl Iterator<Item = OsString>) -> io::Result<()> {
    let mut first = words.next();
    let mut by = Confinement::Landlock;
    match first.as_ref().and_then(|it| it.to_str()) {
        Some(PROBE) => return sandbox::listen(by).map(drop),
        Some(OUTER) => return outside::separate(words),
        Some(BUBBLEWRAP) => return outside::wrap(words),
        Some(INSIDE) => {
            by = Confinement::Bubblewrap;
            outside::take_streams()?;
            if let Err(error) = sandbox::begin_inside() {
                return failed(&error, &own_link()?);
            }
            first = words.next();
            if first.as_ref().is_some_and(|it| it == PROBE_PROCESSES) {
                return sandbox::confine(&sandbox::probe(), by);
            }
        }
        Some(FIRST) => {
            if let Err(error) = sandbox::begin() {
                return failed(&error, &own_link()?);
            }
            first = words.next();
            if first.as_ref().is_some_and(|it| it == PROBE_PROCESSES) {
                return Ok(());
            }
        }
        _ => {}
    }
    let rest = first.and_then(|it| Rest::read(&it));
    let policy = words.next().and_then(|it| it.into_string().ok());
    let (Some(rest), Some(policy), Some(program)) = (rest, policy, words.next()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let policy: Option<SandboxPolicy> = match policy.as_str() {
        "" => None,
        text => Some(serde_json::from_str(text)?),
    };
    let link = own_link()?;
    let null = null()?;
    let input = link::begun(&link)?;
    rustix::stdio::dup2_stdin(&null)?;
    if policy.as_ref().is_some_and(|it| it.network == SandboxNetwork::Listed) {
        // Before there are threads, which the kernel does not allow.
        if let Err(error) = listen(&link, by) {
            return failed(&error, &link);
        }
    }
    set_child_subreaper(Some(getpid()))?;
    let mut command = CommandWrap::with_new(program, |command| {
        command.args(words).stdin(input.map_or_else(Stdio::null, Stdio::from));
    });
    let first = match spawn(command.wrap(ProcessSession), policy.as_ref(), by) {
        Ok(child) => i32::try_from(child.id()).unwrap_or_default(),
        Err(error) => return failed(&error, &link),
    };
    // The program's pipes are to close with the program.
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    // Nobody may be there to hear it, which the other thread notices.
    // The numbers of a PID namespace mean others outside.
    let shown = if getpid().is_init() { 0 } else { first };
    let _gone = Report::Started(shown).send(&link);
    let reaper = Arc::new(ReaperThreads {
        link,
        first: AtomicI32::new(first),
        is_over: AtomicBool::new(false),
        status: Mutex::default(),
        sweep: Mutex::default(),
    });
    let listening = Arc::clone(&reaper);
    std::thread::Builder::new().spawn(move || listening.listen())?;
    reaper.reap(rest)
}

/// Takes this process out of the network, and hands over where it listens from now on.
fn listen(link: &UnixStream, by: Confinement) -> io::Result<()> {
    let way = link::begun(link)?.ok_or(io::ErrorKind::InvalidInput)?;
    let socket = sandbox::listen(by)?;
    link::begin(&UnixStream::from(way), Some(socket.as_fd()))
}

/// Reports why the program cannot be started.
pub(super) fn failed(error: &io::Error, link: &UnixStream) -> io::Result<()> {
    let errno = error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error());
    Report::Failed(errno).send(link)
}

/// Starts the program. Where Landlock confines it, from a thread of its own, so that this process keeps its rights over
/// what is below it; what `bwrap` has made takes none of those, and the filter of system calls holds this process, too.
fn spawn(
    command: &mut CommandWrap,
    policy: Option<&SandboxPolicy>,
    by: Confinement,
) -> io::Result<Box<dyn ChildWrapper>> {
    let Some(policy) = policy else { return command.spawn() };
    sandbox::prepare(policy)?;
    if by == Confinement::Bubblewrap {
        sandbox::confine(policy, by)?;
        return command.spawn();
    }
    std::thread::scope(|scope| {
        let confined = std::thread::Builder::new().spawn_scoped(scope, || {
            sandbox::confine(policy, by)?;
            command.spawn()
        })?;
        confined.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
    })
}

impl ReaperThreads {
    /// Waits for the one that started us; when it is gone, all is ended.
    fn listen(self: &Arc<Self>) {
        let mut byte = [0];
        loop {
            match (&self.link).read(&mut byte) {
                Ok(1) if byte == [ASK_TO_END] => {
                    if let Some(group) = Pid::from_raw(self.first.load(Ordering::SeqCst)) {
                        // It may be gone by now.
                        let _gone = kill_process_group(group, Signal::TERM);
                    }
                }
                Ok(1) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => return self.begin_sweep(),
            }
        }
    }

    /// Takes in every child that ends, until there is none.
    fn reap(self: &Arc<Self>, rest: Rest) -> io::Result<()> {
        let mut options = WaitOptions::empty();
        loop {
            match wait(options) {
                Ok(Some((pid, status)))
                    if pid.as_raw_pid() == self.first.load(Ordering::SeqCst) =>
                {
                    self.first.store(0, Ordering::SeqCst);
                    *self.status.locked() = status.as_raw();
                    // Not where the end of all is under way: this one ended by it.
                    if rest == Rest::Stays && self.sweep.locked().is_none() {
                        return self.send_count(0);
                    }
                    options = WaitOptions::NOHANG;
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                // Some still run.
                Ok(None) => {
                    self.begin_sweep();
                    options = WaitOptions::empty();
                }
                // There are none, and so none below them.
                Err(_) => break,
            }
        }
        self.is_over.store(true, Ordering::SeqCst);
        let sweep = self.sweep.locked().take();
        let n_left = sweep.and_then(|it| it.join().ok()).unwrap_or_default();
        self.send_count(n_left)
    }

    /// Ends all that is below us, in a thread of its own, as its dead must be taken in meanwhile.
    fn begin_sweep(self: &Arc<Self>) {
        let mut begun = self.sweep.locked();
        if begun.is_none() && !self.is_over.load(Ordering::SeqCst) {
            let sweeping = Arc::clone(self);
            *begun = std::thread::Builder::new().spawn(move || sweeping.sweep()).ok();
        }
    }

    /// Ends all until nothing is left. Returns how many there were in addition to the program.
    fn sweep(&self) -> u32 {
        let mut n_left = 0;
        loop {
            let first = self.first.load(Ordering::SeqCst);
            let swept = sweep::end_all(SweepTarget::Below(getpid().as_raw_pid()));
            let others = swept.n_ended.saturating_sub(usize::from(first != 0));
            n_left += u32::saturating(others);
            if swept.n_spared != 0 {
                // They cannot be ended, and will not be waited for.
                if first == 0 {
                    let _gone = self.send_count(n_left);
                }
                std::process::exit(0);
            }
            if self.is_over.load(Ordering::SeqCst) {
                return n_left;
            }
        }
    }

    fn send_count(&self, n_left: u32) -> io::Result<()> {
        Report::Ended { status: *self.status.locked(), n_left }.send(&self.link)
    }
}
