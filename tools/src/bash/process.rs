//! One command, from its start to its end.
//!
//! However the call ends, also by dropping its future, its process tree is ended with it, and only
//! then is the call's `hold` let go.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, PipeReader, PipeWriter, Read},
    os::{fd::OwnedFd, unix::process::ExitStatusExt},
    path::Path,
    process::ExitStatus,
    sync::Arc,
    time::Duration,
};

use ennead_runtime::{
    ids::ToolUseId,
    ports::{ToolContext, WorkGuard},
    sandbox::SandboxPolicy,
};
use tokio::{io::AsyncReadExt, net::unix::pipe::Receiver};

use super::capture::Capture;
use crate::{
    output::spill_path,
    process_tree::{ProcessInput, ProcessLaunch, ProcessTree, Rest},
};

/// Bytes of output after which a command is ended.
const MAX_OUTPUT_BYTES: u64 = 5_000_000_000;

/// Bytes that a pipe holds at most; as much can be left in it when its writers are gone.
const PIPE_BYTES: u64 = 1 << 20;

/// A shell command to be run.
#[derive(Debug)]
pub(super) struct Order<'a> {
    pub(super) id: &'a ToolUseId,
    pub(super) command: &'a str,
    /// Whether it is to run outside the sandbox, where settings let it.
    pub(super) leaves_sandbox: bool,
    pub(super) cwd: &'a Path,
    /// Where the shell says at its end in which directory it is.
    pub(super) cwd_file: &'a Path,
    pub(super) max_chars: usize,
}

/// How a shell command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// By itself; 128 and the signal's number, if a signal ended it.
    Exited(i32),
    TimedOut,
    Cancelled,
    TooMuchOutput,
}

/// Why a command is not followed any longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Followed<T> {
    /// The process has ended, or must be ended.
    Ended(Ending),
    /// What it was followed until has come.
    Stopped(T),
}

/// A shell command that has ended, with its output.
#[derive(Debug)]
pub(super) struct ShellResult {
    pub(super) ending: Ending,
    pub(super) capture: Capture,
    /// Processes that were still there when the shell had ended.
    pub(super) n_left_over: usize,
}

/// A command that runs, with what it has printed.
#[derive(Debug)]
pub(super) struct Running {
    tree: ProcessTree,
    output: Receiver,
    buffer: Vec<u8>,
    is_open: bool,
    pub(super) capture: Capture,
}

impl Running {
    /// Starts a command in `bash`, or in `sh` where there is no `bash`.
    pub(super) async fn start(order: &Order<'_>, context: &ToolContext) -> io::Result<Self> {
        let (tree, output) = match start("bash", order, context).await {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                start("sh", order, context).await
            }
            started => started,
        }?;
        let output = Receiver::from_owned_fd(OwnedFd::from(output))?;
        let capture =
            Capture::new(order.max_chars, spill_path(context, order.id)).without_secrets(context);
        Ok(Self { tree, output, buffer: vec![0; 64 << 10], is_open: true, capture })
    }

    /// Reads what it prints until it ends or `stop` does; after that it may be followed further.
    /// `printed` is called after every piece of output.
    pub(super) async fn follow<T>(
        &mut self,
        stop: impl Future<Output = T>,
        mut printed: impl FnMut(&Capture),
    ) -> io::Result<Followed<T>> {
        tokio::pin!(stop);
        loop {
            tokio::select! {
                biased;
                stopped = &mut stop => return Ok(Followed::Stopped(stopped)),
                status = self.tree.wait() => {
                    return Ok(Followed::Ended(Ending::Exited(exit_code(status?))));
                }
                read = self.output.read(&mut self.buffer), if self.is_open => match read {
                    Ok(0) | Err(_) => self.is_open = false,
                    Ok(n) => {
                        self.capture.push(&self.buffer[..n]).await;
                        printed(&self.capture);
                        if self.capture.n_bytes() > MAX_OUTPUT_BYTES {
                            return Ok(Followed::Ended(Ending::TooMuchOutput));
                        }
                    }
                },
            }
        }
    }

    /// Replaces what waits for the end of its processes.
    pub(super) fn hold_by(&mut self, guard: WorkGuard) {
        self.tree.hold_by(guard);
    }

    /// Ends what is left of it, and reads what is left in the pipe.
    pub(super) async fn finish(self, ending: Ending) -> io::Result<ShellResult> {
        let Self { tree, output, mut capture, .. } = self;
        let n_left_over = tree.end().await;
        // All writers are gone: what they wrote is in the pipe, and there is nothing to wait for.
        let mut rest = Vec::new();
        let pipe = File::from(output.into_nonblocking_fd()?);
        // Ends with `WouldBlock` if a process that cannot be ended still holds the pipe.
        let _ = pipe.take(PIPE_BYTES).read_to_end(&mut rest);
        capture.push(&rest).await;
        capture.end().await;
        Ok(ShellResult { ending, capture, n_left_over })
    }
}

/// Waits for what ends a command in the foreground.
pub(super) async fn foreground(timeout: Duration, context: &ToolContext) -> Ending {
    if context.cancel.is_cancelled() {
        return Ending::Cancelled;
    }
    let cancelled = context.cancel.cancelled();
    let timeout = tokio::time::sleep(timeout);
    tokio::select! {
        biased;
        () = cancelled => Ending::Cancelled,
        () = timeout => Ending::TimedOut,
    }
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

/// What confines the command: the policy of the session, and the file in which the shell says where it
/// ended.
fn confinement(order: &Order<'_>, context: &ToolContext) -> Option<Arc<SandboxPolicy>> {
    let policy = context.sandbox.as_ref()?;
    let mut policy = policy.policy_for(order.command, order.leaves_sandbox)?.clone();
    policy.own_files.extend(order.cwd_file.to_str().map(str::to_owned));
    Some(Arc::new(policy))
}

/// The variable that hands over what hooks want a command to begin with. Such lines can be too many for an argument, and
/// in the script they would change the line numbers in error messages.
const EXPORTS: &str = "ENNEAD_EXPORTS";

/// Returns what hooks want the command to begin with. A repository's hooks are confined themselves, so that theirs is
/// not for what runs outside of the sandbox.
pub(super) fn exports<'a>(context: &'a ToolContext, confined: Option<&SandboxPolicy>) -> &'a str {
    let leaves = context.sandbox.is_some() && confined.is_none();
    if leaves { &context.unconfined_exports } else { &context.exports }
}

/// Starts the shell as the leader of a new session: no terminal, a process group of its own.
async fn start(
    shell: &str,
    order: &Order<'_>,
    context: &ToolContext,
) -> io::Result<(ProcessTree, PipeReader)> {
    let (reader, writer): (PipeReader, PipeWriter) = io::pipe()?;
    let confine = confinement(order, context);
    let exports = exports(context, confine.as_deref());
    let launch = ProcessLaunch {
        program: OsStr::new(shell),
        input: ProcessInput::Nothing,
        rest: Rest::Ends,
        mark: mark(order, context),
        confine,
        guard: context.guard.clone(),
    };
    let started = launch.start(|command| {
        command.arg("-c").arg(script(order, !exports.is_empty())).current_dir(order.cwd);
        // One pipe for both, so that they stay in the order in which they were written.
        command.stdout(writer.try_clone()?).stderr(writer.try_clone()?);
        for (name, value) in &*context.env {
            match value.as_str() {
                "" => command.env_remove(name),
                value => command.env(name, value),
            };
        }
        match exports {
            "" => command.env_remove(EXPORTS),
            lines => command.env(EXPORTS, lines),
        };
        command.env("CLAUDECODE", "1");
        command.env("CLAUDE_CODE_SESSION_ID", context.session.as_str());
        Ok(())
    });
    // Our end for writing goes here; the pipe closes when the processes' do.
    Ok((started.await?.tree, reader))
}

/// The command after a trap that says where the shell ended, and after what hooks want it to begin with, on one line, so
/// that the line numbers in error messages are right. `>|` works under `set -o noclobber`, too.
fn script(order: &Order<'_>, has_exports: bool) -> OsString {
    let mut trap = OsString::from("pwd -P >|");
    trap.push(quoted(order.cwd_file.as_os_str()));
    trap.push(" 2>/dev/null");
    let mut script = OsString::from("trap ");
    script.push(quoted(&trap));
    script.push(" EXIT; ");
    if has_exports {
        // The variable is gone before the first of the lines runs. An error of syntax in them does not keep the command
        // from running, where there is bash.
        script.push(format!("eval \"unset {EXPORTS}; ${EXPORTS}\"; "));
    }
    script.push(order.command);
    script
}

/// Returns the text in single quotes, for the shell.
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
