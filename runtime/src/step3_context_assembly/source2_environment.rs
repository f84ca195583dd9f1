//! Source 2: facts about the machine, the day and the working directory.
//!
//! In a message of the user, because the day changes and the system prompt must not.

use super::{SourceTexts, titled};

/// The facts, one a line; `None` when there are none.
pub(super) fn text(texts: &SourceTexts) -> Option<String> {
    if texts.environment.is_empty() {
        return None;
    }
    let lines: Vec<String> =
        texts.environment.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    Some(titled("The environment you work in.", &lines.join("\n")))
}
