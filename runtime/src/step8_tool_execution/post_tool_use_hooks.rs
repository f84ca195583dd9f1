//! What PostToolUse hooks add to a result, or to what one of them put in its place. They change what
//! the model sees; they undo nothing, since the tool has run.

use crate::{hook::HookVerdict, step3_context_assembly::reminder};

/// The text of a result as the model sees it.
pub fn with_context(text: &str, verdict: &HookVerdict) -> String {
    let mut shown = text.to_owned();
    let added = verdict.block_reason.iter().chain(&verdict.additional_context);
    for text in added {
        shown.push_str("\n\n");
        shown.push_str(&reminder(text));
    }
    shown
}
