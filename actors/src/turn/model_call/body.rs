//! Reads what a server sent, and keeps long work from the thread that other sessions wait for.

use std::time::Duration;

use ennead_runtime::{
    ports::{ResponseBody, TransportError},
    saturating::Saturating as _,
    step5_model_call::{ModelFailure, failure},
};
use tokio::time::timeout;

use super::watchdog::Watchdog;

/// Bytes of an answer that are read where other sessions wait. JSON of this size takes well below a
/// millisecond, the input of a call included, which is read again at its end. What comes after them
/// is read on the blocking pool.
const IN_PLACE: usize = 128 * 1024;

/// Returns whether an answer of this many bytes is read where other sessions wait.
pub(super) fn is_little(n_bytes: usize) -> bool {
    n_bytes <= IN_PLACE
}

/// Runs work that grows with what a server sent: here while it is little, and else on the blocking pool, where no other
/// session waits.
pub(super) async fn in_place_if<T: Send + 'static>(
    is_little: bool,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    if is_little { work() } else { elsewhere(work).await }
}

/// Runs work on the blocking pool.
pub(super) async fn elsewhere<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is going, and this call with it.
            Err(_) => std::future::pending().await,
        },
    }
}

/// Bytes of the body of an error; what comes after them is left unread. Providers say what is wrong in
/// fewer than a thousand.
const MAX_ERROR_BODY: usize = 64 * 1024;

/// How long the body of an error is waited for. Its status is known without it, and an answer that is asked for
/// again at once should not cost what silence does.
const ERROR_BODY_TIME: Duration = Duration::from_secs(10);

/// Reads the body of an error as far as it comes in time; and why it is not whole, if it is not.
pub(super) async fn read_error(
    pieces: &mut ResponseBody,
    watchdog: &mut Watchdog,
) -> (Vec<u8>, Option<ModelFailure>) {
    let mut body = Vec::new();
    let read = timeout(ERROR_BODY_TIME, read_into(&mut body, pieces, MAX_ERROR_BODY, watchdog));
    let cut = match read.await {
        Ok(read) => read.err(),
        Err(_) => {
            let ms = u64::saturating(ERROR_BODY_TIME.as_millis());
            Some(failure::from_transport(&TransportError::NoEvent { ms }, String::new()))
        }
    };
    body.truncate(MAX_ERROR_BODY);
    (body, cut)
}

/// Reads a body to its end, or until it has more than this many bytes.
pub(super) async fn read(
    pieces: &mut ResponseBody,
    max_bytes: usize,
    watchdog: &mut Watchdog,
) -> Result<Vec<u8>, ModelFailure> {
    let mut body = Vec::new();
    read_into(&mut body, pieces, max_bytes, watchdog).await?;
    Ok(body)
}

async fn read_into(
    body: &mut Vec<u8>,
    pieces: &mut ResponseBody,
    max_bytes: usize,
    watchdog: &mut Watchdog,
) -> Result<(), ModelFailure> {
    while body.len() <= max_bytes
        && let Some(bytes) = watchdog
            .chunk(pieces)
            .await
            .map_err(|error| failure::from_transport(&error, String::new()))?
    {
        if !bytes.iter().all(u8::is_ascii_whitespace) {
            watchdog.note_content();
        }
        body.extend_from_slice(&bytes);
    }
    Ok(())
}
