//! The input of a call, as the stages of the gate look at it.

use std::{cell::OnceCell, sync::Arc};

use serde_json::Value;

/// The input of a call. Parsed when a field is first looked at: mostly the name of the tool decides.
#[derive(Debug)]
pub(super) struct CallInput {
    pub(super) text: Arc<str>,
    pub(super) value: OnceCell<Value>,
}

impl CallInput {
    /// Returns a field; there is none in what is not an object.
    pub(super) fn get(&self, field: &str) -> Option<&Value> {
        let parse = || serde_json::from_str(&self.text).unwrap_or_default();
        self.value.get_or_init(parse).get(field)
    }
}
