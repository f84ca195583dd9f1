//! The process tree of one command.
//!
//! Alone here is the promise that nothing of it outlives the call: however the call ends, also by
//! dropping its future, a thread ends the whole tree, and only then lets go of the call's `hold`.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, PipeReader, PipeWriter, Read},
    os::{fd::OwnedFd, unix::process::ExitStatusExt},
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use ennead_runtime::{
    ids::ToolUseId,
    ports::{Hold, ToolContext},
};
use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop, ProcessSession};
use tokio::{io::AsyncReadExt, net::unix::pipe::Receiver, runtime::Handle};

use super::capture::Capture;
use crate::output::spill_path;

/// The variable that marks all processes of a call. A list, as a command may run another ennead.
pub(super) const MARKER: &str = "ENNEAD_CALL";

/// Bytes of output after which a command is ended.
const MAX_OUTPUT_BYTES: u64 = 5_000_000_000;

/// Bytes that a pipe holds at most; so much can be left in it when its writers are gone.
const PIPE_BYTES: u64 = 1 << 20;

/// What to run.
#[derive(Debug)]
pub(super) struct Order<'a> {
    pub(super) id: &'a ToolUseId,
    pub(super) command: &'a str,
    pub(super) cwd: &'a Path,
    /// Where the shell says at its end in which directory it is.
    pub(super) cwd_file: &'a Path,
    pub(super) timeout: Duration,
    pub(super) max_chars: usize,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// By itself; 128 and the signal's number, if a signal ended it.
    Exited(i32),
    TimedOut,
    Cancelled,
    TooMuchOutput,
}

/// What it was.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) ending: Ending,
    pub(super) capture: Capture,
    /// Processes that were still there when the shell had ended.
    pub(super) n_left_over: usize,
}

/// Runs a command to its end.
pub(super) async fn run(order: &Order<'_>, context: &ToolContext) -> io::Result<Ran> {
    let mark = mark(order, context);
    let (child, output) = match start("bash", order, context, &mark) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => start("sh", order, context, &mark),
        started => started,
    }?;
    let mut tree = Tree::new(child, mark, context.hold.clone());
    let mut output = Receiver::from_owned_fd(OwnedFd::from(output))?;
    let mut capture = Capture::new(order.max_chars, spill_path(context, order.id));
    let mut buffer = vec![0; 64 << 10];
    let mut is_open = true;
    let mut cancelled = context.cancel.cancelled();
    let timeout = tokio::time::sleep(order.timeout);
    tokio::pin!(timeout);
    let ending = loop {
        if context.cancel.is_cancelled() {
            break Ending::Cancelled;
        }
        tokio::select! {
            biased;
            () = &mut cancelled => break Ending::Cancelled,
            status = tree.wait() => break Ending::Exited(exit_code(status?)),
            () = &mut timeout => break Ending::TimedOut,
            read = output.read(&mut buffer), if is_open => match read {
                Ok(0) | Err(_) => is_open = false,
                Ok(n) => {
                    capture.push(&buffer[..n]).await;
                    if capture.n_bytes() > MAX_OUTPUT_BYTES {
                        break Ending::TooMuchOutput;
                    }
                }
            },
        }
    };
    let n_left_over = tree.end().await;
    // All writers are gone: what they wrote is in the pipe, and there is nothing to wait for.
    let mut rest = Vec::new();
    let pipe = File::from(output.into_nonblocking_fd()?);
    // Ends with `WouldBlock` if a process that cannot be ended still holds the pipe.
    let _ = pipe.take(PIPE_BYTES).read_to_end(&mut rest);
    capture.push(&rest).await;
    Ok(Ran { ending, capture, n_left_over })
}

fn exit_code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
}

/// A word that no other call has. Ids of calls come from model servers, and some servers give the
/// same ones to every agent, so the name of a file that only this call has goes with it.
fn mark(order: &Order<'_>, context: &ToolContext) -> String {
    let file = order.cwd_file.file_name().unwrap_or_default().to_string_lossy();
    let name = format!("{}-{}-{}-{file}", std::process::id(), context.session, order.id);
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

/// Starts the shell as the leader of a new session: no terminal, a process group of its own.
fn start(
    shell: &str,
    order: &Order<'_>,
    context: &ToolContext,
    mark: &str,
) -> io::Result<(Box<dyn ChildWrapper>, PipeReader)> {
    let (reader, writer): (PipeReader, PipeWriter) = io::pipe()?;
    // One pipe for both, so that they stay in the order in which they were written.
    let (stdout, stderr) = (Stdio::from(writer.try_clone()?), Stdio::from(writer));
    let mut marks = std::env::var_os(MARKER).unwrap_or_default();
    if !marks.is_empty() {
        marks.push(",");
    }
    marks.push(mark);
    let mut wrap = CommandWrap::with_new(shell, |command| {
        command.arg("-c").arg(script(order)).current_dir(order.cwd);
        command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
        for (name, value) in &*context.env {
            match value.as_str() {
                "" => command.env_remove(name),
                value => command.env(name, value),
            };
        }
        command.env("CLAUDECODE", "1");
        command.env("CLAUDE_CODE_SESSION_ID", context.session.as_str());
        command.env(MARKER, marks);
    });
    let child = wrap.wrap(ProcessSession).wrap(KillOnDrop).spawn()?;
    // With `wrap` our ends for writing go; the pipe closes when the processes' do.
    Ok((child, reader))
}

/// The command behind a trap that says where the shell ended, on one line, so that the line
/// numbers in error messages are right. `>|` works under `set -o noclobber`, too.
fn script(order: &Order<'_>) -> OsString {
    let mut trap = OsString::from("pwd -P >|");
    trap.push(quoted(order.cwd_file.as_os_str()));
    trap.push(" 2>/dev/null");
    let mut script = OsString::from("trap ");
    script.push(quoted(&trap));
    script.push(" EXIT; ");
    script.push(order.command);
    script
}

/// In single quotes.
fn quoted(text: &std::ffi::OsStr) -> OsString {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let mut out = vec![b'\''];
    for byte in text.as_bytes() {
        match byte {
            b'\'' => out.extend_from_slice(br"'\''"),
            byte => out.push(*byte),
        }
    }
    out.push(b'\'');
    OsString::from_vec(out)
}

/// All processes of a call. Ended when dropped.
#[derive(Debug)]
struct Tree {
    /// Taken when the tree is being ended.
    processes: Option<Processes>,
    runtime: Handle,
}

impl Tree {
    fn new(child: Box<dyn ChildWrapper>, mark: String, hold: Hold) -> Self {
        let leader = child.id().and_then(|pid| i32::try_from(pid).ok());
        // Not reaped yet, so the number is the shell's.
        #[cfg(target_os = "linux")]
        let leader = leader.and_then(|pid| Some((pid, super::sweep::started(pid)?)));
        let processes =
            Processes { child, leader, mark, has_exited: false, is_ended: false, _hold: hold };
        Self { processes: Some(processes), runtime: Handle::current() }
    }

    /// Waits for the shell. May be dropped and called again.
    async fn wait(&mut self) -> io::Result<ExitStatus> {
        let Some(processes) = &mut self.processes else { return std::future::pending().await };
        let status = processes.child.wait().await?;
        processes.has_exited = true;
        Ok(status)
    }

    /// Ends what is left and says how many that were.
    async fn end(mut self) -> usize {
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
    leader: Option<super::sweep::Process>,
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
        self.leader.map_or(0, |leader| super::sweep::end_all(leader, &self.mark))
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
