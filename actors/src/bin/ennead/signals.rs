//! Ctrl-C and SIGTERM: what runs is interrupted first, so that its transcript is ended in order.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::{Exit, Failure};

/// The two signals that end the command.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Takes them over from now on.
    ///
    /// # Errors
    ///
    /// When the system does not let us.
    pub(crate) fn take() -> Result<Self, Failure> {
        let take = || -> io::Result<Self> {
            let interrupt = signal(SignalKind::interrupt())?;
            Ok(Self { interrupt, terminate: signal(SignalKind::terminate())? })
        };
        take().map_err(|error| Failure::of(Exit::RunFailed, &error))
    }

    /// Waits for the next one; says how the command ends because of it.
    pub(crate) async fn next(&mut self) -> Exit {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => Exit::Terminated,
            _ = self.interrupt.recv() => Exit::Interrupted,
        }
    }
}
