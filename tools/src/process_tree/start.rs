//! How a tree begins: below a reaper where there is one, else with the program itself.

use std::{ffi::OsStr, fs::File, io, os::fd::OwnedFd, process::Stdio, sync::Arc};
#[cfg(target_os = "linux")]
use std::{
    os::{fd::AsFd, unix::net::UnixStream},
    time::Duration,
};

use ennead_runtime::{
    ports::WorkGuard,
    sandbox::{SandboxNetwork, SandboxPolicy},
};
use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop, ProcessSession};
use tokio::{
    net::unix::pipe::Sender,
    process::{ChildStderr, ChildStdout, Command},
    runtime::Handle,
};

use super::{MARKER, ProcessTree, Processes, Rest, marks_with};
#[cfg(target_os = "linux")]
use super::{
    link::{self, ASK_TO_END, Report},
    sweep,
};
use crate::withdrawn_keys;
#[cfg(target_os = "linux")]
use crate::{helper, sandbox};

/// How long a reaper has to end everything before it is done without it. It itself waits five
/// seconds for a process that does not die.
#[cfg(target_os = "linux")]
const REAPER_LIMIT: Duration = Duration::from_secs(10);

/// How long `bwrap` has to make what confines a command. It takes some milliseconds, unless a place that is to be mounted
/// does not answer.
#[cfg(target_os = "linux")]
const BUBBLEWRAP_LIMIT: Duration = Duration::from_secs(30);

/// Names the file in which a hook leaves lines for later commands. It is taken out of the environment of all that is
/// started; who starts a hook sets it again.
pub const HOOK_FILE: &str = "CLAUDE_ENV_FILE";

/// What a program reads.
#[derive(Debug)]
pub enum ProcessInput {
    /// Standard input is empty.
    Nothing,
    /// Standard input is this file.
    File(File),
    /// What is written to [`Started::input`].
    Piped,
}

/// A program to be started as the leader of a session of its own.
#[derive(Debug)]
pub struct ProcessLaunch<'a> {
    /// Its name or path.
    pub program: &'a OsStr,
    /// The standard input of the program.
    pub input: ProcessInput,
    /// What becomes of what it leaves behind.
    pub rest: Rest,
    /// A word that all its processes carry in their environment and no others do; see
    /// [`super::new_mark`].
    pub mark: String,
    /// What confines it and all that it starts. Where that cannot be, it is not started.
    pub confine: Option<Arc<SandboxPolicy>>,
    /// Let go of when nothing of the tree is left.
    pub guard: WorkGuard,
}

/// A program that was started.
#[derive(Debug)]
pub struct Started {
    /// All processes that descend from the program.
    pub tree: ProcessTree,
    /// The way to its input, if that is [`ProcessInput::Piped`].
    pub input: Option<Sender>,
    /// Its output, if `configure` asked for it.
    pub stdout: Option<ChildStdout>,
    /// Its errors, if `configure` asked for them.
    pub stderr: Option<ChildStderr>,
}

impl ProcessLaunch<'_> {
    /// Starts it. `configure` adds arguments, directory, environment and outputs, not the input; it
    /// may be called twice. To be called on a runtime, where the end of the tree will be waited for.
    ///
    /// # Errors
    ///
    /// Those of `configure` and of starting the program.
    pub async fn start(
        self,
        configure: impl Fn(&mut Command) -> io::Result<()>,
    ) -> io::Result<Started> {
        let Self { program, input, rest, mark, confine, guard } = self;
        #[cfg(not(target_os = "linux"))]
        let _for_reapers = rest;
        let marks = marks_with(&mark);
        let configure = |command: &mut Command| {
            // That of a session around this one is not for what is started here.
            command.env_remove(HOOK_FILE);
            configure(command)?;
            command.env(MARKER, &marks).env_remove(withdrawn_keys::SOCKET);
            let policy = confine.as_deref();
            for (name, own) in
                [("HOME", policy.map(|it| &it.home)), ("TMPDIR", policy.map(|it| &it.tmpdir))]
            {
                if let Some(directory) = own.and_then(Option::as_ref) {
                    command.env(name, directory);
                }
            }
            #[cfg(target_os = "linux")]
            if let Some(policy) = policy.filter(|it| it.network == SandboxNetwork::Listed) {
                command.envs(proxy_variables(policy));
            }
            Ok(())
        };
        let (input, writer) = match input {
            ProcessInput::Nothing => (None, None),
            ProcessInput::File(file) => (Some(file.into()), None),
            ProcessInput::Piped => {
                let (reader, writer) = io::pipe()?;
                (Some(OwnedFd::from(reader)), Some(Sender::from_owned_fd(writer.into())?))
            }
        };
        let started = |mut processes: Processes| Started {
            input: None,
            stdout: processes.child.stdout().take(),
            stderr: processes.child.stderr().take(),
            tree: ProcessTree { processes: Some(processes), runtime: Handle::current() },
        };
        #[cfg(target_os = "linux")]
        if let Some(_confined) = &confine {
            // Looking at the kernel may take a millisecond, once.
            let checked = tokio::task::spawn_blocking(|| sandbox::kernel().check()).await;
            checked.map_err(io::Error::other)?.map_err(io::Error::other)?;
        }
        #[cfg(target_os = "linux")]
        if helper::is_offered() {
            let below = below_reaper(program, rest, confine.as_deref(), input.as_ref(), &configure);
            if let Ok((child, link, proxied)) = below {
                let reaper = Some(Reaper { link, ended: None });
                let (mark, guard) = (mark.clone(), guard.clone());
                let mut started = started(Processes {
                    child,
                    leader: None,
                    reaper,
                    mark,
                    has_exited: false,
                    is_ended: false,
                    guard,
                    proxy: None,
                });
                if started.tree.is_begun(begin_limit(confine.as_deref())).await? {
                    started.input = writer;
                    if let Some((way, policy)) = proxied.zip(confine.as_deref()) {
                        started.tree.open_proxy(&way, policy)?;
                    }
                    return Ok(started);
                }
                helper::give_up();
            }
        }
        if confine.is_some() {
            let why = "its helper failed, and without it nothing confines the command";
            return Err(io::Error::other(why));
        }
        let child = start_program(program, input, &configure)?;
        // Not reaped yet, so the number is the program's.
        #[cfg(target_os = "linux")]
        let leader = child
            .id()
            .and_then(|pid| i32::try_from(pid).ok())
            .and_then(|pid| Some((pid, sweep::started(pid)?)));
        let processes = Processes {
            child,
            #[cfg(target_os = "linux")]
            leader,
            #[cfg(target_os = "linux")]
            reaper: None,
            mark,
            has_exited: false,
            is_ended: false,
            guard,
            #[cfg(target_os = "linux")]
            proxy: None,
        };
        Ok(Started { input: writer, ..started(processes) })
    }
}

fn spawn(
    program: &OsStr,
    configure: impl FnOnce(&mut Command) -> io::Result<()>,
) -> io::Result<Box<dyn ChildWrapper>> {
    let mut configured = Ok(());
    let mut wrap = CommandWrap::with_new(program, |command| configured = configure(command));
    configured?;
    wrap.wrap(ProcessSession).wrap(KillOnDrop).spawn()
}

/// Starts the program itself.
fn start_program(
    program: &OsStr,
    input: Option<OwnedFd>,
    configure: &impl Fn(&mut Command) -> io::Result<()>,
) -> io::Result<Box<dyn ChildWrapper>> {
    spawn(program, |command| {
        configure(command)?;
        command.stdin(input.map_or_else(Stdio::null, Stdio::from));
        Ok(())
    })
}

/// Starts a reaper that starts the program.
#[cfg(target_os = "linux")]
fn below_reaper(
    program: &OsStr,
    rest: Rest,
    confine: Option<&SandboxPolicy>,
    input: Option<&OwnedFd>,
    configure: &impl Fn(&mut Command) -> io::Result<()>,
) -> io::Result<(Box<dyn ChildWrapper>, UnixStream, Option<UnixStream>)> {
    let (ours, theirs) = UnixStream::pair()?;
    let policy = confine.map(serde_json::to_string).transpose()?.unwrap_or_default();
    // The path of the executable may lead to a newer one by now; this leads to ours.
    let child = spawn(OsStr::new("/proc/self/exe"), |command| {
        command.arg0(helper::NAME);
        if confine.is_some() {
            command.args(sandbox::kernel().helper_word());
        }
        command.arg(rest.word()).arg(&policy).arg(program);
        configure(command)?;
        command.stdin(Stdio::from(OwnedFd::from(theirs)));
        Ok(())
    })?;
    // If it is gone already, that is noticed by who waits for its first word.
    let _gone = link::begin(&ours, input.map(AsFd::as_fd));
    let mut proxied = None;
    if confine.is_some_and(|it| it.network == SandboxNetwork::Listed) {
        let (here, there) = UnixStream::pair()?;
        let _gone = link::begin(&ours, Some(there.as_fd()));
        here.set_nonblocking(true)?;
        proxied = Some(here);
    }
    ours.set_nonblocking(true)?;
    Ok((child, ours, proxied))
}

/// Where programs find the proxy; what listens inside they reach without it.
#[cfg(target_os = "linux")]
fn proxy_variables(policy: &SandboxPolicy) -> Vec<(&'static str, String)> {
    let proxy = format!("http://127.0.0.1:{}", sandbox::PORT);
    let names =
        ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
    let inside = ["localhost", "127.0.0.1", "::1"];
    let inside = inside.into_iter().filter(|it| policy.hosts.allowed.iter().all(|own| own != it));
    let inside = inside.collect::<Vec<_>>().join(",");
    let without = ["NO_PROXY", "no_proxy"].map(|it| (it, inside.clone()));
    names.map(|it| (it, proxy.clone())).into_iter().chain(without).collect()
}

/// Returns the time in which a program is to be started, where something else has to be made for it.
#[cfg(target_os = "linux")]
fn begin_limit(confine: Option<&SandboxPolicy>) -> Option<Duration> {
    let is_by_bubblewrap = sandbox::kernel().helper_word() == Some(helper::BUBBLEWRAP);
    confine.filter(|_| is_by_bubblewrap).map(|_| BUBBLEWRAP_LIMIT)
}

/// Waits for the first report of a reaper; `None`: it has ended without one.
///
/// # Errors
///
/// That none came within the time.
#[cfg(target_os = "linux")]
async fn first_report(link: &UnixStream, limit: Option<Duration>) -> io::Result<Option<Report>> {
    let Some(limit) = limit else { return Report::wait(link).await };
    tokio::time::timeout(limit, Report::wait(link)).await.unwrap_or_else(|_| {
        let what = "bwrap did not make what confines the command within";
        let why = format!("{what} {} s (`doctor --sandbox` tries it)", limit.as_secs());
        Err(io::Error::new(io::ErrorKind::TimedOut, why))
    })
}

/// The way to the reaper of a tree.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub(super) struct Reaper {
    link: UnixStream,
    /// How the program ended, and how many processes outlived it; once that was read.
    ended: Option<(i32, u32)>,
}

#[cfg(target_os = "linux")]
impl Reaper {
    /// Returns the status of the program, once the reaper has ended.
    pub(super) fn status(&mut self) -> Option<i32> {
        if self.ended.is_none() {
            self.ended = read_end(&self.link);
        }
        self.ended.map(|it| it.0)
    }

    pub(super) fn ask_to_end(&self) {
        use std::io::Write as _;
        // It may be gone by now.
        let _gone = (&self.link).write_all(&[ASK_TO_END]);
    }

    /// Makes it end everything and itself, and returns how many processes outlived the program; `None` if it did not
    /// report that it is done.
    pub(super) fn end(self) -> Option<usize> {
        let ended = self.ended.or_else(|| {
            self.link.shutdown(std::net::Shutdown::Write).ok()?;
            self.link.set_nonblocking(false).ok()?;
            self.link.set_read_timeout(Some(REAPER_LIMIT)).ok()?;
            read_end(&self.link)
        });
        ended.and_then(|it| usize::try_from(it.1).ok())
    }
}

#[cfg(target_os = "linux")]
fn read_end(link: &UnixStream) -> Option<(i32, u32)> {
    loop {
        match Report::receive(link)? {
            Report::Ended { status, n_left } => return Some((status, n_left)),
            // The one that waited for it was dropped.
            Report::Started(_) => {}
            Report::Failed(_) => return None,
        }
    }
}

#[cfg(target_os = "linux")]
impl ProcessTree {
    /// Serves the socket in which the reaper listens, which it sent before it started the program.
    fn open_proxy(&mut self, way: &UnixStream, policy: &SandboxPolicy) -> io::Result<()> {
        let socket = link::begun(way)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let proxy = sandbox::Proxy::start(socket.into(), policy.hosts.clone())?;
        if let Some(processes) = &mut self.processes {
            processes.proxy = Some(proxy);
        }
        Ok(())
    }

    /// Waits until the reaper has started the program; false: it could not do its part. `limit` is the time in which it
    /// is to.
    ///
    /// # Errors
    ///
    /// That of starting the program; that it took too long.
    async fn is_begun(&mut self, limit: Option<Duration>) -> io::Result<bool> {
        let Some(processes) = &mut self.processes else { return Ok(false) };
        let Some(reaper) = &processes.reaper else { return Ok(false) };
        match first_report(&reaper.link, limit).await? {
            Some(Report::Started(pid)) => {
                // One that has ended already is no other with its number.
                processes.leader =
                    (pid != 0).then(|| (pid, sweep::started(pid).unwrap_or_default()));
                Ok(true)
            }
            Some(Report::Failed(link::BUBBLEWRAP_FAILED)) => {
                let why =
                    "bwrap could not make what confines the command (`doctor --sandbox` tries it)";
                Err(io::Error::other(why))
            }
            Some(Report::Failed(errno)) => Err(io::Error::from_raw_os_error(errno)),
            Some(Report::Ended { .. }) | None => Ok(false),
        }
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;

    // REQ: TOL-10
    #[tokio::test(start_paused = true)]
    async fn sandbox_that_is_not_made_in_time_is_given_up() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let error = first_report(&ours, Some(BUBBLEWRAP_LIMIT)).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(error.to_string().contains("within 30 s"), "{error}");
        Report::Started(7).send(&theirs).unwrap();
        let report = first_report(&ours, Some(BUBBLEWRAP_LIMIT)).await.unwrap();
        assert!(matches!(report, Some(Report::Started(7))));
        drop(theirs);
        assert!(first_report(&ours, Some(BUBBLEWRAP_LIMIT)).await.unwrap().is_none());
    }
}
