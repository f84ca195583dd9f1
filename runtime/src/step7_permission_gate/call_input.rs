//! The input of a call, as the stages of the gate look at it.

use std::{cell::OnceCell, sync::Arc};

use serde_json::Value;

/// The input of a call. Parsed when a field is first looked at: mostly the name of the tool decides.
#[derive(Debug)]
pub(super) struct CallInput {
    text: Arc<str>,
    value: OnceCell<Value>,
}

impl CallInput {
    /// Makes the input from its JSON text.
    pub(super) fn new(text: Arc<str>) -> Self {
        Self { text, value: OnceCell::new() }
    }

    /// Returns a field; there is none in what is not an object.
    pub(super) fn get(&self, field: &str) -> Option<&Value> {
        let parse = || serde_json::from_str(&self.text).unwrap_or_default();
        self.value.get_or_init(parse).get(field)
    }
}
