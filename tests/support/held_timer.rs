//! Timers that end when the test says so.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use ennead::{Timer, tool::BoxFuture};

use super::barrier::Barrier;

/// Ends every wait when its barrier is opened, and keeps how long each was to be.
#[derive(Clone, Debug)]
pub(crate) struct HeldTimer {
    pub(crate) barrier: Barrier,
    longest: Duration,
    asked: Arc<Mutex<Vec<Duration>>>,
}

impl HeldTimer {
    pub(crate) fn at(barrier: &Barrier) -> Self {
        Self { barrier: barrier.clone(), longest: Duration::MAX, asked: Arc::default() }
    }

    /// Lets waits that are longer than this one never end, and does not keep them.
    pub(crate) fn up_to(self, longest: Duration) -> Self {
        Self { longest, ..self }
    }

    /// How long the waits until now were to be, in the order in which they began.
    pub(crate) fn seconds(&self) -> Vec<u64> {
        self.asked.lock().unwrap().iter().map(Duration::as_secs).collect()
    }
}

impl Timer for HeldTimer {
    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        if self.longest < time {
            return Box::pin(std::future::pending());
        }
        self.asked.lock().unwrap().push(time);
        let barrier = self.barrier.clone();
        Box::pin(async move { barrier.pass().await })
    }
}
