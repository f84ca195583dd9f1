//! A clock that stands still with the timers of a paused runtime and moves with them.

use std::time::Duration;

use ennead::Clock;
use ennead_runtime::time::Timestamp;
use tokio::time::Instant;

/// See the module. It starts when it is made, at 2026-09-21.
#[derive(Debug)]
pub(crate) struct Paused(Instant);

impl Default for Paused {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Clock for Paused {
    fn now(&self) -> Timestamp {
        let ms: u64 = self.elapsed().as_millis().try_into().unwrap();
        Timestamp(1_790_000_000_000 + ms)
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
