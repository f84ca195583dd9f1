//! Counts how often a rule was asked in a conversation.
//!
//! It is the only state that the engine needs, and its callers hold it.

use std::collections::{BTreeMap, VecDeque};

use ennead_runtime::digest::Digest;

/// Entries [`Attempts`] keeps: the oldest is forgotten first.
const MAX_ATTEMPTS: usize = 1 << 16;

/// Which rule was tried in which conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attempt {
    pub(super) rule: usize,
    pub(super) conversation: Digest,
}

/// Counts for rules that apply only this many times in a conversation.
#[derive(Debug, Default)]
pub struct Attempts {
    counts: BTreeMap<Attempt, u64>,
    order: VecDeque<Attempt>,
}

impl Attempts {
    /// Returns how often this was asked before, and counts this time.
    pub fn next(&mut self, attempt: Attempt) -> u64 {
        if let Some(count) = self.counts.get_mut(&attempt) {
            *count += 1;
            return *count - 1;
        }
        if self.order.len() == MAX_ATTEMPTS
            && let Some(oldest) = self.order.pop_front()
        {
            self.counts.remove(&oldest);
        }
        self.counts.insert(attempt, 1);
        self.order.push_back(attempt);
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: MDL-11
    #[test]
    fn count_of_attempts_forgets_the_oldest() {
        let mut attempts = Attempts::default();
        let attempt = |rule| Attempt { rule, conversation: Digest::default() };
        for rule in 0..=MAX_ATTEMPTS {
            assert_eq!(attempts.next(attempt(rule)), 0);
        }
        assert_eq!(attempts.next(attempt(1)), 1);
        assert_eq!(attempts.next(attempt(0)), 0);
        assert_eq!(attempts.counts.len(), attempts.order.len());
    }
}
