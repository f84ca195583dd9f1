//! The validator of a schema, by jsonschema.

use jsonschema::PatternOptions;
use serde_json::Value;

/// Ways that a pattern which looks around or back may try for one text; then it does not match.
const MAX_BACKTRACKS: usize = 10_000;

/// Bytes that a pattern may have when it is compiled, and that matching it may keep.
const MAX_PATTERN_SIZE: usize = 256 * 1024;

/// Complaints that are put into words.
const MAX_COMPLAINTS: usize = 1_000;

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
        let patterns = PatternOptions::fancy_regex()
            .backtrack_limit(MAX_BACKTRACKS)
            .size_limit(MAX_PATTERN_SIZE)
            .dfa_size_limit(MAX_PATTERN_SIZE);
        // A format is a note, as in the newest draft: `regex` alone would compile what the input says.
        let options = jsonschema::options().with_pattern_options(patterns);
        let options = options.should_validate_formats(false);
        options.build(schema).map(Self).map_err(|error| error.to_string())
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
        self.0.iter_errors(input).take(MAX_COMPLAINTS).map(in_words).collect()
    }
}
