//! The validator of a schema, by jsonschema.

use serde_json::Value;

/// Checks inputs against one schema.
#[derive(Debug)]
pub(super) struct Validator(jsonschema::Validator);

impl Validator {
    /// Compiles a schema.
    ///
    /// # Errors
    ///
    /// Why it is not a JSON schema, in words.
    pub(super) fn of(schema: &Value) -> Result<Self, String> {
        jsonschema::validator_for(schema).map(Self).map_err(|error| error.to_string())
    }

    /// Returns everything that is wrong with an input, one line each, in no fixed order; values are
    /// not repeated.
    pub(super) fn complaints(&self, input: &Value) -> Vec<String> {
        let in_words = |error: jsonschema::ValidationError<'_>| match error
            .instance_path()
            .to_string()
            .as_str()
        {
            "" => format!("- {}", error.masked_with("the input")),
            path => format!("- {}: {}", path.trim_start_matches('/'), error.masked()),
        };
        self.0.iter_errors(input).map(in_words).collect()
    }
}
