//! Waits for what no event announces, and for no longer than a test may take.

use std::time::{Duration, Instant};

/// How long such a wait may be. Each takes microseconds; on a machine that does ten other things at
/// once, seconds.
const LIMIT: Duration = Duration::from_secs(60);

/// Asks again and again, with all other tasks having their turn in between, until `holds`.
///
/// The limit is on real time, since paused time stands still while a task is ready.
///
/// # Panics
///
/// With `what` is waited for, after a minute.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < LIMIT, "{what}: not within {LIMIT:?}");
        tokio::task::yield_now().await;
    }
}
