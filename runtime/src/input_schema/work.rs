//! How much work a check is, counted before it is done.
//!
//! Goes where a validator that finds every fault would go and counts its steps, an upper bound: each
//! branch of each combination, each reference, each member. What it counts is what it does itself, so
//! it takes no longer than it allows.

use serde_json::{Map, Value};

use super::{reference, target};
use crate::saturating::Saturating as _;

/// Steps of a check. One is some hundred nanoseconds of a validator.
pub(crate) const MAX_STEPS: u64 = 100_000;

/// Schemas applied within each other. A validator needs a few hundred bytes of stack for each.
const MAX_DEPTH: u32 = 160;

/// Bytes of a text that are looked at in a step, as for its length.
const BYTES_OF_A_STEP: u64 = 1024;

/// Steps of a pattern that looks around or back, each time it is tried; the validator gives it up then.
const STEPS_OF_A_FANCY_PATTERN: u64 = 200;

/// A check would be too much work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "checking it would take more than {MAX_STEPS} steps, or more than {MAX_DEPTH} within each other"
)]
pub struct CheckTooCostly;

/// What a schema is applied to.
#[derive(Clone, Copy)]
enum SchemaInstance<'v> {
    Value(&'v Value),
    /// The name of a member.
    Name(&'v str),
}

/// What is still to be applied, and how many steps are left.
struct PendingWork<'a> {
    schemas: Vec<(&'a Value, SchemaInstance<'a>, u32)>,
    steps: u64,
    depth: u32,
}

impl<'a> PendingWork<'a> {
    fn take(&mut self, steps: u64) -> Result<(), CheckTooCostly> {
        self.steps = self.steps.checked_sub(steps).ok_or(CheckTooCostly)?;
        Ok(())
    }

    /// Counted when it is set aside, so that what is set aside is bounded, too.
    fn apply(&mut self, schema: &'a Value, item: SchemaInstance<'a>) -> Result<(), CheckTooCostly> {
        if MAX_DEPTH <= self.depth {
            return Err(CheckTooCostly);
        }
        self.take(1)?;
        self.schemas.push((schema, item, self.depth + 1));
        Ok(())
    }
}

/// Steps at most for each pair of a byte of the schema and a byte of the input, if the schema is flat: a
/// part of it is applied, its members are looked up, and two values are compared.
const STEPS_OF_A_PAIR: u64 = 4;

/// Returns whether each part of a schema, given as JSON text, is applied to a value at most once, and none is a
/// pattern.
pub fn is_flat(schema: &str) -> bool {
    !["Ref", "$ref", "unevaluated", "attern"].iter().any(|it| schema.contains(it))
}

/// Returns whether a check takes fewer than `MAX_STEPS` for the lengths of the two alone. The schema is flat.
pub fn is_surely_cheap(schema: &str, input: &str) -> bool {
    let pairs = count(schema.len()).saturating_mul(count(input.len()));
    pairs.saturating_mul(STEPS_OF_A_PAIR) < MAX_STEPS
}

/// Counts the steps that a check takes.
///
/// # Errors
///
/// [`CheckTooCostly`], when these are more than `MAX_STEPS`.
pub fn steps(root: &Value, input: &Value) -> Result<u64, CheckTooCostly> {
    let schemas = vec![(root, SchemaInstance::Value(input), 0)];
    let mut left = PendingWork { schemas, steps: MAX_STEPS, depth: 0 };
    while let Some((schema, item, depth)) = left.schemas.pop() {
        left.depth = depth;
        let Value::Object(keywords) = schema else { continue };
        // Members that no part has seen are looked for by going through all parts once more.
        let n_times = match (item, keywords) {
            (SchemaInstance::Value(Value::Object(members)), it)
                if it.contains_key("unevaluatedProperties") =>
            {
                1 + members.len()
            }
            (SchemaInstance::Value(Value::Array(parts)), it)
                if it.contains_key("unevaluatedItems") =>
            {
                1 + parts.len()
            }
            _ => 1,
        };
        for _ in 0..n_times {
            in_place(root, schema, keywords, item, &mut left)?;
        }
        match item {
            SchemaInstance::Value(Value::Object(members)) => {
                of_members(keywords, members, &mut left)?
            }
            SchemaInstance::Value(Value::Array(parts)) => of_parts(keywords, parts, &mut left)?,
            SchemaInstance::Value(Value::String(text)) => of_text(keywords, text, &mut left)?,
            SchemaInstance::Name(text) => of_text(keywords, text, &mut left)?,
            SchemaInstance::Value(Value::Null | Value::Bool(_) | Value::Number(_)) => {}
        }
        if let SchemaInstance::Value(value) = item {
            compared(keywords, value, &mut left)?;
        }
    }
    Ok(MAX_STEPS - left.steps)
}

/// Parts that are applied to the same value.
fn in_place<'a>(
    root: &'a Value,
    schema: &'a Value,
    keywords: &'a Map<String, Value>,
    item: SchemaInstance<'a>,
    left: &mut PendingWork<'a>,
) -> Result<(), CheckTooCostly> {
    left.take(1)?;
    if let Some(part) = reference(schema).and_then(|it| target(root, it)) {
        left.apply(part, item)?;
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        for part in keywords.get(key).and_then(Value::as_array).into_iter().flatten() {
            left.apply(part, item)?;
        }
    }
    for key in ["not", "if", "then", "else"] {
        if let Some(part) = keywords.get(key) {
            left.apply(part, item)?;
        }
    }
    for key in ["dependentSchemas", "dependencies"] {
        for part in keywords.get(key).and_then(Value::as_object).into_iter().flatten() {
            left.apply(part.1, item)?;
        }
    }
    Ok(())
}

/// Parts that are applied to members, and what is looked up among them.
fn of_members<'a>(
    keywords: &'a Map<String, Value>,
    members: &'a Map<String, Value>,
    left: &mut PendingWork<'a>,
) -> Result<(), CheckTooCostly> {
    left.take(len(keywords.get("required")))?;
    let lists = keywords.get("dependentRequired").or_else(|| keywords.get("dependencies"));
    for (_, names) in lists.and_then(Value::as_object).into_iter().flatten() {
        left.take(1 + len(Some(names)))?;
    }
    let known = keywords.get("properties").and_then(Value::as_object);
    left.take(known.map_or(0, |it| count(it.len())))?;
    let patterns = keywords.get("patternProperties").and_then(Value::as_object);
    for (name, value) in members {
        let item = SchemaInstance::Value(value);
        let property = known.and_then(|it| it.get(name));
        if let Some(part) = property {
            left.apply(part, item)?;
        }
        for (pattern, part) in patterns.into_iter().flatten() {
            left.take(of_pattern(pattern, name))?;
            left.apply(part, item)?;
        }
        for key in ["additionalProperties", "unevaluatedProperties"] {
            if let Some(part) = keywords.get(key).filter(|_| property.is_none()) {
                left.apply(part, item)?;
            }
        }
        if let Some(part) = keywords.get("propertyNames") {
            left.apply(part, SchemaInstance::Name(name))?;
        }
    }
    Ok(())
}

/// Parts that are applied to the parts of an array.
fn of_parts<'a>(
    keywords: &'a Map<String, Value>,
    parts: &'a [Value],
    left: &mut PendingWork<'a>,
) -> Result<(), CheckTooCostly> {
    // To find out whether all differ, each is looked at whole.
    if keywords.get("uniqueItems") == Some(&Value::Bool(true)) {
        parts.iter().try_for_each(|it| look_at(it, left))?;
    }
    for key in ["prefixItems", "items"] {
        let schemas = keywords.get(key).and_then(Value::as_array).into_iter().flatten();
        for (schema, part) in schemas.zip(parts) {
            left.apply(schema, SchemaInstance::Value(part))?;
        }
    }
    for key in ["items", "additionalItems", "contains", "unevaluatedItems"] {
        let Some(schema) = keywords.get(key).filter(|it| !it.is_array()) else { continue };
        for part in parts {
            left.apply(schema, SchemaInstance::Value(part))?;
        }
    }
    Ok(())
}

fn of_text(
    keywords: &Map<String, Value>,
    text: &str,
    left: &mut PendingWork<'_>,
) -> Result<(), CheckTooCostly> {
    left.take(count(text.len()) / BYTES_OF_A_STEP)?;
    match keywords.get("pattern").and_then(Value::as_str) {
        Some(pattern) => left.take(of_pattern(pattern, text)),
        None => Ok(()),
    }
}

/// `enum` and `const`: equal texts cost their length, and what is not a text is looked at whole.
fn compared(
    keywords: &Map<String, Value>,
    value: &Value,
    left: &mut PendingWork<'_>,
) -> Result<(), CheckTooCostly> {
    let choices = keywords.get("enum").and_then(Value::as_array).into_iter().flatten();
    for choice in choices.chain(keywords.get("const")) {
        left.take(1)?;
        let are_large =
            (choice.is_array() && value.is_array()) || (choice.is_object() && value.is_object());
        if are_large {
            look_at(choice, left)?;
        }
    }
    Ok(())
}

/// A step for each value in a value, and for its text.
fn look_at(value: &Value, left: &mut PendingWork<'_>) -> Result<(), CheckTooCostly> {
    let mut values = vec![value];
    while let Some(value) = values.pop() {
        left.take(1)?;
        match value {
            Value::Array(parts) => {
                left.take(count(parts.len()))?;
                values.extend(parts);
            }
            Value::Object(members) => {
                left.take(count(members.len()))?;
                values.extend(members.values());
            }
            Value::String(text) => left.take(count(text.len()) / BYTES_OF_A_STEP)?,
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    Ok(())
}

/// A plain pattern looks at each byte of the text once for each of its states at worst.
fn of_pattern(pattern: &str, text: &str) -> u64 {
    let is_fancy = ["(?=", "(?!", "(?<", "(?>", "\\k", "\\g"].iter().any(|it| pattern.contains(it))
        || pattern.as_bytes().windows(2).any(|it| it[0] == b'\\' && it[1].is_ascii_digit());
    let plain = 1 + count(text.len()) * count(pattern.len()) / BYTES_OF_A_STEP;
    if is_fancy { plain + STEPS_OF_A_FANCY_PATTERN } else { plain }
}

fn len(list: Option<&Value>) -> u64 {
    list.and_then(Value::as_array).map_or(0, |it| count(it.len()))
}

fn count(n: usize) -> u64 {
    u64::saturating(n)
}
