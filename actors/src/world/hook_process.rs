//! Runs one command of a hook: a process in a session of its own, fed with JSON, killed when it is late.

use std::{ffi::OsStr, path::Path, pin::pin, process::Stdio, sync::Arc, time::Duration};

use ennead_runtime::{
    digest::Digest,
    hook::{HandlerEnd, HandlerOutput, HookEvent, HookHandler, says_detached},
    ports::WorkGuard,
    sandbox::Sandbox,
    saturating::Saturating as _,
    step1_settings_resolution::Certificates,
};
use ennead_tools::process_tree::{HOOK_FILE, ProcessInput, ProcessLaunch, Rest, Started, new_mark};
use futures::future::{Either, FusedFuture, FutureExt, join3, select};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader},
    sync::oneshot,
    time::timeout,
};

use super::clock::{TimeSource, Timer};

/// Bytes of each output that are kept; the rest is drained, so that the handler goes on.
pub(super) const MAX_OUTPUT: u64 = 1024 * 1024;

/// Bytes of a first line that is looked at.
const MAX_FIRST_LINE: u64 = 4096;

/// How long the outputs of a handler that has ended are read on when something it left behind holds
/// them open. All that it wrote is in the pipes by then; the time is for a filter after it, such as
/// `exec > >(tee log)`, which passes on the last lines when the shell is gone. Half a second is
/// ample for that, and a turn can wait so long.
const GRACE: Duration = Duration::from_millis(500);

/// What handlers of a session run with.
#[derive(Clone, Debug)]
pub(crate) struct HandlerContext {
    /// Directory that the handler runs in.
    pub cwd: String,
    /// The session's project directory (`CLAUDE_PROJECT_DIR`).
    pub project: String,
    /// Variables that replace inherited ones; an empty value removes one.
    pub env: Arc<[(String, String)]>,
    /// The event it is run for.
    pub event: HookEvent,
    /// Names of the handlers that this session hangs from, outermost first.
    pub chain: Arc<[String]>,
    /// What confines those of a repository, if anything does.
    pub sandbox: Option<Arc<Sandbox>>,
    /// Who vouches for servers that are asked.
    pub certificates: Certificates,
}

impl HandlerContext {
    /// Returns what confines a handler of this scope: what a repository starts is confined like its commands.
    pub(super) fn sandbox_of(&self, handler: &HookHandler) -> Option<&Sandbox> {
        self.sandbox.as_deref().filter(|_| handler.scope.is_of_repository())
    }
}

/// What goes with the process of a handler.
#[derive(Debug)]
pub(crate) struct HookHold {
    /// Let go when nothing is left that the handler has started, or it has ended by itself.
    pub(crate) guard: WorkGuard,
    /// Sent to when the first line of the output says that the handler is not to be waited for. `None`: that is not
    /// looked at.
    pub(crate) announce: Option<oneshot::Sender<()>>,
}

/// The command of a handler.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HookCommand<'a> {
    /// The shell command, or the program when `args` is there.
    pub command: &'a str,
    /// Arguments; `None` means `sh -c`.
    pub args: Option<&'a [String]>,
    /// The file in which it leaves lines for later commands, if it may.
    pub exports: Option<&'a Path>,
}

/// Names, for a process that a hook started, the hooks above it, with colons between them.
/// A session that such a process opens does not run those again (HKS-3).
pub(crate) const CHAIN: &str = "ENNEAD_HOOK_CHAIN";

/// Stands for the session's project directory in what is run.
pub(super) const PROJECT: &str = "${CLAUDE_PROJECT_DIR}";

/// Names a handler of an event by what it runs.
pub(crate) fn name_of(command: HookCommand<'_>, event: HookEvent) -> String {
    let args = command.args.into_iter().flatten().map(String::as_str);
    let parts = std::iter::once(command.command).chain(args);
    let digest = parts.fold(Digest::of(event.name().as_bytes()), |digest, part| {
        digest.chain(Digest::of(part.as_bytes()))
    });
    digest.to_string()
}

/// Runs the command of a handler to its end. All that it started is ended when it is late, or when the future
/// is dropped.
pub(crate) async fn run_command(
    handler: &HookHandler,
    command: HookCommand<'_>,
    context: &HandlerContext,
    input: &str,
    TimeSource { clock, timer }: TimeSource<'_>,
    hold: HookHold,
) -> HandlerOutput {
    let name = name_of(command, context.event);
    if context.chain.contains(&name) {
        return HandlerOutput::new(HandlerEnd::Cycle, String::new(), handler.label(), 0);
    }
    let started = clock.elapsed();
    let ran = run(handler, command, context, input, (name, timer), hold).await;
    let took = clock.elapsed().saturating_sub(started);
    let duration_ms = u64::saturating(took.as_millis());
    match ran {
        Ok(Some((ended, stdout, stderr))) => HandlerOutput::new(ended, stdout, stderr, duration_ms),
        Err(error) => {
            let why = format!("{}: {error}", command.command);
            HandlerOutput::new(HandlerEnd::Crashed, String::new(), why, duration_ms)
        }
        Ok(None) => {
            let why = format!("no answer within {} ms", handler.timeout_ms);
            HandlerOutput::new(HandlerEnd::TimedOut, String::new(), why, duration_ms)
        }
    }
}

/// Runs it; `None` when it was stopped for taking too long.
async fn run(
    handler: &HookHandler,
    HookCommand { command, args, exports }: HookCommand<'_>,
    context: &HandlerContext,
    input: &str,
    (name, timer): (String, &dyn Timer),
    HookHold { guard, announce }: HookHold,
) -> std::io::Result<Option<(HandlerEnd, String, String)>> {
    let command = command.replace(PROJECT, &context.project);
    let (program, args) = match args {
        Some(args) => (command, args.to_vec()),
        None => ("sh".to_owned(), vec!["-c".to_owned(), command]),
    };
    let chain: Vec<&str> =
        context.chain.iter().map(String::as_str).chain([name.as_str()]).collect();
    let confine = context.sandbox_of(handler).map(|it| {
        let mut policy = it.policy.clone();
        policy.own_files.extend(exports.and_then(Path::to_str).map(str::to_owned));
        Arc::new(policy)
    });
    let launch = ProcessLaunch {
        program: OsStr::new(&program),
        input: ProcessInput::Piped,
        rest: Rest::Stays,
        mark: new_mark("hook"),
        confine,
        guard,
    };
    let started = launch.start(|command| {
        command
            .args(&args)
            .current_dir(&context.cwd)
            .env("CLAUDE_PROJECT_DIR", &context.project)
            .env("CLAUDECODE", "1")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for (name, value) in &*context.env {
            if value.is_empty() {
                command.env_remove(name);
            } else {
                command.env(name, value);
            }
        }
        if let Some(file) = exports {
            command.env(HOOK_FILE, file);
        }
        command.env(CHAIN, chain.join(":"));
        Ok(())
    });
    let Started { mut tree, input: stdin, stdout, stderr } = started.await?;
    let (mut out, mut err, mut is_announced) = (Vec::new(), Vec::new(), false);
    let ended = {
        let (longer, changed) = oneshot::channel();
        let first_line = FirstLine { announce, longer, is_announced: &mut is_announced };
        let feed = async {
            if let Some(mut stdin) = stdin {
                // A handler need not read its input.
                let _unread = stdin.write_all(input.as_bytes()).await;
            }
        };
        let talk =
            join3(feed, read_announcing(stdout, &mut out, first_line), read(stderr, &mut err))
                .fuse();
        let limit = Duration::from_millis(handler.timeout_ms);
        let (mut talk, ended) =
            (pin!(talk), pin!(within_changing(timer, limit, changed, tree.wait())));
        // Whether it has ended is asked of the process alone: the pipes may be held by others.
        let ended = match select(ended, talk.as_mut()).await {
            Either::Left((ended, _)) => ended,
            Either::Right((_, ended)) => ended.await,
        };
        if ended.is_some() && !talk.is_terminated() {
            let _held = timeout(GRACE, talk).await;
        }
        ended
    };
    let Some(status) = ended else {
        tree.end().await;
        return Ok(None);
    };
    let status = status?;
    // It ended by itself: what it left behind is meant to stay.
    tree.leave();
    let end = status.code().map_or(HandlerEnd::Crashed, HandlerEnd::Exited);
    if is_announced {
        // That line was for the harness.
        let end = out.iter().position(|it| *it == b'\n').map_or(out.len(), |it| it + 1);
        out.drain(..end);
    }
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(Some((end, text(out), text(err))))
}

/// What is done when the first line of an output says that its handler is not to be waited for.
struct FirstLine<'a> {
    announce: Option<oneshot::Sender<()>>,
    /// Takes the limit that holds from then on.
    longer: oneshot::Sender<Duration>,
    is_announced: &'a mut bool,
}

/// Reads as [`read`] does, and looks at the first line as soon as it is there.
async fn read_announcing(
    pipe: Option<impl AsyncRead + Unpin>,
    bytes: &mut Vec<u8>,
    FirstLine { announce, longer, is_announced }: FirstLine<'_>,
) -> std::io::Result<()> {
    let Some(announce) = announce else { return read(pipe, bytes).await };
    let Some(mut pipe) = pipe else { return Ok(()) };
    let mut line = BufReader::new((&mut pipe).take(MAX_FIRST_LINE));
    line.read_until(b'\n', bytes).await?;
    let buffered = line.buffer().to_vec();
    if let Some(limit) = says_detached(bytes) {
        *is_announced = true;
        // Who does not wait any more needs no news.
        let _gone = announce.send(());
        let _gone = limit.map(|it| longer.send(Duration::from_millis(it)));
    }
    bytes.extend(buffered);
    read(Some(pipe), bytes).await
}

/// Waits for work as [`within`] does, until a limit that may be replaced by another one, counted from then.
async fn within_changing<T>(
    timer: &dyn Timer,
    limit: Duration,
    changed: oneshot::Receiver<Duration>,
    work: impl Future<Output = T>,
) -> Option<T> {
    let (mut work, mut changed) = (pin!(work), changed.fuse());
    let mut limit = timer.deadline(limit);
    loop {
        tokio::select! {
            biased;
            result = &mut work => return Some(result),
            Ok(longer) = &mut changed => limit = timer.deadline(longer),
            // Work that is always ready uses up what the scheduler gives a task, and the limit is looked at all the same.
            () = tokio::task::unconstrained(&mut limit) => return None,
        }
    }
}

/// Reads until the pipe is closed. What was read so far is in `bytes` at any time.
async fn read(pipe: Option<impl AsyncRead + Unpin>, bytes: &mut Vec<u8>) -> std::io::Result<()> {
    let Some(mut pipe) = pipe else { return Ok(()) };
    let left = MAX_OUTPUT.saturating_sub(bytes.len() as u64);
    (&mut pipe).take(left).read_to_end(bytes).await?;
    // The rest is drained, so that the handler is not stopped by a full pipe.
    tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await?;
    Ok(())
}
