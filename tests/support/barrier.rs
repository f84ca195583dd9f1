//! A place where work waits until a test lets it through.
//!
//! Who waits is counted, so a test knows that something provably waits before it goes on, and
//! needs no clock for that.

use std::sync::Arc;

use tokio::sync::{Semaphore, watch};

use super::until::within_real_time;

/// Open at first. Clones are the same barrier.
#[derive(Clone, Debug)]
pub(crate) struct Barrier {
    is_open: Arc<watch::Sender<bool>>,
    arrived: Arc<Semaphore>,
}

impl Default for Barrier {
    fn default() -> Self {
        let (is_open, _) = watch::channel(true);
        Self { is_open: Arc::new(is_open), arrived: Arc::new(Semaphore::new(0)) }
    }
}

impl Barrier {
    /// One that nobody passes until it is opened.
    pub(crate) fn closed() -> Self {
        let barrier = Self::default();
        barrier.close();
        barrier
    }

    pub(crate) fn close(&self) {
        self.is_open.send_replace(false);
    }

    /// Lets everybody through from now on.
    pub(crate) fn open(&self) {
        self.is_open.send_replace(true);
    }

    /// Waits here until it is open. Arrivals at an open barrier do not count.
    pub(crate) async fn pass(&self) {
        let mut is_open = self.is_open.subscribe();
        if !*is_open.borrow_and_update() {
            self.arrived.add_permits(1);
        }
        is_open.wait_for(|it| *it).await.unwrap();
    }

    /// The same for a thread. Waits by parking it.
    pub(crate) fn pass_blocking(&self) {
        futures::executor::block_on(self.pass());
    }

    /// Waits until one more has come to wait here.
    pub(crate) async fn arrived(&self) {
        within_real_time("an arrival", self.arrived.acquire()).await.unwrap().forget();
    }
}
