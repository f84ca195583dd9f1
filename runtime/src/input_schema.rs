//! Bounds of the schemas of tool inputs, which servers and repositories write.
//!
//! A validator does what its schema says, and a schema of a hundred bytes can say more than a machine can
//! do: branches in branches, references in circles, patterns that try every way. So the size of a schema
//! is bounded before a validator is made of it, and the work of a check is counted before it is done.

use serde_json::Value;

mod work;

#[cfg(test)]
pub(crate) use work::MAX_STEPS;
pub use work::{CheckTooCostly, is_flat, is_surely_cheap, steps};

/// Bytes of a schema as JSON.
pub const MAX_BYTES: usize = 256 * 1024;

/// Values in a schema: objects, arrays, texts, numbers. The largest of a public server known to us has
/// some 3,000.
const MAX_VALUES: usize = 20_000;

/// Objects and arrays within each other.
const MAX_DEPTH: usize = 64;

/// `$ref`s. Each may lead to the next, and the one that follows them needs a stack.
const MAX_REFERENCES: usize = 256;

/// Patterns, and bytes of one. Each is compiled.
const MAX_PATTERNS: usize = 256;
const MAX_PATTERN_BYTES: usize = 1024;

/// Why no validator is made of a schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TooComplex {
    /// Its text is longer than [`MAX_BYTES`].
    #[error("it has more than {MAX_BYTES} bytes")]
    Bytes,
    /// It has too many parts.
    #[error("it has more than {MAX_VALUES} values")]
    Values,
    /// Its parts lie too deep within each other.
    #[error("it is nested more than {MAX_DEPTH} deep")]
    Depth,
    /// It refers to its parts too often.
    #[error("it has more than {MAX_REFERENCES} references")]
    References,
    /// A reference leads to nothing in the schema, or is one of those that are found out while an
    /// input is checked.
    #[error("its reference `{0}` is not a path in the schema")]
    Reference(String),
    /// There are too many patterns, or one is too long.
    #[error(
        "it has more than {MAX_PATTERNS} patterns, or one of more than {MAX_PATTERN_BYTES} bytes"
    )]
    Patterns,
}

/// Steps of a check, at worst, that may be done where others wait: a part of the schema for each part of the
/// input, some ten bytes each.
const LIGHT: usize = 1 << 20;

/// Returns whether a check is well below a millisecond whatever the two hold. References multiply the work, so a schema
/// that has some is not light.
pub fn is_light(schema: &str, input: &str) -> bool {
    schema.len().saturating_mul(input.len()) <= LIGHT && !schema.contains("$ref")
}

/// Checks a schema against the bounds, in one pass.
///
/// # Errors
///
/// [`TooComplex`], with the first bound that does not hold.
pub fn measure(schema: &Value) -> Result<(), TooComplex> {
    let (mut n_values, mut n_references, mut n_patterns) = (0, 0, 0);
    let mut left = vec![(schema, 1)];
    while let Some((value, depth)) = left.pop() {
        n_values += 1;
        if MAX_VALUES < n_values {
            return Err(TooComplex::Values);
        }
        if MAX_DEPTH < depth {
            return Err(TooComplex::Depth);
        }
        match value {
            Value::Array(parts) => left.extend(parts.iter().map(|it| (it, depth + 1))),
            Value::Object(parts) => {
                left.extend(parts.values().map(|it| (it, depth + 1)));
                if let Some(to) = reference(value) {
                    n_references += 1;
                    if target(schema, to).is_none() {
                        return Err(TooComplex::Reference(shortened(to)));
                    }
                }
                for key in ["$dynamicRef", "$recursiveRef"] {
                    if let Some(to) = parts.get(key).and_then(Value::as_str) {
                        return Err(TooComplex::Reference(shortened(to)));
                    }
                }
                let named = parts.get("patternProperties").and_then(Value::as_object);
                let named = named.into_iter().flat_map(|it| it.keys().map(String::as_str));
                for pattern in parts.get("pattern").and_then(Value::as_str).into_iter().chain(named)
                {
                    n_patterns += 1;
                    if MAX_PATTERN_BYTES < pattern.len() {
                        return Err(TooComplex::Patterns);
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        if MAX_REFERENCES < n_references {
            return Err(TooComplex::References);
        }
        if MAX_PATTERNS < n_patterns {
            return Err(TooComplex::Patterns);
        }
    }
    Ok(())
}

/// Where a schema refers to, if it does.
fn reference(schema: &Value) -> Option<&str> {
    schema.get("$ref").and_then(Value::as_str)
}

/// The part of a schema that a reference means.
fn target<'s>(root: &'s Value, reference: &str) -> Option<&'s Value> {
    root.pointer(reference.strip_prefix('#')?)
}

fn shortened(reference: &str) -> String {
    reference.chars().take(80).collect()
}

#[cfg(test)]
mod tests;
