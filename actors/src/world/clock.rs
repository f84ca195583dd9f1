//! Clocks and timers: the machine's, and a clock that stands still until it is moved.

use std::{
    fmt,
    future::{pending, ready},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use ennead_runtime::{
    ports::{BoxFuture, Clock},
    saturating::Saturating as _,
    time::Timestamp,
};
use tokio::sync::watch;

/// Waits for time to pass.
pub trait Timer: Send + Sync + fmt::Debug {
    /// Ends when the time is over. Work goes on after it: the next attempt at the model, the next start of
    /// an MCP server.
    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()>;

    /// Ends when a limit is reached, which cuts work off: the time limit of a run, of a tool (`timeout_ms`) or of a
    /// hook, the end of a question, the limit of a classifier. Commands of Bash and MCP servers have limits of their own. The same as [`sleep`](Timer::sleep) unless it is implemented; a timer
    /// that makes pauses short must not make limits short.
    fn deadline(&self, limit: Duration) -> BoxFuture<'static, ()> {
        self.sleep(limit)
    }
}

/// What one piece of work is measured and limited with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeSource<'a> {
    pub(crate) clock: &'a dyn Clock,
    pub(crate) timer: &'a dyn Timer,
}

/// Waits for work until a limit of the timer is reached; `None` when it was. Work that is over at once is so
/// whatever the limit.
pub(crate) async fn within<T>(
    timer: &dyn Timer,
    limit: Duration,
    work: impl Future<Output = T>,
) -> Option<T> {
    tokio::select! {
        biased;
        result = work => Some(result),
        // Work that is always ready uses up what the scheduler gives a task, and the limit is looked at all the same.
        () = tokio::task::unconstrained(timer.deadline(limit)) => None,
    }
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
    /// Starts a clock. Only this type asks the machine for the time.
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
        Timestamp(u64::saturating(since.as_millis()))
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
}

/// A clock that stands still until it is moved. Sessions that share one and a seed leave the same
/// transcripts, whatever the machine is doing.
///
/// As a timer it moves itself: a [`sleep`](Timer::sleep) ends at once, and the clock shows the time after
/// it, so that retries take no time. A [`deadline`](Timer::deadline) ends when the clock has been moved
/// that far, by a sleep or by [`advance`](ManualClock::advance).
#[derive(Debug, Default)]
pub struct ManualClock {
    ms: watch::Sender<u64>,
}

impl ManualClock {
    /// Returns a clock that shows this many milliseconds since 1970.
    pub fn at(ms: u64) -> Self {
        Self { ms: watch::Sender::new(ms) }
    }

    /// Moves the clock forward by this much, and ends the deadlines that are reached.
    pub fn advance(&self, by: Duration) {
        self.ms.send_modify(|ms| *ms = after(*ms, by));
    }

    fn ms(&self) -> u64 {
        *self.ms.borrow()
    }
}

/// Returns the reading this much later.
fn after(ms: u64, by: Duration) -> u64 {
    ms.saturating_add(u64::saturating(by.as_millis()))
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.ms())
    }

    fn elapsed(&self) -> Duration {
        Duration::from_millis(self.ms())
    }
}

impl Timer for ManualClock {
    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        self.advance(time);
        Box::pin(ready(()))
    }

    fn deadline(&self, limit: Duration) -> BoxFuture<'static, ()> {
        let mut readings = self.ms.subscribe();
        let due = after(self.ms(), limit);
        Box::pin(async move {
            if readings.wait_for(|ms| due <= *ms).await.is_err() {
                // A clock that is gone is not moved any more.
                pending::<()>().await;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn sleep_moves_a_manual_clock_and_a_deadline_waits_until_it_is_moved() {
        let clock = ManualClock::at(1_000);
        let mut limit = clock.deadline(Duration::from_secs(60));
        assert!((&mut limit).now_or_never().is_none());
        assert!(clock.sleep(Duration::from_secs(59)).now_or_never().is_some());
        assert_eq!(clock.now(), Timestamp(60_000));
        assert!((&mut limit).now_or_never().is_none());
        clock.advance(Duration::from_secs(1));
        assert!(limit.now_or_never().is_some());
    }

    // The work uses up what the scheduler gives a task at once, so that a timer asked by the usual way is never looked at.
    #[tokio::test]
    async fn limit_ends_work_that_is_always_ready() {
        let permits = tokio::sync::Semaphore::new(1);
        let mut n_rounds = 0_u64;
        let work = async {
            while n_rounds < 10_000_000_000 {
                drop(permits.acquire().await);
                n_rounds += 1;
            }
        };
        assert_eq!(within(&SystemTimer, Duration::from_millis(5), work).await, None);
    }

    #[test]
    fn deadline_of_a_clock_that_is_gone_never_ends() {
        let limit = ManualClock::at(0).deadline(Duration::from_millis(1));
        assert!(limit.now_or_never().is_none());
    }
}
