//! The end of a prompt whose agents work on in the background: they are waited for, and the last answer counts.

use std::time::Duration;

use ennead::{RunError, RunOutcome, RunRequest, SessionHandle};
use tokio::{sync::Notify, time::timeout};

/// Runs a prompt, and what the session does by itself when its agents have ended, for as long as `ceiling`. Returns the
/// last outcome. `is_over` has it wait for no agent.
pub(super) async fn run_to_rest(
    session: &SessionHandle,
    request: RunRequest,
    ceiling: Option<Duration>,
    is_over: &Notify,
) -> Result<RunOutcome, RunError> {
    let mut last = Ok(session.run(request).await?);
    let resting = async {
        loop {
            last = match session.next_woken_run().await {
                Ok(Some(next)) => Ok(next),
                Ok(None) | Err(RunError::Ended) => break,
                Err(error) => Err(error),
            };
        }
    };
    let resting = async {
        match ceiling {
            None => resting.await,
            // What is at work then ends with the session.
            Some(ceiling) => _ = timeout(ceiling, resting).await,
        }
    };
    tokio::select! {
        () = is_over.notified() => {}
        () = resting => {}
    }
    last
}
