//! The damaged transcripts of the corpus.
//!
//! Built under `#[cfg(test)]` only.

use std::fs;

use super::*;

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/cases/transcripts");

fn matches(expected: &Value, got: &Value) -> bool {
    match (expected, got) {
        (Value::Array(expected), Value::Array(got)) => {
            expected.len() == got.len() && expected.iter().zip(got).all(|(a, b)| matches(a, b))
        }
        (Value::Object(expected), Value::Object(got)) => {
            let any_text = expected.get("content").is_some_and(|it| it == "*");
            expected.len() == got.len()
                && expected.iter().all(|(key, value)| {
                    got.get(key).is_some_and(|it| {
                        (any_text && key == "content" && it.is_string()) || matches(value, it)
                    })
                })
        }
        _ => expected == got,
    }
}

fn fits(wanted: &Value, got: &Value) -> bool {
    ["kind", "line", "count"]
        .iter()
        .all(|key| wanted.get(key).is_none_or(|value| got.get(key) == Some(value)))
}

fn check(name: &str) -> Result<(), String> {
    let bytes = fs::read(format!("{CASES}/{name}.jsonl")).unwrap();
    let expected = fs::read_to_string(format!("{CASES}/{name}.expected.json")).unwrap();
    let expected: Value = serde_json::from_str(&expected).unwrap();
    let load_as = match expected.get("load_as").and_then(Value::as_str) {
        Some("sidechain") => LoadAs::Sidechain,
        _ => LoadAs::Session,
    };
    let got = serde_json::to_value(outcome(&bytes, load_as)).unwrap();
    let mut left = got["report"].as_array().unwrap().clone();
    for wanted in expected["report"].as_array().unwrap() {
        let Some(at) = left.iter().position(|it| fits(wanted, it)) else {
            return Err(format!("{name}: {wanted} is not reported: {}", got["report"]));
        };
        left.remove(at);
    }
    let optional = expected.get("report_optional").cloned().unwrap_or_default();
    left.retain(|it| !optional.as_array().is_some_and(|all| all.contains(&it["kind"])));
    if !left.is_empty() {
        return Err(format!("{name}: reported without need: {left:?}"));
    }
    let equal = matches(&expected["messages"], &got["messages"]);
    let trusted =
        expected.get("restored_permissions").is_none_or(|it| *it == got["restored_permissions"]);
    if equal && trusted && expected["resumable"] == got["resumable"] {
        return Ok(());
    }
    Err(format!("{name}: expected {}\n got {}", expected["messages"], got["messages"]))
}

// REQ: SES-7
#[test]
fn damaged_transcripts_load_as_the_corpus_says() {
    let mut names: Vec<String> = fs::read_dir(CASES)
        .unwrap()
        .filter_map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            name.strip_suffix(".jsonl").map(Into::into)
        })
        .collect();
    names.sort();
    assert!(34 <= names.len(), "{names:?}");
    let wrong: Vec<String> = names.iter().filter_map(|name| check(name).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

// REQ: SES-7
#[test]
fn every_prefix_of_a_transcript_loads() {
    let bytes = fs::read(format!("{CASES}/s12_parallel_results_as_siblings.jsonl")).unwrap();
    for end in 0..bytes.len() {
        let loaded = load(&bytes[..end], LoadAs::Session);
        assert_eq!(loaded.tail.offset, end as u64);
        assert_eq!(loaded.tail.needs_newline, end != 0 && bytes[end - 1] != b'\n');
    }
}
