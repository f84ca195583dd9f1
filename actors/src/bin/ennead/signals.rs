//! Ctrl-C and SIGTERM: what runs is interrupted first, so that its transcript is ended in order; the
//! second one ends the command, whatever its threads do.
//!
//! Signals are waited for on a thread of their own. A scheduler thread that is busy or blocked hears
//! nothing, and then nobody could end the command but with SIGKILL.

use std::{io, process, thread, time::Duration};

use tokio::{
    runtime,
    signal::unix::{SignalKind, signal},
    sync::{mpsc, oneshot},
    time::sleep,
};

use crate::exit::{Exit, Failure};

/// How long the command may take to end in order after the second signal.
const GRACE: Duration = Duration::from_millis(1_500);

/// The two signals that end the command.
#[derive(Debug)]
pub(crate) struct Signals {
    received: mpsc::UnboundedReceiver<Exit>,
}

impl Signals {
    /// Takes them over from now on.
    ///
    /// # Errors
    ///
    /// When the system does not let us.
    pub(crate) async fn take() -> Result<Self, Failure> {
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

    /// Waits for the next one; says how the command ends because of it.
    pub(crate) async fn next(&mut self) -> Exit {
        match self.received.recv().await {
            Some(exit) => exit,
            // The thread ends with the command only.
            None => std::future::pending().await,
        }
    }
}

/// Hands each signal on, and after the second one ends the command if it has not ended by then.
async fn listen(sender: mpsc::UnboundedSender<Exit>, ready: oneshot::Sender<io::Result<()>>) {
    let signals = signal(SignalKind::interrupt())
        .and_then(|interrupt| Ok((interrupt, signal(SignalKind::terminate())?)));
    let (mut interrupt, mut terminate) = match signals {
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
