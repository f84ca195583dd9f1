//! Reads what a server sent, and keeps long work from the thread that other sessions wait for.

use ennead_runtime::{
    ports::ResponseBody,
    step5_model_call::{ModelFailure, failure},
};

use super::watchdog::Watchdog;

/// Bytes of an answer that are read where other sessions wait. JSON of this size takes well below a
/// millisecond, the input of a call included, which is read again at its end. What comes after them
/// is read on the blocking pool.
const IN_PLACE: usize = 128 * 1024;

/// Whether an answer of this many bytes is read where other sessions wait.
pub(super) fn is_little(n_bytes: usize) -> bool {
    n_bytes <= IN_PLACE
}

/// Does work that grows with what a server sent: here while it is little, and else on the blocking pool,
/// where no other session waits.
pub(super) async fn in_place_if<T: Send + 'static>(
    is_little: bool,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    if is_little {
        return work();
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is going, and this call with it.
            Err(_) => std::future::pending().await,
        },
    }
}

/// Reads a body to its end, or until it has more than this many bytes.
pub(super) async fn read(
    pieces: &mut ResponseBody,
    max_bytes: usize,
    watchdog: &mut Watchdog,
) -> Result<Vec<u8>, ModelFailure> {
    let mut body = Vec::new();
    while body.len() <= max_bytes
        && let Some(bytes) = watchdog
            .chunk(pieces)
            .await
            .map_err(|error| failure::from_transport(&error, String::new()))?
    {
        if !bytes.iter().all(u8::is_ascii_whitespace) {
            watchdog.heard_something();
        }
        body.extend_from_slice(&bytes);
    }
    Ok(body)
}
