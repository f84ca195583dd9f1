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
    time::Duration,
};

use ennead_runtime::{ids::ToolUseId, ports::ToolContext};
use tokio::{io::AsyncReadExt, net::unix::pipe::Receiver};

use super::capture::Capture;
use crate::{
    output::spill_path,
    process_tree::{Launch, ProcessInput, ProcessTree, Rest},
};

/// Bytes of output after which a command is ended.
const MAX_OUTPUT_BYTES: u64 = 5_000_000_000;

/// Bytes that a pipe holds at most; so much can be left in it when its writers are gone.
const PIPE_BYTES: u64 = 1 << 20;

/// A shell command to be run.
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

/// How a shell command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// By itself; 128 and the signal's number, if a signal ended it.
    Exited(i32),
    TimedOut,
    Cancelled,
    TooMuchOutput,
}

/// A shell command that has ended, with its output.
#[derive(Debug)]
pub(super) struct ShellResult {
    pub(super) ending: Ending,
    pub(super) capture: Capture,
    /// Processes that were still there when the shell had ended.
    pub(super) n_left_over: usize,
}

/// Runs a command to its end.
pub(super) async fn run(order: &Order<'_>, context: &ToolContext) -> io::Result<ShellResult> {
    let (mut tree, output) = match start("bash", order, context).await {
        Err(error) if error.kind() == io::ErrorKind::NotFound => start("sh", order, context).await,
        started => started,
    }?;
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
    Ok(ShellResult { ending, capture, n_left_over })
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
async fn start(
    shell: &str,
    order: &Order<'_>,
    context: &ToolContext,
) -> io::Result<(ProcessTree, PipeReader)> {
    let (reader, writer): (PipeReader, PipeWriter) = io::pipe()?;
    let launch = Launch {
        program: OsStr::new(shell),
        input: ProcessInput::Nothing,
        rest: Rest::Ends,
        mark: mark(order, context),
        hold: context.hold.clone(),
    };
    let started = launch.start(|command| {
        command.arg("-c").arg(script(order)).current_dir(order.cwd);
        // One pipe for both, so that they stay in the order in which they were written.
        command.stdout(writer.try_clone()?).stderr(writer.try_clone()?);
        for (name, value) in &*context.env {
            match value.as_str() {
                "" => command.env_remove(name),
                value => command.env(name, value),
            };
        }
        command.env("CLAUDECODE", "1");
        command.env("CLAUDE_CODE_SESSION_ID", context.session.as_str());
        Ok(())
    });
    // Our end for writing goes here; the pipe closes when the processes' do.
    Ok((started.await?.tree, reader))
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
