//! What a schema that was made from a type holds and a model does not need.

use serde_json::Value;

/// Removes what a model does not need. An optional field is left out, never `null`.
pub(super) fn tidy(schema: &mut Value) {
    match schema {
        Value::Array(parts) => parts.iter_mut().for_each(tidy),
        Value::Object(object) => {
            for key in ["title", "format"] {
                if object.get(key).is_some_and(Value::is_string) {
                    object.remove(key);
                }
            }
            let required = object.get("required").cloned().unwrap_or_default();
            if let Some(Value::Object(properties)) = object.get_mut("properties") {
                for (name, property) in properties {
                    if !required.as_array().is_some_and(|all| all.iter().any(|one| one == name)) {
                        forbid_null(property);
                    }
                }
            }
            object.values_mut().for_each(tidy);
        }
        _ => {}
    }
}

fn forbid_null(property: &mut Value) {
    let Value::Object(property) = property else { return };
    if property.get("default").is_some_and(Value::is_null) {
        property.remove("default");
    }
    if let Some(Value::Array(types)) = property.get_mut("type") {
        types.retain(|one| one != "null");
        if let [only] = types.as_mut_slice() {
            let only = only.take();
            property.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(values)) = property.get_mut("enum") {
        values.retain(|one| !one.is_null());
    }
    let Some(Value::Array(choices)) = property.get_mut("anyOf") else { return };
    choices.retain(|one| one.get("type").is_none_or(|kind| kind != "null"));
    if let [Value::Object(only)] = choices.as_mut_slice() {
        let only = std::mem::take(only);
        property.remove("anyOf");
        for (key, value) in only {
            property.entry(key).or_insert(value);
        }
    }
}
