//! Path 2: a summary in the middle of a turn.
//!
//! At most once per turn. It is an input to the same shaper chain as any other compaction, so it
//! never runs beside one.

use super::Remedy;

/// Whether the turn has had its reactive compaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ReactiveCompaction {
    is_used: bool,
}

impl ReactiveCompaction {
    /// `None` when it has been used.
    pub(super) fn once(&mut self) -> Option<Remedy> {
        let is_first = !std::mem::replace(&mut self.is_used, true);
        is_first.then_some(Remedy::CompactReactively)
    }
}
