//! A command that goes on after its call.
//!
//! What it prints goes to a file, which is read from where it was read last. Here is what its owner,
//! those who read it and the session share; the owner is the actor that ran the call.

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ennead_runtime::{
    ids::ShellId,
    ports::{
        BoxFuture, ToolContext,
        shells::{BackgroundShell, ShellRead, ShellState, ShellStatus, ShellsFull, shown_command},
    },
};
use tokio::sync::{Notify, watch};

use super::{
    capture::Capture,
    process::{Ending, Followed, Running},
    unread::{Unread, read},
};
use crate::locked::Locked as _;

/// A command in the background.
#[derive(Clone, Debug)]
pub(super) struct Shell(Arc<ShellParts>);

struct ShellParts {
    shell: ShellId,
    command: Arc<str>,
    path: Arc<str>,
    file: std::fs::File,
    /// Somebody wants it killed.
    wanted: Notify,
    state: watch::Sender<ShellState>,
    is_end_known: AtomicBool,
    printed: Mutex<Printed>,
}

/// What was printed, and how much of it was read.
#[derive(Clone, Debug, Default)]
struct Printed {
    n_bytes: u64,
    n_written: u64,
    /// The end of it, once not everything is written.
    tail: Arc<[u8]>,
    /// Bytes of the file that were read.
    read: u64,
    /// Bytes that were not written, when it was read.
    lost: u64,
}

impl fmt::Debug for ShellParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shell").field("shell", &self.shell).finish_non_exhaustive()
    }
}

/// Why a command cannot go on in the background.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotKept {
    #[error("no command can go on in the background here")]
    NoHost,
    #[error("its output cannot be kept: {0}")]
    NoFile(String),
    #[error(transparent)]
    Full(#[from] ShellsFull),
}

/// A command in the background, and what keeps it going.
pub(super) struct KeptShell {
    pub(super) shell: Shell,
    /// Goes on with it. It holds nothing of the call's context.
    pub(super) going_on: BoxFuture<'static, ()>,
}

/// Registers a running command among those in the background.
pub(super) async fn keep(
    mut running: Running,
    command: &str,
    context: &ToolContext,
) -> Result<KeptShell, (NotKept, Running)> {
    let Some(host) = &context.processes else { return Err((NotKept::NoHost, running)) };
    let shells = host.shells();
    let (path, file) = match running.capture.follow().await {
        Ok(followed) => followed,
        Err(why) => return Err((NotKept::NoFile(why), running)),
    };
    let shell = Shell(Arc::new(ShellParts {
        shell: shells.new_name(),
        command: shown_command(command),
        path: path.to_string_lossy().into(),
        file,
        wanted: Notify::new(),
        state: watch::Sender::new(ShellState::Running),
        is_end_known: AtomicBool::new(false),
        printed: Mutex::default(),
    }));
    shell.0.printed(&running.capture);
    let guard = match shells.keep(context.shell, Arc::new(shell.clone())) {
        Ok(guard) => guard,
        Err(full) => return Err((full.into(), running)),
    };
    // Nothing of its turn waits for it any more.
    running.hold_by(guard);
    let seconds = context.shell.max_background_seconds;
    let limit = seconds.map(|it| Duration::from_secs(it.get()));
    let owned = shell.clone();
    let going_on = Box::pin(async move {
        let end = EndOfShell(owned.0);
        let state = go_on(&end.0, running, limit).await;
        end.0.state.send_replace(state);
    });
    Ok(KeptShell { shell, going_on })
}

/// Says that a command is gone whose owner was dropped.
struct EndOfShell(Arc<ShellParts>);

impl Drop for EndOfShell {
    fn drop(&mut self) {
        self.0.state.send_if_modified(|state| {
            let is_running = *state == ShellState::Running;
            if is_running {
                *state = ShellState::Lost;
            }
            is_running
        });
    }
}

/// Follows a command to its end, and ends it when it is to be.
async fn go_on(shell: &ShellParts, mut running: Running, limit: Option<Duration>) -> ShellState {
    let stop = async {
        let limit = async {
            match limit {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = shell.wanted.notified() => ShellState::Killed,
            () = limit => ShellState::TimedOut,
        }
    };
    let followed = running.follow(stop, |capture| shell.printed(capture)).await;
    let (state, ending) = match followed {
        Ok(Followed::Ended(Ending::Exited(code))) => {
            (ShellState::Exited(code), Ending::Exited(code))
        }
        Ok(Followed::Ended(ending)) => (ShellState::TooMuchOutput, ending),
        Ok(Followed::Stopped(state)) => (state, Ending::Cancelled),
        Err(_) => (ShellState::Lost, Ending::Cancelled),
    };
    match running.finish(ending).await {
        Ok(ran) => {
            shell.printed(&ran.capture);
            state
        }
        Err(_) => ShellState::Lost,
    }
}

impl ShellParts {
    fn lock(&self) -> MutexGuard<'_, Printed> {
        // Nothing in here can be left half done.
        self.printed.locked()
    }

    /// Takes how much was printed.
    fn printed(&self, capture: &Capture) {
        let (n_bytes, n_written) = (capture.n_bytes(), capture.n_written());
        let tail: Arc<[u8]> =
            if n_written < n_bytes { capture.last_bytes().into() } else { Arc::default() };
        let mut printed = self.lock();
        (printed.n_bytes, printed.n_written, printed.tail) = (n_bytes, n_written, tail);
    }

    fn status(&self) -> ShellStatus {
        let (command, output) = (Arc::clone(&self.command), Arc::clone(&self.path));
        let (state, n_bytes) = (*self.state.borrow(), self.lock().n_bytes);
        ShellStatus::new(self.shell.clone(), command, state, n_bytes, output)
    }

    /// What was not read, and how the command was before that was looked at: then nothing follows what
    /// an ended one has printed.
    fn unread(&self) -> (ShellStatus, Unread) {
        let status = self.status();
        let printed = self.lock().clone();
        let n_lost = (printed.n_bytes - printed.n_written).saturating_sub(printed.lost);
        let may_go_on = status.state == ShellState::Running;
        let Printed { read, n_written, tail, .. } = printed;
        (status, Unread { from: read, until: n_written, n_lost, tail, may_go_on })
    }
}

impl BackgroundShell for Shell {
    fn status(&self) -> ShellStatus {
        self.0.status()
    }

    fn is_end_known(&self) -> bool {
        self.0.is_end_known.load(Ordering::SeqCst)
    }

    fn end_is_known(&self) {
        self.0.is_end_known.store(true, Ordering::SeqCst);
    }

    fn new_output(
        &self,
        filter: Option<String>,
        max_chars: usize,
    ) -> BoxFuture<'static, ShellRead> {
        let shell = Arc::clone(&self.0);
        Box::pin(async move {
            let looked = tokio::task::spawn_blocking(move || {
                let (status, unread) = shell.unread();
                let mut output = read(&shell.file, &unread, filter.as_deref(), max_chars, status)?;
                let (until, lost) = (output.read_until, output.output.n_lost);
                let known = output.output.status.state != ShellState::Running;
                output.output.take = Box::new(move || {
                    let mut printed = shell.lock();
                    printed.read = printed.read.max(until);
                    printed.lost += lost;
                    drop(printed);
                    if known {
                        shell.is_end_known.store(true, Ordering::SeqCst);
                    }
                });
                Ok(output.output)
            });
            looked.await.unwrap_or_else(|error| Err(error.to_string()))
        })
    }

    fn ended(&self) -> BoxFuture<'static, ()> {
        let mut state = self.0.state.subscribe();
        Box::pin(async move {
            // A sender that is gone ended it.
            let _ended = state.wait_for(|it| *it != ShellState::Running).await;
        })
    }

    fn kill(&self) -> BoxFuture<'static, ()> {
        let shell = Arc::clone(&self.0);
        Box::pin(async move {
            let mut state = shell.state.subscribe();
            shell.wanted.notify_one();
            // The sender is ours, so it is there.
            let _ended = state.wait_for(|it| *it != ShellState::Running).await;
        })
    }
}

#[cfg(test)]
mod tests;
