//! Stage 1: tools that are denied as a whole are not even offered.

use std::sync::Arc;

use super::{GateSetup, RuleRef};
use crate::tool::ToolSpec;

/// Returns the tools that the model is offered, in the same order.
pub fn offered(specs: &[Arc<ToolSpec>], setup: &GateSetup) -> Vec<bool> {
    specs.iter().map(|it| denied(it.name.as_str(), setup).is_none()).collect()
}

/// Returns whether a rule, here or above, denies sub-agents of this type.
pub(crate) fn denies_agent(agent_type: &str, setup: &GateSetup) -> bool {
    setup.book().denies_agent(agent_type)
        || setup.parent().is_some_and(|parent| denies_agent(agent_type, parent))
}

/// Returns the rule that denies the tool as a whole, here or above. A model may call what it was not offered, so each
/// call is tested with this as well.
pub(super) fn denied(tool: &str, setup: &GateSetup) -> Option<RuleRef> {
    setup
        .book()
        .denies_whole(tool)
        .or_else(|| setup.parent().and_then(|parent| denied(tool, parent)))
}
