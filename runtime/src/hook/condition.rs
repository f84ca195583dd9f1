//! Which of the calls that its matcher covers a handler runs for (`if`).

use crate::permission::Scope;

/// Which calls a handler runs for: one permission rule, as `Bash(git *)` or `Edit(src/**)`.
#[derive(Clone, Debug)]
pub struct HookCondition {
    /// The rule, as it was written.
    pub rule: String,
    /// Where it was configured, which says from where its paths start.
    pub scope: Scope,
}

/// Two are equal when they mean the same: `/x` starts from where the settings are.
impl PartialEq for HookCondition {
    fn eq(&self, other: &Self) -> bool {
        self.rule == other.rule && (!self.rule.contains("(/") || self.scope == other.scope)
    }
}

impl Eq for HookCondition {}
