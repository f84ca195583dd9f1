//! Schemas that are made to cost.
//!
//! Built under `#[cfg(test)]` only.

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// `anyOf` of two references each, so that each level doubles the work.
fn doubling(levels: usize) -> Value {
    let level = |n: usize| {
        let next = json!({"$ref": format!("#/$defs/l{}", n + 1)});
        json!({"anyOf": [next, next]})
    };
    let mut defs: serde_json::Map<String, Value> =
        (0..levels).map(|n| (format!("l{n}"), level(n))).collect();
    defs.insert(format!("l{levels}"), json!({"type": "string"}));
    json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/l0"}}, "$defs": defs})
}

// REQ: TOL-1
#[test]
fn branches_in_branches_are_counted_and_refused_once_they_are_too_many() {
    let input = json!({"a": 1});
    for levels in [1, 8, 12] {
        assert_eq!(measure(&doubling(levels)), Ok(()));
        let n = steps(&doubling(levels), &input).unwrap();
        assert!(2_u64.pow(levels as u32) <= n && n <= 8 * 2_u64.pow(levels as u32), "{n}");
    }
    assert_eq!(measure(&doubling(60)), Ok(()));
    assert_eq!(steps(&doubling(60), &input), Err(CheckTooCostly));
    assert_eq!(steps(&doubling(60), &json!({"b": 1})).map(|it| it < 100), Ok(true));
}

// REQ: TOL-1
#[test]
fn references_in_circles_end() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
    ] {
        assert_eq!(measure(&schema), Ok(()));
        assert_eq!(steps(&schema, &json!({})), Err(CheckTooCostly), "{schema}");
    }
}

// REQ: TOL-1
#[test]
fn a_tree_that_names_itself_costs_a_few_steps_for_each_of_its_nodes() {
    let schema = json!({
        "type": "object",
        "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "n": {"type": "integer"}},
        "additionalProperties": false,
    });
    let tree = |depth: u32| {
        (0..depth).fold(json!({"n": 1}), |below, _| json!({"left": below, "right": below, "n": 2}))
    };
    let [few, many] = [8, 9].map(|it| steps(&schema, &tree(it)).unwrap());
    assert!(many <= 2 * few + 20, "{few} {many}");
    let chain = (0..60).fold(json!({}), |below, _| json!({"left": below}));
    assert!(steps(&schema, &chain).unwrap() < 1_000);
    // Where two branches go down to the same child, a chain is a tree.
    let two = json!({"anyOf": [{"properties": {"left": {"$ref": "#"}}}, {"items": {"$ref": "#"}},
        {"properties": {"left": {"$ref": "#"}}}]});
    assert_eq!(steps(&two, &chain), Err(CheckTooCostly));
}

// REQ: TOL-1
#[test]
fn large_lists_of_choices_many_members_and_patterns_are_counted() {
    let choices = json!({"items": {"enum": (0..2_000).collect::<Vec<_>>()}});
    assert!(steps(&choices, &json!([1, 2, 3])).unwrap() < 10_000);
    assert_eq!(steps(&choices, &json!(vec![1; 100])), Err(CheckTooCostly));
    let unique = json!({"uniqueItems": true, "items": {"type": "integer"}});
    let numbers = |n: u32| json!((0..n).collect::<Vec<_>>());
    let [few, many] = [10_000, 20_000].map(|it| steps(&unique, &numbers(it)).unwrap());
    assert!(many <= 2 * few + 10, "{few} {many}");
    assert_eq!(steps(&unique, &numbers(100_000)), Err(CheckTooCostly));
    let unevaluated = json!({"unevaluatedProperties": false, "allOf": [{}, {}, {}, {}, {}]});
    let members = |n: u32| {
        json!((0..n).map(|it| (it.to_string(), it)).collect::<std::collections::BTreeMap<_, _>>())
    };
    assert_eq!(steps(&unevaluated, &members(20_000)), Err(CheckTooCostly));
    let evil = json!({"items": {"pattern": "^(?=(a+)+$)x"}});
    assert!(steps(&evil, &json!(vec!["aaaa"; 10])).is_ok());
    assert_eq!(steps(&evil, &json!(vec!["a"; 1_000])), Err(CheckTooCostly));
    let long = json!({"pattern": format!("^({}){{50}}$", "a?".repeat(400))});
    assert_eq!(steps(&long, &json!("a".repeat(1 << 20))), Err(CheckTooCostly));
}

// REQ: TOL-1
#[test]
fn what_is_written_by_hand_is_far_from_the_bounds() {
    let schema = json!({
        "type": "object",
        "required": ["todos", "content"],
        "properties": {
            "content": {"type": "string", "minLength": 1},
            "todos": {"type": "array", "items": {
                "type": "object", "required": ["text", "state"],
                "properties": {"text": {"type": "string"}, "state": {"enum": ["open", "done"]}},
            }},
        },
    });
    let todo = json!({"text": "x", "state": "open"});
    let input = json!({"content": "x".repeat(4 << 20), "todos": vec![todo; 500]});
    let n = steps(&schema, &input).unwrap();
    assert!(n < MAX_STEPS / 5, "{n}");
}

// REQ: TOL-1
#[test]
fn size_depth_references_and_patterns_of_a_schema_are_bounded() {
    let nested = |depth: usize| (1..depth).fold(json!({}), |inner, _| json!({"not": inner}));
    assert_eq!(measure(&nested(MAX_DEPTH)), Ok(()));
    assert_eq!(measure(&nested(MAX_DEPTH + 1)), Err(TooComplex::Depth));
    let choices = |n: usize| json!({"enum": vec![1; n]});
    assert_eq!(measure(&choices(MAX_VALUES - 2)), Ok(()));
    assert_eq!(measure(&choices(MAX_VALUES - 1)), Err(TooComplex::Values));
    let references = |n: usize| json!({"allOf": vec![json!({"$ref": "#"}); n]});
    assert_eq!(measure(&references(MAX_REFERENCES)), Ok(()));
    assert_eq!(measure(&references(MAX_REFERENCES + 1)), Err(TooComplex::References));
    for to in ["#/nowhere", "http://a/b", "#anchor", "other.json#/a"] {
        assert_eq!(measure(&json!({"$ref": to})), Err(TooComplex::Reference(to.into())));
    }
    let dynamic = measure(&json!({"not": {"$dynamicRef": "#n"}}));
    assert_eq!(dynamic, Err(TooComplex::Reference("#n".into())));
    let pattern = |n: usize| json!({"pattern": "a".repeat(n)});
    assert_eq!(measure(&pattern(MAX_PATTERN_BYTES)), Ok(()));
    assert_eq!(measure(&pattern(MAX_PATTERN_BYTES + 1)), Err(TooComplex::Patterns));
    let patterns = |n: usize| json!({"allOf": vec![pattern(1); n]});
    assert_eq!(measure(&patterns(MAX_PATTERNS)), Ok(()));
    assert_eq!(measure(&patterns(MAX_PATTERNS + 1)), Err(TooComplex::Patterns));
    // A member of that name is not a keyword.
    assert_eq!(
        measure(&json!({"properties": {"pattern": {}, "$ref": {"type": "string"}}})),
        Ok(())
    );
}

fn some_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(json!(1)), Just(json!(true)), "[a-z]{0,5}".prop_map(Value::from)];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map("[a-c]", inner, 0..4).prop_map(|it| json!(it)),
        ]
    })
}

/// A schema without references and patterns.
fn flat_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({})),
        Just(json!({"type": "string", "minLength": 1})),
        Just(json!({"enum": [1, "a", [1, 2]]})),
        Just(json!({"const": {"a": [1, 2, 3]}})),
        Just(json!({"uniqueItems": true})),
        Just(json!({"required": ["a", "b", "c"], "dependentRequired": {"a": ["b", "c"]}})),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        let list = prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            list.clone().prop_map(|it| json!({"allOf": it})),
            list.clone().prop_map(|it| json!({"anyOf": it, "uniqueItems": true})),
            list.prop_map(|it| json!({"prefixItems": it})),
            inner
                .clone()
                .prop_map(|it| json!({"items": it, "contains": it, "additionalItems": it})),
            inner.clone().prop_map(|it| json!({"not": it, "if": it, "then": it, "else": it})),
            inner.clone().prop_map(|it| json!({"propertyNames": it, "additionalProperties": it})),
            inner
                .clone()
                .prop_map(|it| json!({"dependentSchemas": {"a": it}, "properties": {"a": it}})),
            inner.prop_map(|it| json!({"properties": {"a": it, "b": it}, "required": ["a"]})),
        ]
    })
}

proptest! {
    // REQ: TOL-1
    #[test]
    fn check_that_is_cheap_by_the_lengths_alone_takes_fewer_steps(
        schema in flat_schema(), input in some_value(),
    ) {
        let (schema_text, input_text) = (schema.to_string(), input.to_string());
        prop_assert!(is_flat(&schema_text));
        let n_pairs = (schema_text.len() * input_text.len()) as u64;
        prop_assert!(steps(&schema, &input).is_ok_and(|it| it <= 4 * n_pairs));
    }
}

// REQ: TOL-1
#[test]
fn schema_with_references_or_patterns_is_not_flat() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"properties": {"a": {"pattern": "a"}}}),
        json!({"patternProperties": {"a": {}}}),
        json!({"unevaluatedItems": false}),
    ] {
        assert!(!is_flat(&schema.to_string()), "{schema}");
    }
    let [schema, input] = ["x".repeat(5_000), "y".repeat(4)];
    assert!(is_surely_cheap(&schema, &input) && !is_surely_cheap(&schema, &input.repeat(2)));
}
