//! Where the kernel reports no changes of paths, each is looked at each time.

use std::convert::Infallible;

use super::{Added, Changed};

/// Nothing is watched, so there is none.
#[derive(Debug)]
pub(super) struct Watches(Infallible);

impl Watches {
    pub(super) fn start() -> Option<Self> {
        None
    }

    pub(super) fn len(&self) -> usize {
        match self.0 {}
    }

    pub(super) fn add(&mut self, _path: &[u8], _max: usize) -> Added {
        match self.0 {}
    }

    pub(super) fn take_reports(&mut self, _take: impl FnMut(Changed<'_>)) -> bool {
        match self.0 {}
    }
}
