//! Fields of an answer, and of what it holds.

use serde_json::{Map, Value};

/// Returns a field that is to be a text, if it is there.
pub(super) fn text(object: &Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("`{name}` is no text")),
    }
}

/// Returns a field that is to be true or false, if it is there.
pub(super) fn boolean(object: &Map<String, Value>, name: &str) -> Result<Option<bool>, String> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(value)) => Ok(Some(*value)),
        Some(_) => Err(format!("`{name}` is neither true nor false")),
    }
}
