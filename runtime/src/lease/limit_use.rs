//! How much of a limit is used, and when that is near the limit.

use std::fmt;

/// How much of a limit is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LimitUse {
    /// What is limited, in words: `turns`.
    pub of: &'static str,
    /// How much is used.
    pub used: u64,
    /// How much may be used.
    pub max: u64,
}

impl LimitUse {
    /// Returns whether 80 % of it are used (TRN-7). A limit of nothing is never near.
    pub(crate) fn is_near(&self) -> bool {
        0 < self.max && u128::from(self.max) * 4 <= u128::from(self.used) * 5
    }
}

impl fmt::Display for LimitUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} {} are used", self.used, self.max, self.of)
    }
}
