//! Which of the calls that its matcher covers a handler runs for (`if`).

use crate::permission::Scope;

/// Which calls a handler runs for: one permission rule, as `Bash(git *)` or `Edit(src/**)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookCondition {
    /// The rule, as it was written.
    pub rule: String,
    /// Where it was configured, which says from where its paths start.
    pub scope: Scope,
}
