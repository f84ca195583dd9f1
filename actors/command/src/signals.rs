//! Ctrl-C, SIGTERM, SIGHUP and SIGQUIT: what runs is interrupted first, so that its transcript is ended in order; the
//! second one ends the command, whatever its threads do.
//!
//! Signals are waited for on a thread of their own. A scheduler thread that is busy or blocked receives
//! nothing, and then only SIGKILL could end the command.

use std::{io, process, thread, time::Duration};

use tokio::{
    runtime,
    signal::unix::{Signal, SignalKind, signal},
    sync::{mpsc, oneshot},
    time::sleep,
};

use crate::exit::{Exit, Failure};
use ennead_runtime::saturating::Saturating as _;

/// How long the command may take to end in order after the second signal.
const GRACE: Duration = Duration::from_secs(1);

/// The signals that end the command.
#[derive(Debug)]
pub struct Signals {
    received: mpsc::UnboundedReceiver<Exit>,
}

impl Signals {
    /// Takes them over from now on.
    ///
    /// # Errors
    ///
    /// When the system does not let us.
    pub async fn take() -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::of(Exit::RunFailed, &error);
        let (sender, received) = mpsc::unbounded_channel();
        let (ready, is_ready) = oneshot::channel();
        let runtime =
            runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        thread::Builder::new()
            .name("signals".into())
            .spawn(move || runtime.block_on(listen(sender, ready)))
            .map_err(failed)?;
        is_ready.await.unwrap_or_else(|gone| Err(io::Error::other(gone))).map_err(failed)?;
        Ok(Self { received })
    }

    /// Returns signals that come from elsewhere, and where they are put in.
    pub(crate) fn channel() -> (mpsc::UnboundedSender<Exit>, Self) {
        let (sender, received) = mpsc::unbounded_channel();
        (sender, Self { received })
    }

    /// Waits for the next one; says how the command ends because of it.
    pub async fn next(&mut self) -> Exit {
        match self.received.recv().await {
            Some(exit) => exit,
            // The thread ends with the command only.
            None => std::future::pending().await,
        }
    }
}

/// Hands each signal on, and after the second one ends the command if it has not ended by then.
async fn listen(sender: mpsc::UnboundedSender<Exit>, ready: oneshot::Sender<io::Result<()>>) {
    let (mut interrupt, mut terminate, mut hang_up, mut quit) = match take() {
        Ok(signals) => signals,
        Err(error) => {
            let _gone = ready.send(Err(error));
            return;
        }
    };
    let _gone = ready.send(Ok(()));
    let mut n_signals = 0;
    loop {
        let exit = tokio::select! {
            biased;
            _ = terminate.recv() => Exit::Terminated,
            () = next_of(&mut hang_up) => Exit::Terminated,
            () = next_of(&mut quit) => Exit::Terminated,
            _ = interrupt.recv() => Exit::Interrupted,
        };
        let _gone = sender.send(exit);
        n_signals += 1;
        if n_signals == 2 {
            sleep(GRACE).await;
            process::exit(exit.code().into());
        }
    }
}

/// Interrupt, terminate, hang-up and quit. Of the last two one that was ignored when we were started,
/// as under `nohup`, stays so.
fn take() -> io::Result<(Signal, Signal, Option<Signal>, Option<Signal>)> {
    let unless_ignored = |kind| if is_ignored(kind) { Ok(None) } else { signal(kind).map(Some) };
    let interrupt = signal(SignalKind::interrupt())?;
    let terminate = signal(SignalKind::terminate())?;
    let hang_up = unless_ignored(SignalKind::hangup())?;
    Ok((interrupt, terminate, hang_up, unless_ignored(SignalKind::quit())?))
}

async fn next_of(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => _ = signal.recv().await,
        None => std::future::pending().await,
    }
}

/// Whether a signal is ignored now, as far as the system reports it.
fn is_ignored(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|it| u64::from_str_radix(it.trim(), 16).ok()).unwrap_or(0);
    let bit = u32::saturating(kind.as_raw_value() - 1);
    mask.checked_shr(bit).is_some_and(|it| it & 1 == 1)
}

/// Makes a write past the limit on the size of files fail, and with it the session that wrote; by default the signal
/// ends the process, and all sessions with it. To be called on a runtime.
pub fn let_large_writes_fail() {
    let kind = SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw());
    // A handler is enough, and stays for as long as the process lives.
    let _handled = signal(kind);
}
