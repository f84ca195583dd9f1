//! Source 2: facts about the machine, the day and the working directory.
//!
//! In a message of the user, because the day changes and the system prompt must not.

use super::{PromptFacts, SourceTexts, titled};

/// Returns the facts, one a line; `None` when there are none.
pub(super) fn text(texts: &SourceTexts, now: Option<PromptFacts<'_>>) -> Option<String> {
    let mut lines = Vec::with_capacity(texts.environment.len() + 2);
    if let Some(PromptFacts { day, model, knowledge }) = now {
        lines.push(["Date: ", day, " (UTC)"].concat());
        lines.push(match knowledge {
            "" => ["Model: ", model].concat(),
            knowledge => ["Model: ", model, ", whose knowledge reaches to ", knowledge].concat(),
        });
    }
    lines.extend(texts.environment.iter().map(|(name, value)| [name, ": ", value].concat()));
    if lines.is_empty() {
        return None;
    }
    Some(titled("The environment you work in.", &lines.join("\n")))
}
