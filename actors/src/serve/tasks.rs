//! The tasks of a server, and their end.
//!
//! They wait for sessions, sockets and timers and are not actors of a session's tree: they go on while
//! sessions come and go. All are counted, and end when the server does.

use std::future::Future;

use tokio::task::JoinHandle;
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
        // It is not waited for alone: the tracker waits for all.
        let _task = self.tracker.spawn(async move {
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = work => {}
            }
        });
    }

    /// Starts work that waits for the disk. It is done to its end, even if the one that asked for it is gone.
    pub(crate) fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        self.tracker.spawn_blocking(work)
    }

    /// Ends all tasks, and waits until they are gone and what is being written is written.
    pub(crate) async fn end(&self) {
        self.stop.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }

    /// Returns the token that is cancelled when the server ends.
    pub(crate) fn stopped(&self) -> &CancellationToken {
        &self.stop
    }
}

#[cfg(test)]
mod tests {
    use std::{pin::pin, sync::mpsc, time::Duration};

    use futures::FutureExt;

    use super::*;

    // REQ: RUN-9
    #[tokio::test]
    async fn end_waits_for_a_write_whose_task_was_dropped() {
        let tasks = Tasks::default();
        let (go_on, gate) = mpsc::channel();
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let of_task = tasks.clone();
        let (kept, gone) = tokio::sync::oneshot::channel::<()>();
        tasks.spawn(async move {
            let _kept = kept;
            let written = of_task.write(move || gate.recv());
            let _heard = begun.send(());
            assert!(written.await.is_ok(), "the task is dropped before that");
        });
        has_begun.await.unwrap();
        let mut end = pin!(tasks.end());
        assert!(end.as_mut().now_or_never().is_none(), "both are under way");
        assert!(gone.await.is_err(), "the task is dropped");
        tokio::task::yield_now().await;
        assert!(end.as_mut().now_or_never().is_none(), "the write is under way");
        go_on.send(()).unwrap();
        tokio::time::timeout(Duration::from_secs(60), end).await.unwrap();
    }
}
