//! A limited number of slots, each free again when its holder is gone.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// A limited number of slots. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    taken: Arc<AtomicUsize>,
    max: usize,
}

/// A slot that is taken until this is dropped.
#[derive(Debug)]
pub(crate) struct TakenSlot(Arc<AtomicUsize>);

impl Slots {
    pub(crate) fn new(max: usize) -> Self {
        Self { taken: Arc::default(), max }
    }

    /// Takes a slot; `None` when all are taken.
    pub(crate) fn take(&self) -> Option<TakenSlot> {
        let more = |n: usize| (n < self.max).then_some(n + 1);
        self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok()?;
        Some(TakenSlot(Arc::clone(&self.taken)))
    }
}

impl Drop for TakenSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
