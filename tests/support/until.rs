//! Waits for what no event announces, and for no longer than a test may take.

use std::{
    future::{Future, pending},
    pin::pin,
    sync::mpsc::{RecvTimeoutError, channel},
    thread,
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

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

/// Minutes of paused time, a day of them, after which an event is not waited for any more.
const PAUSED_MINUTES: usize = 24 * 60;

/// Awaits what an event announces.
///
/// # Panics
///
/// With `what` is waited for, after a minute of real time; where time is paused, after a day of it.
pub(crate) async fn within<T>(what: &str, wait: impl Future<Output = T>) -> T {
    let begun = Instant::now();
    let mut wait = pin!(wait);
    for _ in 0..PAUSED_MINUTES {
        match tokio::time::timeout(LIMIT, wait.as_mut()).await {
            Ok(found) => return found,
            Err(_) => assert!(begun.elapsed() < LIMIT, "{what}: not within {LIMIT:?}"),
        }
    }
    panic!("{what}: not within a day of paused time");
}

/// Awaits what other tasks do, without a timer: where time is paused it is as if nothing waited.
///
/// # Panics
///
/// With `what` is waited for, after a minute of real time.
pub(crate) async fn within_real_time<T>(what: &str, wait: impl Future<Output = T>) -> T {
    within_real(LIMIT, what, wait).await
}

async fn within_real<T>(limit: Duration, what: &str, wait: impl Future<Output = T>) -> T {
    let (tell, late) = oneshot::channel();
    let (_over, is_over) = channel::<()>();
    thread::spawn(move || {
        if is_over.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            let _gone = tell.send(());
        }
    });
    tokio::select! {
        biased;
        found = wait => found,
        _ = late => panic!("{what}: not within {limit:?}"),
    }
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "what never comes: not within")]
async fn wait_in_real_time_for_what_never_comes_ends() {
    within_real(Duration::from_millis(10), "what never comes", pending::<()>()).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "what never comes: not within")]
async fn wait_for_what_never_comes_ends() {
    within("what never comes", pending::<()>()).await;
}
