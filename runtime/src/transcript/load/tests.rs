//! Ids that a server gives more than once.
//!
//! Built under `#[cfg(test)]` only.

use serde_json::{Value, json};

use super::*;

/// A line of a file that another program wrote: no hashes, links alone.
fn line(kind: &str, id: &str, parent: Option<&str>, more: Value) -> String {
    let mut line = json!({
        "type": kind,
        "uuid": id,
        "parentUuid": parent,
        "sessionId": "5f1c0000-0000-4000-8000-000000000001",
        "timestamp": "2025-01-01T00:05:00Z",
        "isSidechain": false,
    });
    let Value::Object(more) = more else { panic!("fields") };
    line.as_object_mut().unwrap().extend(more);
    format!("{line}\n")
}

fn user(id: &str, parent: Option<&str>, text: &str) -> String {
    line("user", id, parent, json!({"message": {"role": "user", "content": text}}))
}

fn answer(id: &str, parent: &str, api_id: &str, content: &Value) -> String {
    let message = json!({"id": api_id, "role": "assistant", "model": "m", "content": content});
    line("assistant", id, Some(parent), json!({ "message": message }))
}

fn call(id: &str) -> Value {
    json!([{"type": "tool_use", "id": id, "name": "Read", "input": {"file_path": "/f"}}])
}

fn result(id: &str, parent: &str, of: &str) -> String {
    let content = json!([{"type": "tool_result", "tool_use_id": of, "content": "all of it"}]);
    line("user", id, Some(parent), json!({"message": {"role": "user", "content": content}}))
}

/// One call and its result, then a compaction.
fn compacted() -> String {
    [
        user("u1", None, "read it"),
        answer("a1", "u1", "msg_0", &call("call_0")),
        result("r1", "a1", "call_0"),
        answer("a2", "r1", "msg_1", &json!([{"type": "text", "text": "read"}])),
        line(
            "system",
            "B",
            None,
            json!({
                "subtype": "compact_boundary",
                "logicalParentUuid": "a2",
                "compactMetadata": {"trigger": "auto", "preTokens": 9},
            }),
        ),
        line(
            "user",
            "S",
            Some("B"),
            json!({
                "isCompactSummary": true,
                "message": {"role": "user", "content": "a summary"},
            }),
        ),
    ]
    .concat()
}

// REQ: SES-4
#[test]
fn answer_that_bears_the_id_of_one_before_a_compaction_brings_nothing_back() {
    let text = json!([{"type": "text", "text": "fine"}]);
    let file = [compacted(), user("u2", Some("S"), "and now"), answer("a3", "u2", "msg_0", &text)]
        .concat();
    let loaded = load(file.as_bytes(), LoadAs::Session);
    assert_eq!(loaded.report, []);
    let calls = loaded.recorded.iter().flat_map(|it| it.tool_uses()).count();
    assert_eq!((calls, loaded.recorded.len()), (0, 3));
}

// REQ: SES-4
#[test]
fn call_that_bears_the_id_of_one_before_a_compaction_is_not_answered_by_its_result() {
    let file =
        [compacted(), user("u2", Some("S"), "again"), answer("a3", "u2", "msg_9", &call("call_0"))]
            .concat();
    let loaded = load(file.as_bytes(), LoadAs::Session);
    let open: Vec<_> = loaded.open.iter().map(|it| it.call.as_str()).collect();
    assert_eq!(open, ["call_0"]);
    assert!(!loaded.report.iter().any(|it| it.kind == ReportKind::AdoptedResult));
}

// REQ: SES-4
#[test]
fn answer_of_a_later_prompt_with_an_id_used_before_is_an_answer_of_its_own() {
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let file = [
        user("u1", None, "one"),
        answer("a1", "u1", "msg_0", &text("first")),
        // Somebody went back to before the second prompt.
        user("u2", Some("a1"), "two"),
        answer("a2", "u2", "msg_0", &text("second")),
        user("u3", Some("a1"), "three"),
        answer("a3", "u3", "msg_0", &text("third")),
    ]
    .concat();
    let loaded = load(file.as_bytes(), LoadAs::Session);
    let texts: Vec<_> = loaded.recorded.iter().map(|it| it.text()).collect();
    assert_eq!(texts, ["one", "first", "three", "third"]);
}

// REQ: SES-7
#[test]
fn lines_that_an_editor_marked_or_ended_otherwise_are_all_read() {
    let bytes = crate::turn::tests::random::random(3).bytes();
    let whole = load(&bytes, LoadAs::Session);
    let n_lines = bytes.iter().filter(|it| **it == b'\n').count() as u64;
    let marked = [b"\xef\xbb\xbf".as_slice(), &bytes].concat();
    let returns: Vec<u8> = bytes.iter().map(|it| if *it == b'\n' { b'\r' } else { *it }).collect();
    for (bytes, kind, count) in [
        (marked, ReportKind::ByteOrderMark, None),
        (returns.clone(), ReportKind::CrLineEnds, Some(n_lines)),
        // The next writer begins a line of its own.
        ([&returns, b"\n".as_slice()].concat(), ReportKind::CrLineEnds, Some(n_lines)),
    ] {
        let loaded = load(&bytes, LoadAs::Session);
        assert_eq!(loaded.recorded, whole.recorded, "{kind:?}");
        assert_eq!(loaded.tail.head, whole.tail.head, "{kind:?}");
        let found = loaded.report.iter().find(|it| it.kind == kind).unwrap();
        assert_eq!((found.line, found.count), (Some(1), count));
    }
}
