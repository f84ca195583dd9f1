//! What an independent comparison of loaders looks at (`tests/cases/README.md`, section H).

use serde::Serialize;
use serde_json::Value;

use super::{LoadAs, Report, load};
use crate::message::{Message, Role};

/// The outcome of loading, in the common form.
#[derive(Debug, Serialize)]
pub struct LoadOutcome {
    /// `{role, content}`, as a model would get them.
    pub messages: Vec<Value>,
    /// Everything that was wrong with the transcript.
    pub report: Vec<Report>,
    /// Whether the session can go on. No damage prevents that.
    pub resumable: bool,
    /// Grants taken over from the file: none, ever.
    pub restored_permissions: Vec<String>,
}

/// Loads a file and puts the outcome into the common form.
pub fn outcome(bytes: &[u8], load_as: LoadAs) -> LoadOutcome {
    let loaded = load(bytes, load_as);
    LoadOutcome {
        messages: loaded.messages.iter().map(|message| wire(message)).collect(),
        report: loaded.report,
        resumable: true,
        restored_permissions: Vec::new(),
    }
}

fn wire(message: &Message) -> Value {
    let role = if message.role == Role::Assistant { "assistant" } else { "user" };
    let content: Vec<Value> = message
        .blocks
        .iter()
        .map(|block| {
            let mut bytes = Vec::new();
            block.push_wire(&mut bytes);
            let text = String::from_utf8_lossy(&bytes);
            // Blocks are made from JSON or written as such; what is none is shown as it is.
            serde_json::from_str(&text).unwrap_or_else(|_| Value::from(text.as_ref()))
        })
        .collect();
    serde_json::json!({ "role": role, "content": content })
}

#[cfg(test)]
mod tests;
