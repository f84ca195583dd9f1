//! Members of a JSON body that may be missing or of another type.

use serde_json::Value as Json;

/// Returns the entries of a list; none if the value is not a list.
pub(super) fn list(value: &Json) -> &[Json] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns the text of a string; empty if the value is not a string.
pub(super) fn str_of(value: &Json) -> &str {
    value.as_str().unwrap_or_default()
}
