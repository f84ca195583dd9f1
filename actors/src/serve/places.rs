//! A number of places, each free again when the one who has it is gone.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// So many places.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    taken: Arc<AtomicUsize>,
    max: usize,
}

/// A place that is taken.
#[derive(Debug)]
pub(crate) struct Place(Arc<AtomicUsize>);

impl Places {
    pub(crate) fn new(max: usize) -> Self {
        Self { taken: Arc::default(), max }
    }

    /// Takes a place; `None` when all are taken.
    pub(crate) fn enter(&self) -> Option<Place> {
        let more = |n: usize| (n < self.max).then_some(n + 1);
        self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok()?;
        Some(Place(Arc::clone(&self.taken)))
    }

    /// How many are taken.
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Acquire)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
