//! How a server ends: no new runs, then what runs settles, then nothing is left.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::future::join_all;
use tokio::{sync::Notify, task::yield_now, time::timeout};

use super::{
    Server,
    book::Walked,
    hosted::{Hosted, StartBlocker},
};

/// What is left of the deadline for interrupting what did not settle, and for closing.
const LAST: Duration = Duration::from_secs(3);

/// How long what is being written is waited for. It takes milliseconds, unless the disk hangs.
const WRITES: Duration = Duration::from_secs(5);

/// Whether the server is about to end.
#[derive(Debug, Default)]
pub(crate) struct Drain {
    is_announced: AtomicBool,
    is_begun: AtomicBool,
    /// A run has ended, or waits for an answer.
    settled: Notify,
}

impl Drain {
    /// Load balancers are told; nothing else changes.
    fn announce(&self) {
        self.is_announced.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_announced(&self) -> bool {
        self.is_announced.load(Ordering::SeqCst)
    }

    /// No run begins any more.
    fn begin(&self) {
        self.announce();
        self.is_begun.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_begun(&self) -> bool {
        self.is_begun.load(Ordering::SeqCst)
    }

    /// Wakes the one that waits for runs to settle.
    pub(crate) fn wake(&self) {
        if self.is_begun() {
            self.settled.notify_one();
        }
    }
}

impl Server {
    /// Announces the end of the server: `/readyz` says no from now on. Returns after `notice`, in which runs are taken as
    /// before, so that load balancers send the next ones elsewhere before the first is refused. [`Server::drain`] follows.
    pub async fn announce_end(&self, notice: Duration) {
        self.0.drain.announce();
        tokio::time::sleep(notice).await;
    }

    /// Ends the server in order, within a deadline. From now on `/readyz` says no and no run begins. Runs
    /// under way end after their present turn, and the next process goes on with them; those that wait for
    /// an answer keep their question. What has not settled three seconds before the deadline is
    /// interrupted, and gone on with as well.
    pub async fn drain(&self, deadline: Duration) {
        self.0.drain.begin();
        let patience = deadline.saturating_sub(LAST);
        let under_way = self.under_way().await;
        let parking = async {
            join_all(under_way.iter().map(|it| self.park(it, StartBlocker::Draining))).await;
            self.wait_until_settled().await;
        };
        // Late or not, what comes next is the same.
        let _late = timeout(patience, parking).await;
        let interrupting = async {
            let left = self.under_way().await;
            join_all(left.iter().map(|it| interrupt(it))).await;
            self.wait_until_settled().await;
        };
        let _late = timeout(LAST / 2, interrupting).await;
        let _late = timeout(LAST / 2, self.close_all(true)).await;
        self.leave().await;
    }

    /// Ends the server at once: runs under way are interrupted.
    pub async fn shutdown(&self) {
        self.0.drain.begin();
        self.close_all(false).await;
        self.leave().await;
    }

    /// Ends all tasks, and gives the directory to the next process once nothing is written any more.
    async fn leave(&self) {
        if timeout(WRITES, self.0.tasks.end()).await.is_err() {
            tracing::warn!(
                "the disk does not answer; the directory is in use until the process ends"
            );
            return;
        }
        if let Err(error) = self.0.lock.unlock() {
            tracing::warn!(%error, "the directory is in use until the process ends");
        }
    }

    /// Ends the run of a session after its present turn, to be continued later.
    pub(crate) async fn park(&self, hosted: &Hosted, why: StartBlocker) {
        if hosted.state().parks_for.replace(why).is_some() {
            return;
        }
        if let Some(handle) = hosted.live().handle.lock().await.as_ref() {
            handle.stop();
        }
    }

    /// Sessions with a run that does not wait for an answer.
    async fn under_way(&self) -> Vec<Arc<Hosted>> {
        let mut found = Vec::new();
        for page in self.0.book.walk(Walked::Awake) {
            found.extend(page.into_iter().filter(|it| it.is_under_way()));
            yield_now().await;
        }
        found
    }

    async fn wait_until_settled(&self) {
        while !self.under_way().await.is_empty() {
            self.0.drain.settled.notified().await;
        }
    }

    /// Ends the actors of all sessions; with `keeps` not of those that wait for an answer, whose question
    /// would be closed with them.
    async fn close_all(&self, keeps: bool) {
        // No other session has an actor.
        let awake: Vec<_> = self.0.book.walk(Walked::Awake).flatten().collect();
        let closing = awake.into_iter().map(|hosted| async move {
            if keeps && hosted.is_asked() {
                return;
            }
            let handle = hosted.live().handle.lock().await.take();
            if let Some(handle) = handle {
                handle.close().await;
            }
        });
        join_all(closing).await;
    }
}

async fn interrupt(hosted: &Hosted) {
    if let Some(handle) = hosted.live().handle.lock().await.as_ref() {
        handle.interrupt();
    }
}
