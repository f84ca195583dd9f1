//! How a server ends: no new runs, then what runs settles, then nothing is left.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use super::Server;

/// Whether the server is about to end.
#[derive(Debug, Default)]
pub(crate) struct Drain(AtomicBool);

impl Drain {
    /// No run begins any more.
    pub(crate) fn begin(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_begun(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

impl Server {
    /// Ends the server in order, within a deadline. From now on `/readyz` says no and no run begins. Runs
    /// under way end after their present turn and are gone on with by the next process; those that wait for
    /// an answer keep their question. What has not settled a second before the deadline is interrupted.
    pub async fn drain(&self, deadline: Duration) {
        self.0.drain.begin();
        let _late = tokio::time::timeout(deadline, self.shutdown()).await;
    }

    /// Ends the server at once: runs under way are interrupted.
    pub async fn shutdown(&self) {
        self.0.drain.begin();
        for hosted in self.0.book.all() {
            let handle = hosted.handle.lock().await.take();
            if let Some(handle) = handle {
                handle.close().await;
            }
        }
        self.0.tasks.end().await;
    }
}
