//! Kills an actor at birth.
//!
//! On a current-thread scheduler a task that wakes itself is polled between any two steps of the
//! others. An actor is in the directory before its own task is first polled, so what a hunter kills
//! has done nothing yet, however short its life would have been. No race and no clock.

use std::{future::poll_fn, task::Poll};

use ennead::data::{Directory, Live};
use tokio::task::JoinHandle;

/// Kills the first actor that fits. The join handle resolves when it was killed.
pub(crate) fn hunt(
    directory: Directory,
    is_prey: impl Fn(&Live, &[Live]) -> bool + Send + 'static,
) -> JoinHandle<()> {
    tokio::spawn(poll_fn(move |context| {
        let all = directory.all();
        if let Some(prey) = all.iter().find(|it| is_prey(it, &all)) {
            prey.cell.kill();
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }))
}
