//! Modes: what passes where no rule decides.
//!
//! A mode is a table, and this file shows the table at once.

use crate::{
    permission::PermissionMode,
    tool::{Access, ToolEffect},
};

/// What a mode does with a call before allow rules are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModeDecision {
    /// The mode lets the call pass.
    Allow,
    /// It is asked whatever the allow rules say.
    Ask,
    /// The rules decide, and `otherwise` where none of them applies.
    Rules {
        /// Whether it passes without a rule.
        otherwise: bool,
    },
}

/// Looks up the decision of a mode. `in_workspace` is about the path of a call that has one.
pub(super) fn says(
    mode: PermissionMode,
    access: &Access,
    effect: ToolEffect,
    in_workspace: bool,
) -> ModeDecision {
    use PermissionMode::{AcceptEdits, Auto, Bubble, BypassPermissions, Default, DontAsk, Plan};
    let otherwise = match access {
        Access::Free => true,
        Access::ReadPath { .. } => in_workspace,
        Access::WritePath { .. } | Access::Command { .. } | Access::Ask | Access::Person => false,
    };
    let writes = match access {
        Access::WritePath { .. } | Access::Command { .. } => true,
        Access::Ask => effect != ToolEffect::ReadOnly,
        Access::Free | Access::ReadPath { .. } | Access::Person => false,
    };
    match (mode, access) {
        (BypassPermissions, _) => ModeDecision::Allow,
        (Plan, _) if writes => ModeDecision::Ask,
        (AcceptEdits, Access::WritePath { .. }) if in_workspace => ModeDecision::Allow,
        (Plan | AcceptEdits | Auto | Default | DontAsk | Bubble, _) => {
            ModeDecision::Rules { otherwise }
        }
    }
}
