//! Path 3: the prompt is too long for the model.
//!
//! Collapse, then reactive compaction, then the end. The end is final (MDL-5): neither a retry nor
//! another model brings the chain back.

use super::{Remedy, path2_reactive_compaction::ReactiveCompaction};

/// How far the chain has been walked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Overflow {
    has_collapsed: bool,
    compaction: ReactiveCompaction,
}

impl Overflow {
    /// The next link of the chain.
    pub(super) fn next(&mut self) -> Remedy {
        if !std::mem::replace(&mut self.has_collapsed, true) {
            return Remedy::CollapseContext;
        }
        self.compaction.once().unwrap_or(Remedy::Surface)
    }
}
