//! Input schemas of servers, as model servers take them.
//!
//! The root must be an object without `anyOf`, `oneOf` and `allOf`. What is in these is merged
//! into the root, looser than it was written: the server still checks what it gets. A property that
//! branches know differently may be what any of them says, and for `allOf` must be what all say.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::input_schema::{MAX_BYTES, measure};

/// Keys of a root that a model server refuses.
const COMBINERS: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// How deep combined schemas may hold others; deeper ones count for nothing.
const MAX_DEPTH: usize = 8;

/// Schemas that one property is given by branches. Of more, a property may be anything, or must be what
/// the first ones say: looser, too, and the work stays linear.
const MAX_BRANCHES: usize = 64;

/// Returns the schema as it is sent; `None` if no input could be an object, or the schema is too large, so that the
/// tool cannot be offered.
pub(crate) fn normalized(schema: &Map<String, Value>) -> Option<Map<String, Value>> {
    let whole = Value::Object(schema.clone());
    if measure(&whole).is_err() || MAX_BYTES < whole.to_string().len() {
        return None;
    }
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
        // One that is not an object (`true`) requires nothing.
        let mut branches: Vec<Map<String, Value>> =
            branches.into_iter().map(|it| it.as_object().cloned().unwrap_or_default()).collect();
        branches.iter_mut().for_each(|it| flatten(it, depth - 1));
        let all_hold = combiner == "allOf";
        let required = required_of(&branches, all_hold);
        for branch in branches {
            // A definition is not a demand: what refers to it may mean any.
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
            let both = match known.remove(name) {
                None => schema.clone(),
                Some(known) => combined(known, schema, all_hold),
            };
            known.insert(name.clone(), both);
        }
    }
}

/// One schema for two: that both hold, or that one does.
fn combined(known: Value, more: &Value, all_hold: bool) -> Value {
    let takes_all = |it: &Value| *it == Value::Bool(true) || *it == json!({});
    if known == *more || takes_all(if all_hold { more } else { &known }) {
        return known;
    }
    if takes_all(if all_hold { &known } else { more }) {
        return more.clone();
    }
    let key = if all_hold { "allOf" } else { "anyOf" };
    // A list of before is made longer, if there is nothing next to it.
    let mut list = match known {
        Value::Object(mut it) if it.len() == 1 && it.get(key).is_some_and(Value::is_array) => {
            match it.remove(key) {
                Some(Value::Array(list)) => list,
                _ => Vec::new(),
            }
        }
        other => vec![other],
    };
    if !list.contains(more) {
        match (list.len() < MAX_BRANCHES, all_hold) {
            (true, _) => list.push(more.clone()),
            (false, true) => {}
            (false, false) => return json!({}),
        }
    }
    json!({ key: list })
}

/// What all of the branches (or any of them) require, each once, in the order in which it is met.
fn required_of(branches: &[Map<String, Value>], any: bool) -> Vec<Value> {
    let lists = branches.iter().map(|it| it.get("required").and_then(Value::as_array));
    let mut met = Vec::new();
    let mut n_lists: BTreeMap<&str, usize> = BTreeMap::new();
    for list in lists {
        let mut of_list = BTreeSet::new();
        for name in list.into_iter().flatten().filter_map(Value::as_str) {
            if !of_list.insert(name) {
                continue;
            }
            let n = n_lists.entry(name).or_default();
            *n += 1;
            if *n == 1 {
                met.push(name);
            }
        }
    }
    let is_required = |name: &&str| any || n_lists.get(name) == Some(&branches.len());
    met.into_iter().filter(is_required).map(Value::from).collect()
}

fn add_required(root: &mut Map<String, Value>, more: Vec<Value>) {
    if more.is_empty() {
        return;
    }
    if let Value::Array(known) = root.entry("required").or_insert_with(|| json!([])) {
        let has: BTreeSet<String> =
            known.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        known.extend(more.into_iter().filter(|it| it.as_str().is_none_or(|it| !has.contains(it))));
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

    // REQ: TOL-1
    #[test]
    fn many_branches_are_merged_in_linear_work_and_too_large_a_schema_is_not_used() {
        let branch = |n: usize| {
            let name = format!("only{n}");
            json!({"properties": {"a": {"const": n}, name.as_str(): {}}, "required": [name]})
        };
        let of = |key: &str, n: usize| {
            let branches: Vec<Value> = (0..n).map(branch).collect();
            normalized(json!({ key: branches }).as_object().unwrap())
        };
        let property = |key: &str, n: usize| of(key, n).unwrap()["properties"]["a"].clone();
        let list = |it: Value, key: &str| it[key].as_array().map(Vec::len);
        assert_eq!(list(property("anyOf", MAX_BRANCHES), "anyOf"), Some(MAX_BRANCHES));
        assert_eq!(property("anyOf", MAX_BRANCHES + 1), json!({}));
        assert_eq!(list(property("allOf", 2_000), "allOf"), Some(MAX_BRANCHES));
        assert_eq!(of("allOf", 2_000).unwrap()["required"].as_array().map(Vec::len), Some(2_000));
        assert_eq!(of("anyOf", 20_000), None);
        check(json!({"description": "x".repeat(MAX_BYTES)}), None);
    }

    #[test]
    fn schema_of_something_else_cannot_be_used() {
        check(json!({"type": "string"}), None);
        check(json!({"type": ["string", "null"]}), None);
    }
}
