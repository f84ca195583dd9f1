//! Work on the blocking pool.
//!
//! Dropping a future does not stop a thread. So the thread keeps the call's `hold`, and is notified
//! when the future is gone as well as when the call was cancelled.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use ennead_runtime::{
    ports::{Cancel, ToolContext},
    tool::{ToolErrorKind, ToolOutcome},
};
use tokio::task::JoinError;

/// Says to a thread when to give up.
#[derive(Debug)]
pub(crate) struct Stop {
    cancel: Arc<dyn Cancel>,
    dropped: Arc<AtomicBool>,
}

impl Stop {
    /// Returns whether to give up. It is polled between slices of work, and last before a rename.
    pub(crate) fn is_set(&self) -> bool {
        self.dropped.load(Ordering::SeqCst) || self.cancel.is_cancelled()
    }
}

struct SetOnDrop(Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Runs `work` on the blocking pool and waits for it.
pub(crate) async fn blocking(
    context: &ToolContext,
    work: impl FnOnce(&Stop) -> ToolOutcome + Send + 'static,
) -> ToolOutcome {
    let work = |stop: &Stop| if stop.is_set() { interrupted() } else { work(stop) };
    match stoppable(context, work).await {
        Ok(outcome) => outcome,
        Err(error) if error.is_panic() => {
            ToolOutcome::failed(ToolErrorKind::Crashed, "The tool crashed.")
        }
        Err(_) => interrupted(),
    }
}

/// Runs blocking work that is a part of a call.
pub(crate) async fn stoppable<T: Send + 'static>(
    context: &ToolContext,
    work: impl FnOnce(&Stop) -> T + Send + 'static,
) -> Result<T, JoinError> {
    let dropped = Arc::new(AtomicBool::new(false));
    let stop = Stop { cancel: context.cancel.clone(), dropped: dropped.clone() };
    let hold = context.guard.clone();
    let _set_when_gone = SetOnDrop(dropped);
    let done = tokio::task::spawn_blocking(move || {
        let _kept_until_done = hold;
        work(&stop)
    });
    done.await
}

/// Makes the outcome of a call that was cancelled before it changed anything.
pub(crate) fn interrupted() -> ToolOutcome {
    ToolOutcome::failed(ToolErrorKind::Interrupted, "Interrupted; no file was changed.")
}
