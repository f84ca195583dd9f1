//! The cases of `tests/cases/shapers.jsonl`.
//!
//! Built under `#[cfg(test)]` only.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    block::Block,
    message::{Message, Messages},
    step4_context_shapers::{
        ShapedContext, Stage,
        chain::{Shaped, StageLog},
        conformance::{invariants, read_case, run_case},
    },
    tokens::Tokens,
};

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/cases/shapers.jsonl");

// REQ: SHP-1, SHP-2, SHP-3, SHP-4, SHP-5, SHP-6, SHP-7, SHP-8
#[test]
fn every_case_gets_what_it_expects() {
    let cases = std::fs::read_to_string(CASES).unwrap();
    let mut n_cases = 0;
    let mut problems = Vec::new();
    for line in cases.lines().filter(|it| !it.is_empty()) {
        let case: Value = serde_json::from_str(line).unwrap();
        let got = run_case(&case).unwrap();
        let id = case["id"].as_str().unwrap();
        problems.extend(compare(&case, &got).into_iter().map(|it| format!("{id}: {it}")));
        n_cases += 1;
    }
    assert!(25 <= n_cases, "only {n_cases} cases in {CASES}");
    assert!(problems.is_empty(), "{problems:#?}");
}

fn compare(case: &Value, got: &Value) -> Vec<String> {
    let expected = &case["expected"];
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut problems = Vec::new();
    let fired = list(&got["fired"]);
    let must = list(&expected["must_fire"]);
    problems.extend(must.iter().filter(|it| !fired.contains(it)).map(|it| format!("{it} did not")));
    let not = list(&expected["must_not_fire"]);
    problems.extend(fired.iter().filter(|it| not.contains(it)).map(|it| format!("{it} fired")));
    let outcomes: &[&str] = match expected["outcome"].as_str().unwrap() {
        "may_shrink" => &["fits", "unchanged"],
        "best_effort" => &["fits", "over_trigger", "overflow", "unchanged"],
        "fits" => &["fits"],
        "unchanged" => &["unchanged"],
        "over_trigger" => &["over_trigger"],
        "overflow" => &["overflow"],
        other => panic!("unknown outcome {other}"),
    };
    if !outcomes.contains(&got["outcome"].as_str().unwrap()) {
        problems.push(format!("outcome {}", got["outcome"]));
    }
    if let Some(max) = expected["result_max_tokens"].as_u64()
        && max + max / 50 < got["tokens_after"].as_u64().unwrap()
    {
        problems.push(format!("{} tokens", got["tokens_after"]));
    }
    if expected["model_calls_max"].as_u64() < got["model_calls"].as_u64() {
        problems.push(format!("{} model calls", got["model_calls"]));
    }
    let result = list(&got["result"]);
    let original = list(&case["input"]["messages"]);
    for id in list(&expected["untouched_ids"]) {
        let text = |messages: &[Value]| {
            messages.iter().find(|it| it["id"] == id).map(|it| expanded(it).to_string())
        };
        if text(&original) != text(&result) {
            problems.push(format!("{id} was touched"));
        }
    }
    if !list(&got["violated"]).is_empty() {
        problems.push(format!("violated {}", got["violated"]));
    }
    problems
}

fn expanded(value: &Value) -> Value {
    match value {
        Value::Object(fields) if fields.contains_key("$repeat") => {
            let n = usize::try_from(fields["$repeat"][1].as_u64().unwrap()).unwrap();
            fields["$repeat"][0].as_str().unwrap().repeat(n).into()
        }
        Value::Object(fields) => {
            fields.iter().map(|(key, it)| (key.clone(), expanded(it))).collect()
        }
        Value::Array(items) => items.iter().map(expanded).collect(),
        other => other.clone(),
    }
}

/// A shaping that left a history of a prompt, a call, its result and an answer like this.
#[track_caller]
fn check_notices(invariant: &str, break_it: impl FnOnce(&mut Messages)) {
    let case = r#"{"config": {"per_result_cap_chars": 100, "keep_newest": 1,
        "idle_minutes_threshold": 60}, "budget": {"max_tokens": 9, "trigger_tokens": 9},
        "idle_minutes": 0, "tokens_before": 5, "input": {"messages": [
        {"id": "m1", "role": "user", "content": "question"},
        {"id": "m2", "role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}]},
        {"id": "m3", "role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t", "content": "ok"}]},
        {"id": "m4", "role": "assistant", "content": "answer"}]}}"#;
    let case = read_case(&serde_json::from_str(case).unwrap()).unwrap();
    let mut messages = case.messages.clone();
    break_it(&mut messages);
    let log = Stage::ALL.map(|stage| StageLog {
        stage,
        fired: false,
        tokens_before: Tokens(5),
        tokens_after: Tokens(5),
        why: "nothing".into(),
    });
    let shaped = Shaped {
        context: ShapedContext { messages: messages.into(), tokens: Tokens(5) },
        log: log.into(),
        stored: Vec::new(),
        n_model_calls: 0,
    };
    let violated = invariants::violated(&case, &shaped);
    assert!(violated.contains(&invariant), "{violated:?}");
}

fn replaced(message: &mut Arc<Message>, at: usize, block: Block) {
    let mut new = Message::clone(message);
    new.blocks[at] = block;
    *message = Arc::new(new);
}

// REQ: SHP-8
#[test]
fn invariants_notice_what_is_broken() {
    check_notices("pairs_kept", |it| drop(it.remove(2)));
    check_notices("newest_kept", |it| drop(it.pop()));
    check_notices("order_kept", |it| it.swap(1, 3));
    check_notices("roles_valid", |it| drop(it.remove(0)));
    check_notices("first_user_prompt_kept", |it| drop(it.remove(0)));
    check_notices("projection_only", |it| drop(it.remove(1)));
    check_notices("deterministic", |it| drop(it.remove(1)));
    check_notices("thinking_untouched", |it| {
        replaced(&mut it[1], 0, Block::thinking("", Some("s")));
    });
    check_notices("never_grows", |it| replaced(&mut it[3], 0, Block::text(&"a".repeat(99))));
    check_notices("reference_left", |it| {
        replaced(&mut it[2], 0, Block::tool_result(&"t".into(), "", false));
    });
    check_notices("result_not_longer", |it| {
        replaced(&mut it[2], 0, Block::tool_result(&"t".into(), "longer", false));
    });
}
