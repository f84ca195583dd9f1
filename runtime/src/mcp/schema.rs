//! Input schemas of servers, as model servers take them (compat 7.5).
//!
//! The root must be an object without `anyOf`, `oneOf` and `allOf`. What stands in these is merged
//! into the root, looser than it was written: the server still checks what it gets.

use serde_json::{Map, Value, json};

/// Keys of a root that a model server refuses.
const COMBINERS: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// How deep combined schemas may hold others; deeper ones count for nothing.
const MAX_DEPTH: usize = 8;

/// The schema as it is sent. `None`: no input could be an object, so the tool cannot be offered.
pub fn normalized(schema: &Map<String, Value>) -> Option<Map<String, Value>> {
    match schema.get("type") {
        None => {}
        Some(Value::String(kind)) if kind == "object" => {}
        Some(Value::Array(kinds)) if kinds.contains(&json!("object")) => {}
        Some(_) => return None,
    }
    let mut out = schema.clone();
    flatten(&mut out, MAX_DEPTH);
    out.insert("type".into(), "object".into());
    if !out.get("properties").is_some_and(Value::is_object) {
        out.insert("properties".into(), json!({}));
    }
    Some(out)
}

/// Merges the combined schemas of a root into it.
fn flatten(root: &mut Map<String, Value>, depth: usize) {
    for combiner in COMBINERS {
        let Some(Value::Array(branches)) = root.remove(combiner) else { continue };
        if depth == 0 {
            continue;
        }
        let mut branches: Vec<Map<String, Value>> =
            branches.into_iter().filter_map(|it| it.as_object().cloned()).collect();
        branches.iter_mut().for_each(|it| flatten(it, depth - 1));
        let required = required_of(&branches, combiner == "allOf");
        for branch in branches {
            for key in ["properties", "$defs", "definitions"] {
                if let Some(Value::Object(of_branch)) = branch.get(key) {
                    merge(root, key, of_branch);
                }
            }
        }
        add_required(root, required);
        // It knew the properties of the root only.
        root.remove("additionalProperties");
    }
}

/// The first to name a property says what it is.
fn merge(root: &mut Map<String, Value>, key: &str, more: &Map<String, Value>) {
    let entry = root.entry(key).or_insert_with(|| json!({}));
    if let Value::Object(known) = entry {
        for (name, schema) in more {
            known.entry(name).or_insert_with(|| schema.clone());
        }
    }
}

/// What all of the branches (or any of them) require.
fn required_of(branches: &[Map<String, Value>], any: bool) -> Vec<Value> {
    let lists: Vec<Vec<Value>> = branches
        .iter()
        .map(|it| it.get("required").and_then(Value::as_array).cloned().unwrap_or_default())
        .collect();
    let mut found: Vec<Value> = Vec::new();
    for name in lists.iter().flatten() {
        let is_required = any || lists.iter().all(|list| list.contains(name));
        if is_required && !found.contains(name) {
            found.push(name.clone());
        }
    }
    found
}

fn add_required(root: &mut Map<String, Value>, more: Vec<Value>) {
    if more.is_empty() {
        return;
    }
    if let Value::Array(known) = root.entry("required").or_insert_with(|| json!([])) {
        for name in more {
            if !known.contains(&name) {
                known.push(name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: Value, sent: Option<Value>) {
        let found = normalized(schema.as_object().unwrap()).map(Value::Object);
        assert_eq!(found, sent, "{schema}");
    }

    // T7.12
    #[test]
    fn combined_roots_become_an_object_with_all_their_properties() {
        let a = json!({"type": "object", "properties": {"a": {"type": "string"}, "k": {}},
                       "required": ["a", "k"], "additionalProperties": false});
        let b = json!({"properties": {"b": {"type": "integer"}, "k": true}, "required": ["k"]});
        let properties = json!({"a": {"type": "string"}, "b": {"type": "integer"}, "k": {}});
        for any in ["oneOf", "anyOf"] {
            check(
                json!({any: [a, b]}),
                Some(json!({"type": "object", "properties": properties, "required": ["k"]})),
            );
        }
        check(
            json!({"allOf": [a, {"anyOf": [b]}]}),
            Some(json!({"type": "object", "properties": properties, "required": ["a", "k"]})),
        );
    }

    #[test]
    fn plain_objects_stay_and_what_is_missing_is_added() {
        let plain = json!({"type": "object", "properties": {"x": {"oneOf": [{}]}}, "required": []});
        check(plain.clone(), Some(plain));
        check(json!({}), Some(json!({"type": "object", "properties": {}})));
        check(
            json!({"type": ["object", "null"]}),
            Some(json!({"type": "object", "properties": {}})),
        );
    }

    #[test]
    fn schema_of_something_else_cannot_be_used() {
        check(json!({"type": "string"}), None);
        check(json!({"type": ["string", "null"]}), None);
    }
}
