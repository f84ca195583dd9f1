//! Adds rules to the text of a settings file or takes them away, and leaves everything else in it as it is written.
//!
//! The text is not written anew from what was read of it: that would lose the order of its keys, its
//! blanks, and what this version does not know.

mod places;

use std::ops::Range;

use serde_json::{Value, json};

use super::{RuleUpdate, UpdateAct};
use crate::{json::quote, permission::RuleKind};
use places::{member, skip, value_end, whole};

/// Why a text takes no rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotSettings {
    /// It is not JSON.
    #[error("it is not JSON: {0}")]
    Json(String),
    /// It is JSON of another shape.
    #[error("`{0}` is not of the type that settings have")]
    Shape(&'static str),
}

/// Applies these changes to `permissions` in the text of a settings file. An empty text is that of a new file.
///
/// # Errors
///
/// [`NotSettings`] when the text holds no settings; nothing can be changed in it then.
pub fn with_rules(text: &str, updates: &[RuleUpdate]) -> Result<String, NotSettings> {
    let mut text = if text.trim().is_empty() { "{}\n".to_owned() } else { text.to_owned() };
    for update in updates {
        let key = list_of(update);
        let parsed: Value =
            serde_json::from_str(&text).map_err(|it| NotSettings::Json(it.to_string()))?;
        let root = parsed.as_object().ok_or(NotSettings::Shape("the file"))?;
        let permissions = root.get("permissions");
        if permissions.is_some_and(|it| !it.is_object()) {
            return Err(NotSettings::Shape("permissions"));
        }
        let list = permissions.and_then(|it| it.get(key));
        if list.is_some_and(|it| !it.is_array()) {
            return Err(NotSettings::Shape(key));
        }
        let items = list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let goes = |it: &Value| match update.act {
            UpdateAct::Clear => true,
            UpdateAct::Remove | UpdateAct::RemoveDirectory => *it == *update.rule,
            UpdateAct::Add | UpdateAct::AddDirectory => false,
        };
        let adds = matches!(update.act, UpdateAct::Add | UpdateAct::AddDirectory);
        if adds && items.iter().any(|it| *it == *update.rule) || !adds && !items.iter().any(goes) {
            continue;
        }
        let mut meant = parsed.clone();
        if adds {
            text = with_item(&text, &parsed, key, &update.rule)?;
            match meant["permissions"][key].as_array_mut() {
                Some(list) => list.push(update.rule.as_str().into()),
                None => meant["permissions"][key] = json!([update.rule]),
            }
        } else {
            let place = member(&text, whole(&text), "permissions")
                .and_then(|it| member(&text, it, key))
                .ok_or(NotSettings::Shape(key))?;
            text = without_items(&text, place, |it| {
                serde_json::from_str::<Value>(it).is_ok_and(|it| goes(&it))
            });
            if let Some(list) = meant["permissions"][key].as_array_mut() {
                list.retain(|it| !goes(it));
            }
        }
        // What a reader makes of it is what was meant, or nothing is written.
        if serde_json::from_str::<Value>(&text).ok() != Some(meant) {
            return Err(NotSettings::Shape(key));
        }
    }
    Ok(text)
}

/// The text with one more item in a list of `permissions`; both are made where they are missing.
fn with_item(
    text: &str,
    parsed: &Value,
    key: &'static str,
    item: &str,
) -> Result<String, NotSettings> {
    let mut text = text.to_owned();
    let permissions = parsed.get("permissions");
    if permissions.is_none() {
        text = appended(&text, whole(&text), "\"permissions\": {}");
    }
    let place = member(&text, whole(&text), "permissions");
    let place = place.ok_or(NotSettings::Shape("permissions"))?;
    if permissions.and_then(|it| it.get(key)).is_none() {
        text = appended(&text, place, &format!("\"{key}\": []"));
    }
    let list = member(&text, whole(&text), "permissions")
        .and_then(|it| member(&text, it, key))
        .ok_or(NotSettings::Shape(key))?;
    Ok(appended(&text, list, &quote(item)))
}

/// The text without some items of a list, each with the comma and the blanks in front of it.
fn without_items(text: &str, list: Range<usize>, goes: impl Fn(&str) -> bool) -> String {
    let bytes = text.as_bytes();
    let mut kept = text[..list.start + 1].to_owned();
    let mut at = list.start + 1;
    let mut n_kept = 0;
    loop {
        let start = skip(bytes, at, |it| it.is_ascii_whitespace() || it == b',');
        if list.end <= start + 1 {
            // What is in front of the bracket.
            kept.push_str(&text[at..]);
            return kept;
        }
        let end = value_end(bytes, start);
        if !goes(&text[start..end]) {
            let between = &text[at..start];
            let after_comma = between.split_once(',').map(|it| it.1).filter(|_| n_kept == 0);
            let between = after_comma.unwrap_or(between);
            kept.push_str(between);
            kept.push_str(&text[start..end]);
            n_kept += 1;
        }
        at = end;
    }
}

fn list_of(update: &RuleUpdate) -> &'static str {
    match (update.act, update.kind) {
        (UpdateAct::AddDirectory | UpdateAct::RemoveDirectory, _) => "additionalDirectories",
        (_, RuleKind::Deny) => "deny",
        (_, RuleKind::Ask) => "ask",
        (_, RuleKind::Allow) => "allow",
    }
}

/// The text with an item after the last one of an object or a list, laid out as those before it.
fn appended(text: &str, container: Range<usize>, item: &str) -> String {
    let (before, inner) = (&text[..container.start + 1], container.start + 1..container.end - 1);
    let after = &text[container.end - 1..];
    let inner = &text[inner];
    let items = inner.trim_end();
    if items.is_empty() {
        let line = text[..container.start].rsplit('\n').next().unwrap_or_default();
        let indent: String = line.chars().take_while(|it| matches!(it, ' ' | '\t')).collect();
        return format!("{before}\n{indent}  {item}\n{indent}{after}");
    }
    let blank = &inner[..inner.len() - inner.trim_start().len()];
    let blank = if blank.contains('\n') { blank } else { " " };
    let rest = &inner[items.len()..];
    format!("{before}{items},{blank}{item}{rest}{after}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn added(text: &str, kind: RuleKind, rule: &str) -> Result<String, NotSettings> {
        with_rules(text, &[RuleUpdate { kind, ..RuleUpdate::allow(rule) }])
    }

    // REQ: PRM-9
    #[test]
    fn rule_is_added_and_every_other_byte_stays() {
        let check = |before: &str, after: &str| {
            assert_eq!(added(before, RuleKind::Allow, "Bash(a \"b\")").as_deref(), Ok(after));
            // A second time there is nothing to add.
            assert_eq!(added(after, RuleKind::Allow, "Bash(a \"b\")").as_deref(), Ok(after));
        };
        check(
            "",
            "{\n  \"permissions\": {\n    \"allow\": [\n      \"Bash(a \\\"b\\\")\"\n    ]\n  }\n}\n",
        );
        check(
            r#"{"z":1, "permissions": {"allow": ["Read"], "x":{}}, "a" : [1 , 2]}"#,
            r#"{"z":1, "permissions": {"allow": ["Read", "Bash(a \"b\")"], "x":{}}, "a" : [1 , 2]}"#,
        );
        check(
            "{\n\t\"unknown\": \"}]\\\"\",\n\t\"permissions\": {\n\t\t\"allow\": [\n\t\t\t\"A\"\n\t\t]\n\t}\n}",
            "{\n\t\"unknown\": \"}]\\\"\",\n\t\"permissions\": {\n\t\t\"allow\": [\n\t\t\t\"A\",\n\t\t\t\"Bash(a \\\"b\\\")\"\n\t\t]\n\t}\n}",
        );
        check(
            r#"{"permissions":{"allow":["old"]},"permissions":{"deny":[]}}"#,
            "{\"permissions\":{\"allow\":[\"old\"]},\"permissions\":{\"deny\":[], \"allow\": [\n  \"Bash(a \\\"b\\\")\"\n]}}",
        );
    }

    // REQ: PRM-9
    #[test]
    fn rule_is_taken_away_and_every_other_byte_stays() {
        let without = |text: &str, act, rule: &str| {
            with_rules(text, &[RuleUpdate::allow(rule).with_act(act)]).unwrap()
        };
        let text = r#"{"z":1, "permissions": {"allow": ["a" , "b", "c"], "deny": ["b"]}}"#;
        for (rule, list) in
            [("a", r#"[ "b", "c"]"#), ("b", r#"["a", "c"]"#), ("c", r#"["a" , "b"]"#)]
        {
            let after = format!(r#"{{"z":1, "permissions": {{"allow": {list}, "deny": ["b"]}}}}"#);
            assert_eq!(without(text, UpdateAct::Remove, rule), after);
        }
        let cleared = r#"{"z":1, "permissions": {"allow": [], "deny": ["b"]}}"#;
        assert_eq!(without(text, UpdateAct::Clear, ""), cleared);
        assert_eq!(without(text, UpdateAct::Remove, "d"), text);
        assert_eq!(without("", UpdateAct::Clear, ""), "{}\n");
        let lines = "{\"permissions\": {\"allow\": [\n  \"a\",\n  \"b\"\n]}}";
        let after = "{\"permissions\": {\"allow\": [\n  \"b\"\n]}}";
        assert_eq!(without(lines, UpdateAct::Remove, "a"), after);
        let more = without(after, UpdateAct::AddDirectory, "/x");
        assert!(more.contains("\"additionalDirectories\""), "{more}");
        let less: Value =
            serde_json::from_str(&without(&more, UpdateAct::RemoveDirectory, "/x")).unwrap();
        let expected = json!({"permissions": {"allow": ["b"], "additionalDirectories": []}});
        assert_eq!(less, expected);
    }

    // REQ: PRM-9
    #[test]
    fn text_that_holds_no_settings_takes_no_rule() {
        let wrong =
            ["[]", "{", "{} {}", r#"{"permissions": []}"#, r#"{"permissions": {"deny": {}}}"#];
        for text in wrong {
            assert!(added(text, RuleKind::Deny, "Bash").is_err(), "{text}");
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[ -~]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec(("[ -~]{0,4}", inner), 0..4)
                    .prop_map(|it| Value::Object(it.into_iter().collect())),
            ]
        })
    }

    proptest! {
        // REQ: PRM-9
        #[test]
        fn whatever_else_a_file_says_it_says_afterwards(
            rest in any_json(), rule in "[ -~]{1,12}", is_pretty in any::<bool>(), has_list in any::<bool>(),
        ) {
            let mut parsed = json!({ "a": rest, "permissions": { "x": rest }, "z": rest });
            if has_list {
                parsed["permissions"]["ask"] = json!(["one"]);
            }
            let text = if is_pretty { serde_json::to_string_pretty(&parsed).unwrap() } else { parsed.to_string() };
            let after = added(&text, RuleKind::Ask, &rule).unwrap();
            let mut rules = if has_list { vec!["one".to_owned()] } else { Vec::new() };
            if !rules.contains(&rule) {
                rules.push(rule);
            }
            parsed["permissions"]["ask"] = json!(rules);
            prop_assert_eq!(serde_json::from_str::<Value>(&after).unwrap(), parsed);
        }
    }
}
