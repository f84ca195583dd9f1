//! Locks that are taken whatever became of those who held them.

use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

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

/// The same for locks that several readers hold at once.
pub trait SharedLocked<T: ?Sized> {
    /// Waits until no writer has the lock.
    fn for_reading(&self) -> RwLockReadGuard<'_, T>;

    /// Waits until neither a reader nor a writer has the lock.
    fn for_writing(&self) -> RwLockWriteGuard<'_, T>;
}

impl<T: ?Sized> SharedLocked<T> for RwLock<T> {
    fn for_reading(&self) -> RwLockReadGuard<'_, T> {
        self.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn for_writing(&self) -> RwLockWriteGuard<'_, T> {
        self.write().unwrap_or_else(PoisonError::into_inner)
    }
}
