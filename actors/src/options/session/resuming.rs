//! From where an earlier session goes on.

use super::SessionOptions;

impl SessionOptions {
    /// Continues an earlier session from this message; what came after it stays on disk.
    #[must_use]
    pub fn goes_on_from(self, message: impl Into<String>) -> Self {
        Self { goes_on_from: Some(message.into()), ..self }
    }
}
