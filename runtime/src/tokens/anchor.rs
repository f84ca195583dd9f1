//! The last reported size of a request, from which the next one is counted.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Counting, Estimate, Tokens};

/// A reported size, and the estimate for the same request: what was added since is estimated, the
/// rest is known (CTX-8).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    /// The model that was asked; others count otherwise.
    pub model: Arc<str>,
    /// Input and output of the last answer, as reported.
    pub reported: Tokens,
    /// What was estimated for the same.
    pub(crate) estimated: Estimate,
}

impl Anchor {
    /// Returns the size of a request that is now estimated at `estimate`.
    pub(crate) fn corrected(&self, estimate: Estimate, counting: Counting) -> Tokens {
        counting.moved(self.reported, self.estimated, estimate)
    }

    /// Returns the most that it can be: what was reported, and a token for each character that came since.
    pub(crate) fn at_most(&self, estimate: Estimate) -> Tokens {
        self.reported + estimate.saturating_sub(self.estimated).at_most()
    }
}
