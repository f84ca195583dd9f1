//! The tasks of a server, and their end.
//!
//! They wait for sessions, sockets and timers and are no actors of a session's tree: they go on while
//! sessions come and go. All are counted, and end when the server does.

use std::future::Future;

use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// The tasks of a server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tasks {
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl Tasks {
    /// Starts a task that is dropped when the server ends.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        // Nobody waits for this one alone: the tracker does for all.
        let _task = self.tracker.spawn(async move {
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = work => {}
            }
        });
    }

    /// Ends all of them, and waits until they are gone.
    pub(crate) async fn end(&self) {
        self.stop.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }

    /// Cancelled when the server ends.
    pub(crate) fn stopped(&self) -> &CancellationToken {
        &self.stop
    }
}
