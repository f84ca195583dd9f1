//! Which of the calls that its matcher covers a handler runs for (`if`).

use crate::{
    permission::{RuleKind, RuleText, Scope},
    step7_permission_gate::rule::Rule,
};

/// Which calls a handler runs for: one permission rule, as `Bash(git *)` or `Edit(src/**)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookCondition {
    pub(crate) rule: Rule,
}

impl HookCondition {
    /// Reads a rule of a settings file of this scope.
    pub(super) fn read(text: &str, scope: Scope) -> Result<Self, String> {
        // The kind for which most texts are rules.
        let rule = RuleText { kind: RuleKind::Ask, scope, text: text.to_owned() };
        let rule = Rule::parse(&rule).map_err(|it| it.to_string())?;
        Ok(Self { rule })
    }
}
