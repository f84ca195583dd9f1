//! Input schemas: made from Rust types, compiled once, and their complaints put into words.
//!
//! The text of a schema is part of the prefix of every request, so it is the same on every run and
//! holds nothing that a model does not need. Without the feature `schema` an input is only parsed.

#[cfg(feature = "schema")]
mod checked;
mod tidy;
#[cfg(not(feature = "schema"))]
mod unchecked;

use std::sync::{Arc, OnceLock};

use ennead_runtime::{
    ids::ToolName,
    input_schema::{MAX_BYTES, TooComplex, is_flat, is_surely_cheap, measure, steps},
};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

#[cfg(feature = "schema")]
use self::checked::Validator;
#[cfg(not(feature = "schema"))]
use self::unchecked::Validator;

/// Complaints about one input that the model reads; the rest is counted.
const MAX_COMPLAINTS: usize = 8;

/// The schema of a tool's input, and its validator.
#[derive(Debug)]
pub struct Schema {
    text: Arc<str>,
    schema: Value,
    is_flat: bool,
    /// Made when the first input comes: making one takes half a millisecond, and most tools of a
    /// process are never called. The error represents a schema that no validator can be made of.
    validator: OnceLock<Result<Validator, String>>,
    /// Whether the tool can read an input: a schema lets `1.0` through as an integer, and a key twice.
    read: fn(&str) -> serde_json::Result<()>,
}

/// A text is not a schema of a tool's input.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// It is not JSON.
    #[error("the schema is not JSON")]
    NotJson(#[source] serde_json::Error),
    /// A tool's input is an object.
    #[error("the schema is not one of an object: its `type` is not \"object\"")]
    NotAnObject,
    /// It is larger than any schema needs to be, or refers to what is not in it.
    #[error("the schema is too complex: {0}")]
    TooComplex(#[source] TooComplex),
    /// It is not a JSON schema.
    #[error("the schema is not a JSON schema: {why}")]
    NotASchema {
        /// What is wrong with it, in words.
        why: String,
    },
}

impl Schema {
    /// Makes the schema of a type, for reading: closed objects, no references, no `null` for optional fields, no titles
    /// and number formats.
    pub(crate) fn of<I: JsonSchema + DeserializeOwned>() -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        });
        let mut schema = settings.into_generator().into_root_schema_for::<I>().to_value();
        if let Value::Object(root) = &mut schema {
            // The description of the type is for readers of the source; the tool has its own.
            root.remove("description");
            // A type without fields has no such key, but model servers ask for it.
            root.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        }
        tidy::tidy(&mut schema);
        Self::new(schema, |input| serde_json::from_str::<I>(input).map(drop))
    }

    /// Takes a schema as it is, white space aside.
    ///
    /// # Errors
    ///
    /// [`SchemaError`], when no input could be checked with it.
    pub(crate) fn from_text(text: &str) -> Result<Self, SchemaError> {
        if MAX_BYTES < text.len() {
            return Err(SchemaError::TooComplex(TooComplex::Bytes));
        }
        let value: Value = serde_json::from_str(text).map_err(SchemaError::NotJson)?;
        if value.get("type").and_then(Value::as_str) != Some("object") {
            return Err(SchemaError::NotAnObject);
        }
        measure(&value).map_err(SchemaError::TooComplex)?;
        let schema = Self::new(value, |_| Ok(()));
        match schema.validator() {
            Err(why) => Err(SchemaError::NotASchema { why: why.clone() }),
            Ok(_) => Ok(schema),
        }
    }

    fn new(schema: Value, read: fn(&str) -> serde_json::Result<()>) -> Self {
        let text: Arc<str> = schema.to_string().into();
        Self { is_flat: is_flat(&text), text, schema, validator: OnceLock::new(), read }
    }

    fn validator(&self) -> Result<&Validator, &String> {
        self.validator.get_or_init(|| Validator::of(&self.schema)).as_ref()
    }

    /// Returns the JSON text, which is the same for the same schema.
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// Checks an input.
    ///
    /// # Errors
    ///
    /// Everything that is wrong, in words for the model; values are not repeated.
    pub fn check(&self, tool: &ToolName, input: &str) -> Result<(), String> {
        let validator = self
            .validator()
            .map_err(|why| format!("the input schema of {tool} cannot be used: {why}"))?;
        let value: Value = serde_json::from_str(input)
            .map_err(|error| format!("the input of {tool} is not JSON: {error}"))?;
        if !self.is_flat || !is_surely_cheap(&self.text, input) {
            steps(&self.schema, &value)
                .map_err(|why| format!("the input of {tool} is not taken: {why}"))?;
        }
        let mut complaints = validator.complaints(&value);
        if complaints.is_empty() {
            let read = (self.read)(input);
            return read.map_err(|error| format!("the input of {tool} cannot be read: {error}"));
        }
        // The validator goes through maps; the order of complaints must not depend on that.
        complaints.sort_unstable();
        let n_complaints = complaints.len();
        complaints.truncate(MAX_COMPLAINTS);
        if n_complaints > MAX_COMPLAINTS {
            complaints.push(format!("- and {} more", n_complaints - MAX_COMPLAINTS));
        }
        Err(format!("the input of {tool} does not fit its schema:\n{}", complaints.join("\n")))
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize, JsonSchema)]
    #[schemars(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Input {
        /// A name.
        name: String,
        /// How many.
        count: Option<u32>,
        inner: Option<NestedInput>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[schemars(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct NestedInput {
        title: String,
    }

    // REQ: TOL-1
    #[test]
    fn schema_of_a_type_is_closed_flat_and_without_null() {
        let text = Schema::of::<Input>().text().clone();
        let expected = serde_json::json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["name"],
            "properties": {
                "name": {"type": "string", "description": "A name."},
                "count": {"type": "integer", "description": "How many.", "minimum": 0,
                          "maximum": 4294967295_u32},
                "inner": {
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["title"],
                    "properties": {"title": {"type": "string"}},
                },
            },
        });
        let mut found: Value = serde_json::from_str(&text).unwrap();
        if let Some(count) = found["properties"]["count"].as_object_mut() {
            count.entry("maximum").or_insert(4_294_967_295_u32.into());
        }
        assert_eq!(found, expected);
        assert_eq!(Schema::of::<Input>().text(), &text);
    }

    #[test]
    fn all_complaints_are_listed_and_values_are_not_repeated() {
        let secret = "x".repeat(5000);
        let input = format!(r#"{{"count":"{secret}","more":1}}"#);
        let why = Schema::of::<Input>().check(&"T".into(), &input).unwrap_err();
        assert!(why.contains("name") && why.contains("count") && why.contains("more"), "{why}");
        assert!(why.len() < 500, "{why}");
    }

    #[track_caller]
    fn refused_at_once(schema: &Value, input: &str, why: &str) {
        let schema = Schema::from_text(&schema.to_string()).unwrap();
        let refused = schema.check(&"T".into(), input).unwrap_err();
        assert!(refused.contains(why) && refused.len() < 2_000, "{refused}");
    }

    // REQ: TOL-1
    #[cfg(feature = "schema")]
    #[test]
    fn schema_that_would_cost_hours_is_refused_before_it_is_applied() {
        let level = |n: usize| {
            let next = serde_json::json!({"$ref": format!("#/$defs/l{}", n + 1)});
            (format!("l{n}"), serde_json::json!({"anyOf": [next, next, next]}))
        };
        let mut levels: Map<String, Value> = (0..80).map(level).collect();
        levels.insert("l80".into(), serde_json::json!({"type": "string"}));
        let doubling = serde_json::json!({
            "type": "object", "properties": {"a": {"$ref": "#/$defs/l0"}}, "$defs": levels,
        });
        refused_at_once(&doubling, r#"{"a":1}"#, "more than 100000 steps");
        let circle = serde_json::json!({"type": "object", "allOf": [{"$ref": "#"}]});
        refused_at_once(&circle, "{}", "more than 100000 steps");
        // Tries every way to cut a text, and then gives up; the limit of the validator ends it.
        let evil = serde_json::json!({
            "type": "object", "properties": {"a": {"pattern": "^(?=(a|a|b)*(a|aa)*(aa|a)*c)x"}},
        });
        let text = format!(r#"{{"a":"{}"}}"#, "a".repeat(4_000));
        refused_at_once(&evil, &text, "does not fit its schema");
        let distinct = serde_json::json!({
            "type": "object", "properties": {"a": {"uniqueItems": true}},
        });
        let numbers = serde_json::json!({"a": (0..1_000_000).collect::<Vec<_>>()}).to_string();
        refused_at_once(&distinct, &numbers, "more than 100000 steps");
    }

    // REQ: TOL-1
    #[cfg(feature = "schema")]
    #[test]
    fn the_longest_chain_of_references_and_the_most_patterns_fit_the_stack_and_the_time() {
        let next = |n: usize| serde_json::json!({"$ref": format!("#/$defs/l{}", n + 1)});
        let mut levels: Map<String, Value> =
            (0..150).map(|n| (format!("l{n}"), serde_json::json!({"not": next(n)}))).collect();
        levels.insert("l150".into(), serde_json::json!({"type": "string"}));
        // Twice as deep as any input can be checked by.
        let chain = serde_json::json!({
            "type": "object", "properties": {"a": {"$ref": "#/$defs/l0"}}, "$defs": levels,
        });
        refused_at_once(&chain, r#"{"a":1}"#, "within each other");
        let pattern = serde_json::json!({"pattern": "(x{20}){20}"});
        let patterns = serde_json::json!({"type": "object", "allOf": vec![pattern; 250]});
        let schema = Schema::from_text(&patterns.to_string()).unwrap();
        assert_eq!(schema.check(&"T".into(), "{}"), Ok(()));
        let huge = serde_json::json!({"type": "object", "not": {"pattern": "((x{99}){99}){99}"}});
        assert!(Schema::from_text(&huge.to_string()).is_err());
    }

    // REQ: TOL-1
    #[test]
    fn schema_beyond_its_bounds_is_no_schema_of_a_tool() {
        let long = format!(r#"{{"type":"object","description":"{}"}}"#, "x".repeat(MAX_BYTES));
        let refused =
            |text: &str| matches!(Schema::from_text(text), Err(SchemaError::TooComplex(_)));
        assert!(refused(&long));
        assert!(refused(r#"{"type":"object","allOf":[{"$ref":"https://example.org/s"}]}"#));
        assert!(refused(r#"{"type":"object","allOf":[{"$ref":"file:///etc/passwd"}]}"#));
    }

    #[test]
    fn texts_that_are_no_schema_are_refused() {
        assert!(matches!(Schema::from_text("{"), Err(SchemaError::NotJson(_))));
        assert!(matches!(Schema::from_text("{}"), Err(SchemaError::NotAnObject)));
        let bad = r#"{"type":"object","properties":{"a":{"type":"strnig"}}}"#;
        assert!(matches!(Schema::from_text(bad), Err(SchemaError::NotASchema { .. })));
        let good = r#"{"type":"object","properties":{"a":{"type":"string"}}}"#;
        assert!(Schema::from_text(good).unwrap().check(&"T".into(), r#"{"a":"b"}"#).is_ok());
    }
}
