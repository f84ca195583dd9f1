//! Locks that are taken whatever became of those who held them.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Mutexes whose content is sound at every moment, so that a thread which panicked while it held one left
/// nothing half done.
pub trait Locked<T: ?Sized> {
    /// Waits for the lock.
    fn locked(&self) -> MutexGuard<'_, T>;
}

impl<T: ?Sized> Locked<T> for Mutex<T> {
    fn locked(&self) -> MutexGuard<'_, T> {
        self.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
