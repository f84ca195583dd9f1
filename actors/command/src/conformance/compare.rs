//! Compares what came out of a case with what it expects, by the rules of the cases README.

use serde_json::Value;

use super::Outcome;

/// Compares with `expected`, or with one of `also_ok`.
pub(super) fn accepted(case: &Value, got: Value) -> Outcome {
    let also_ok = case["also_ok"].as_array().is_some_and(|it| it.contains(&got));
    let compared = if also_ok || case["expected"] == got {
        Ok(())
    } else {
        Err(format!("{got}, not {}", case["expected"]))
    };
    (got, compared)
}

/// Compares a case of context shaping with what was computed.
pub(super) fn shaping(case: &Value, got: &Value) -> Result<(), String> {
    let expected = &case["expected"];
    let fired = list(&got["fired"]);
    for stage in list(&expected["must_fire"]) {
        ensure(fired.contains(stage), || format!("{stage} did not fire"))?;
    }
    for stage in list(&expected["must_not_fire"]) {
        ensure(!fired.contains(stage), || format!("{stage} fired"))?;
    }
    let outcomes: &[&str] = match expected["outcome"].as_str().unwrap_or_default() {
        "may_shrink" => &["fits", "unchanged"],
        "best_effort" => &["fits", "over_trigger", "overflow", "unchanged"],
        "fits" => &["fits"],
        "unchanged" => &["unchanged"],
        "over_trigger" => &["over_trigger"],
        "overflow" => &["overflow"],
        other => return Err(format!("the case expects an unknown outcome `{other}`")),
    };
    let outcome = got["outcome"].as_str().unwrap_or_default();
    ensure(outcomes.contains(&outcome), || format!("outcome {outcome}"))?;
    if let (Some(max), Some(tokens)) =
        (expected["result_max_tokens"].as_u64(), got["tokens_after"].as_u64())
    {
        ensure(tokens <= max + max / 50, || format!("{tokens} tokens, not {max}"))?;
    }
    let calls = got["model_calls"].as_u64();
    ensure(calls <= expected["model_calls_max"].as_u64(), || "too many model calls".into())?;
    for id in list(&expected["untouched_ids"]) {
        let find =
            |messages: &Value| list(messages).iter().find(|it| it["id"] == *id).map(expanded);
        let same = find(&case["input"]["messages"]) == find(&got["result"]);
        ensure(same, || format!("message {id} was touched"))?;
    }
    ensure(list(&got["violated"]).is_empty(), || format!("violated {}", got["violated"]))
}

/// Compares as section E demands: messages exactly, the report as a multiset.
pub(super) fn loading(expected: &Value, got: &Value) -> Result<(), String> {
    let mut left: Vec<&Value> = list(&got["report"]).iter().collect();
    for wanted in list(&expected["report"]) {
        let fits = |it: &&Value| {
            let same =
                |key: &&str| wanted.get(*key).is_none_or(|value| it.get(*key) == Some(value));
            ["kind", "line", "count"].iter().all(same)
        };
        let at = left.iter().position(fits);
        left.remove(at.ok_or_else(|| format!("{wanted} is not reported"))?);
    }
    let optional = list(&expected["report_optional"]);
    left.retain(|it| !optional.contains(&it["kind"]));
    ensure(left.is_empty(), || format!("reported without need: {left:?}"))?;
    for key in ["restored_permissions", "resumable"] {
        let same = expected.get(key).is_none_or(|it| *it == got[key]);
        ensure(same, || format!("{key} is {}", got[key]))?;
    }
    let same = like(&expected["messages"], &got["messages"]);
    ensure(same, || format!("messages {}, not {}", got["messages"], expected["messages"]))
}

/// Equal, but for results that may hold any text (`"content": "*"`).
fn like(expected: &Value, got: &Value) -> bool {
    match (expected, got) {
        (Value::Array(expected), Value::Array(got)) => {
            expected.len() == got.len() && expected.iter().zip(got).all(|(a, b)| like(a, b))
        }
        (Value::Object(expected), Value::Object(got)) => {
            expected.len() == got.len()
                && expected.iter().all(|(key, value)| match got.get(key) {
                    Some(Value::String(_)) if key == "content" && value == "*" => true,
                    Some(it) => like(value, it),
                    None => false,
                })
        }
        _ => expected == got,
    }
}

/// Puts the text in the place of each `{"$repeat": [text, n]}`.
fn expanded(value: &Value) -> Value {
    let repeated = value
        .get("$repeat")
        .and_then(|it| Some(it[0].as_str()?.repeat(usize::try_from(it[1].as_u64()?).ok()?)));
    match (repeated, value) {
        (Some(text), _) => text.into(),
        (None, Value::Object(fields)) => {
            fields.iter().map(|(key, it)| (key.clone(), expanded(it))).collect()
        }
        (None, Value::Array(items)) => items.iter().map(expanded).collect(),
        (None, other) => other.clone(),
    }
}

pub(super) fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
