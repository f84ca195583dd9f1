//! Input schemas of servers, as model servers take them.
//!
//! The root must be an object without `anyOf`, `oneOf` and `allOf`. What stands in these is merged
//! into the root, looser than it was written: the server still checks what it gets. A property that
//! branches know differently may be what any of them says, and for `allOf` must be what all say.

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
        // One that is no object (`true`) requires nothing.
        let mut branches: Vec<Map<String, Value>> =
            branches.into_iter().map(|it| it.as_object().cloned().unwrap_or_default()).collect();
        branches.iter_mut().for_each(|it| flatten(it, depth - 1));
        let all_hold = combiner == "allOf";
        let required = required_of(&branches, all_hold);
        for branch in branches {
            // A definition is no demand: what refers to it may mean any.
            for (key, all_hold) in
                [("properties", all_hold), ("$defs", false), ("definitions", false)]
            {
                if let Some(Value::Object(of_branch)) = branch.get(key) {
                    merge(root, key, of_branch, all_hold);
                }
            }
        }
        add_required(root, required);
        // It knew the properties of the root only.
        root.remove("additionalProperties");
    }
}

/// A property that is known already gets both schemas.
fn merge(root: &mut Map<String, Value>, key: &str, more: &Map<String, Value>, all_hold: bool) {
    let entry = root.entry(key).or_insert_with(|| json!({}));
    if let Value::Object(known) = entry {
        for (name, schema) in more {
            let both = match known.get(name) {
                None => schema.clone(),
                Some(known) => combined(known, schema, all_hold),
            };
            known.insert(name.clone(), both);
        }
    }
}

/// One schema for two: that both hold, or that one does.
fn combined(known: &Value, more: &Value, all_hold: bool) -> Value {
    let takes_all = |it: &Value| *it == Value::Bool(true) || *it == json!({});
    if known == more || takes_all(if all_hold { more } else { known }) {
        return known.clone();
    }
    if takes_all(if all_hold { known } else { more }) {
        return more.clone();
    }
    let key = if all_hold { "allOf" } else { "anyOf" };
    // A list of before is made longer, if there is nothing beside it.
    let list = known.as_object().filter(|it| it.len() == 1).and_then(|it| it.get(key)?.as_array());
    let mut list = list.cloned().unwrap_or_else(|| vec![known.clone()]);
    if !list.contains(more) {
        list.push(more.clone());
    }
    json!({ key: list })
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
    fn property_that_branches_know_differently_takes_what_each_of_them_takes() {
        let kind = |kind: &str| json!({"const": kind});
        let branch =
            |it: &str| json!({"properties": {"kind": kind(it), it: {}}, "required": ["kind", it]});
        let properties = |kinds: Value| json!({"kind": kinds, "a": {}, "b": {}, "c": {}});
        for (combiner, kinds, required) in [
            ("oneOf", json!({"anyOf": [kind("a"), kind("b"), kind("c")]}), json!(["kind"])),
            ("anyOf", json!({"anyOf": [kind("a"), kind("b"), kind("c")]}), json!(["kind"])),
            (
                "allOf",
                json!({"allOf": [kind("a"), kind("b"), kind("c")]}),
                json!(["kind", "a", "b", "c"]),
            ),
        ] {
            check(
                json!({combiner: [branch("a"), branch("b"), branch("c"), branch("a")]}),
                Some(json!({
                    "type": "object", "properties": properties(kinds), "required": required,
                })),
            );
        }
        let text = json!({"properties": {"x": {"type": "string"}}, "required": ["x"]});
        check(
            json!({"anyOf": [text, true, {"properties": {"x": true}}]}),
            Some(json!({"type": "object", "properties": {"x": true}})),
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
