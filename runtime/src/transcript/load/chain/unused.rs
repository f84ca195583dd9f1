//! Which of the oldest lines a conversation does not need any more: those before its last compaction that this
//! did not keep.

use super::{ChainLink, Nodes};

impl Nodes {
    /// Drops the lines before the oldest that the conversation needs, where links can be followed without a doubt.
    /// Returns the number of that one; `None` where none was dropped.
    pub(in crate::transcript::load) fn forget_unused(&mut self) -> Option<u64> {
        let oldest = self.oldest_used().filter(|it| 0 < *it)?;
        // The number of another program's line is not known.
        let number = self.nodes.get(oldest).map(|it| it.line).filter(|it| *it != 0)?;
        self.nodes.drain(..oldest);
        self.by_id = self.nodes.iter().enumerate().map(|(at, it)| (it.id.clone(), at)).collect();
        self.messages.retain(|it| oldest <= *it);
        self.messages.iter_mut().for_each(|it| *it -= oldest);
        Some(number)
    }

    fn oldest_used(&self) -> Option<usize> {
        let leaf = self.messages.last().copied()?;
        let mut report = Vec::new();
        let compactions = self.compactions(&mut report);
        let (walked, visited) = self.ancestors(leaf, &compactions, &mut report);
        let active = compactions.iter().rev().find(|it| self.is_connected(it, &visited))?;
        let kept = match &self.nodes[active.boundary].what {
            ChainLink::Boundary { preserved: Some(_) } => {
                self.preserved(active.boundary, &mut report)
            }
            _ => Vec::new(),
        };
        let used = walked.into_iter().chain(kept).chain([active.boundary, active.summary]);
        used.min().filter(|_| report.is_empty())
    }
}
