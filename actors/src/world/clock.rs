//! Clocks and timers: the machine's, and a clock that stands still until it is moved.

use std::{
    fmt,
    future::ready,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use ennead_runtime::{
    ports::{BoxFuture, Clock},
    time::Timestamp,
};

/// Waits: between two attempts at the model, for the time limit of a run, the end of a question, the answer
/// of a classifier, the next start of an MCP server.
pub trait Timer: Send + Sync + fmt::Debug {
    /// Ends when the time is over.
    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()>;
}

/// The scheduler's timer; follows tokio's time where that is paused.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SystemTimer;

impl Timer for SystemTimer {
    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(time))
    }
}

/// Reads the clocks of the machine.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// The only place that asks the machine for the time.
    #[expect(clippy::disallowed_methods, reason = "this is the clock that everybody else asks")]
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock that everybody else asks")]
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
}

/// A clock that stands still until it is moved. Sessions that share one and a seed leave the same
/// transcripts, whatever the machine is doing.
#[derive(Debug, Default)]
pub struct ManualClock {
    ms: AtomicU64,
}

impl ManualClock {
    /// Stands at this many milliseconds since 1970.
    pub fn at(ms: u64) -> Self {
        Self { ms: AtomicU64::new(ms) }
    }

    /// Moves both clocks forward by this much.
    pub fn advance(&self, by: Duration) {
        let by = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        self.ms.fetch_add(by, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.ms.load(Ordering::SeqCst))
    }

    fn elapsed(&self) -> Duration {
        Duration::from_millis(self.ms.load(Ordering::SeqCst))
    }
}

/// The one that waits on it moves it: the wait is over at once, and the clock shows the time after
/// it. So sessions over real sockets need not wait for their retries.
impl Timer for ManualClock {
    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        self.advance(time);
        Box::pin(ready(()))
    }
}
