//! What is answered, and by which rule.
//!
//! Built under `#[cfg(test)]` only.

use super::*;

/// A playbook whose rules are named by what they wait for; the name of the rule is its answer.
const WHEN: &str = r#"
[[rule]]
name = "model"
when.model = "big"
reply = [{ text = "x" }]
[[rule]]
name = "system"
when.system = ["You are", "a survey"]
reply = [{ text = "x" }]
[[rule]]
name = "failed"
when.failed = true
reply = [{ text = "x" }]
[[rule]]
name = "result"
when.result = { regex = '(?m)^\d+ files$' }
reply = [{ text = "x" }]
[[rule]]
name = "turns"
when.turns = { min = 1 }
reply = [{ text = "x" }]
[[rule]]
name = "tools"
when.tools = ["Grep", "Read"]
reply = [{ text = "x" }]
[[rule]]
name = "any"
when.prompt = { any = ["cat", "dog"], not = "bird" }
reply = [{ text = "x" }]
[[rule]]
name = "if"
when.if = "prompt|length > 100"
reply = [{ text = "x" }]
[[rule]]
name = "whole"
when.stream = false
reply = [{ text = "x" }]
[[rule]]
name = "other"
reply = [{ text = "x" }]
"#;

#[track_caller]
fn check(request: Value, rule: &str) {
    let script = send(&playbook(WHEN), &request);
    assert_eq!(script.rule.as_deref(), Some(rule), "{script:?}");
}

fn with(mut request: Value, key: &str, value: Value) -> Value {
    request[key] = value;
    request
}

// REQ: MDL-11
#[test]
fn the_first_rule_that_applies_answers() {
    let tool = |name: &str| json!({"name": name, "input_schema": {"type": "object"}});
    check(with(asked("cat"), "model", json!("big-1")), "model");
    check(with(asked("cat"), "system", json!("You are on a survey")), "system");
    check(with(asked("hi"), "system", json!("You are")), "other");
    check(after_calls("cat", &[("Grep", json!({}), "error: no")]), "failed");
    check(after_calls("cat", &[("Grep", json!({}), "found\n12 files")]), "result");
    check(after_calls("cat", &[("Grep", json!({}), "12 files found")]), "turns");
    check(with(asked("cat"), "tools", json!([tool("Read"), tool("Grep")])), "tools");
    check(with(asked("hi"), "tools", json!([tool("Read")])), "other");
    check(asked("a dog"), "any");
    check(asked("a dog and a bird"), "other");
    check(asked("<system-reminder>cat</system-reminder>hi"), "other");
    check(asked(&"long ".repeat(30)), "if");
    check(with(asked("hi"), "stream", json!(false)), "whole");
}

// REQ: MDL-11
#[test]
fn an_answer_is_computed_from_the_results() {
    let playbook = playbook(
        r##"
[[rule]]
name = "sum"
let.counts = "results|map(attribute='text')|map('number')|list"
let.total = "counts|sum"
stop = "end_turn"
usage = { input_tokens = 7, output_tokens = "total" }
reply = [
  { thinking = "{{ counts|json }}" },
  { text = "{{ total }} in {{ results[1].input.path }} by {{ results[0].name }}" },
  { text = "{{ '' }}" },
  { tool = "Read", each = "counts", if = "item > 2", input = { file_path = "/f{{ item }}", limit = 3, deep = [{ n = "{{ index }}" }] } },
  { tool = "Note", input_json = '{"total": {{ total }}, "prompt": {{ prompt|json }} }' },
]
"##,
    );
    let request = after_calls(
        "Add \"up\"",
        &[("Grep", json!({"path": "a"}), "2 files"), ("Grep", json!({"path": "b"}), "1,005 files")],
    );
    let message = message(&send(&playbook, &request));
    let blocks = message["content"].as_array().unwrap();
    assert_eq!(blocks.len(), 4);
    assert_eq!(blocks[0]["thinking"], "[2,1005]");
    assert!(blocks[0]["signature"].as_str().unwrap().starts_with("sim"));
    assert_eq!(blocks[1]["text"], "1007 in b by Grep");
    assert_eq!(
        blocks[2]["input"],
        json!({"file_path": "/f1005", "limit": 3, "deep": [{"n": "1"}]})
    );
    assert_eq!(blocks[3]["input"], json!({"total": 1007, "prompt": "Add \"up\""}));
    assert_ne!(blocks[2]["id"], blocks[3]["id"]);
    assert_eq!(message["stop_reason"], "end_turn");
    assert_eq!(message["usage"]["input_tokens"], 7);
    assert_eq!(message["usage"]["output_tokens"], 1007);
}

// REQ: MDL-11
#[test]
fn whole_and_streamed_answers_hold_the_same() {
    let playbook = playbook(
        r#"
[[rule]]
name = "all"
delta = 3
stop_sequence = "END"
reply = [{ thinking = "hm" }, { text = "Grüße, \"Welt\" 🦀" }, { tool = "Read", input = { file_path = "/ä" } }]
"#,
    );
    let streamed = send(&playbook, &asked("x"));
    let whole = send(&playbook, &with(asked("x"), "stream", json!(false)));
    let (streamed, whole) = (message(&streamed), json_body(&whole));
    let content = |message: &Value| {
        let mut blocks = message["content"].clone();
        for block in blocks.as_array_mut().unwrap() {
            for made in ["id", "signature"] {
                block.as_object_mut().unwrap().remove(made);
            }
        }
        blocks
    };
    assert_eq!(content(&streamed), content(&whole));
    assert_eq!(whole["content"][1]["text"], "Grüße, \"Welt\" 🦀");
    for key in ["model", "role", "type", "stop_reason", "stop_sequence"] {
        assert_eq!(streamed[key], whole[key], "{key}");
    }
    assert_eq!(whole["stop_sequence"], "END");
}

// REQ: MDL-11
#[test]
fn the_same_request_gives_the_same_bytes_and_another_one_other_ids() {
    let playbook = playbook(
        "[[rule]]\nname = \"r\"\nreply = [{ tool = \"A\" }, { tool = \"A\" }]\npace.cut = [5]",
    );
    let ids = |request: &Value| {
        let message = message(&send(&playbook, request));
        assert_eq!(message["stop_reason"], "tool_use");
        [&message["id"], &message["content"][0]["id"], &message["content"][1]["id"]]
            .map(|id| id.as_str().unwrap().to_owned())
    };
    assert_eq!(send(&playbook, &asked("x")), send(&playbook, &asked("x")));
    let (first, second) = (ids(&asked("x")), ids(&asked("y")));
    let all: std::collections::BTreeSet<_> = first.iter().chain(&second).collect();
    assert_eq!(all.len(), 6);
}

// REQ: MDL-11
#[test]
fn rules_share_values_and_decide_by_them() {
    let playbook = playbook(
        r#"
[values.shared]
words = "prompt|find_all('\\w+')"
seen.json = "[{% for word in words %}\"<{{ word }}>\"{{ ',' if not loop.last }}{% endfor %}]"

[[rule]]
name = "many"
with = "shared"
let.last = "seen|last"
when.if = "words|length > 2"
reply = [{ text = "many, {{ last }}" }]

[[rule]]
name = "few"
with = "shared"
reply = [{ text = "few, {{ seen|first }}" }]
"#,
    );
    let text =
        |prompt: &str| message(&send(&playbook, &asked(prompt)))["content"][0]["text"].clone();
    assert_eq!(text("a b c"), "many, <c>");
    assert_eq!(text("a b"), "few, <a>");
}

// REQ: MDL-11
#[test]
fn turns_and_answers_are_counted() {
    let playbook = playbook(
        "[[rule]]\nname = \"r\"\nreply = [{ text = \"{{ turns }} {{ answers }} {{ prompt }} {{ first_prompt }} {{ results|length }} {{ new_results|length }}\" }]",
    );
    let mut request = after_calls("one", &[("A", json!({}), "x")]);
    let text = |request: &Value| message(&send(&playbook, request))["content"][0]["text"].clone();
    assert_eq!(text(&request), "1 1 one one 1 1");
    let more = [
        json!({"role": "assistant", "content": "said"}),
        json!({"role": "user", "content": "two"}),
    ];
    request["messages"].as_array_mut().unwrap().extend(more);
    assert_eq!(text(&request), "2 0 two one 1 0");
}

// REQ: MDL-11
#[test]
fn a_template_that_fails_is_an_error_of_the_rule_and_is_not_asked_again() {
    for (reply, why) in [
        ("{ text = \"{{ missing }}\" }", "undefined"),
        ("{ tool = \"A\", input_json = \"[{{ turns }}]\" }", "no JSON object"),
        ("{ tool = \"A\", input_json = \"{\" }", "no JSON"),
        ("{ text = \"x\", each = \"range(1001)\" }", "more than 1000 blocks"),
        ("{ text = \"x\", each = \"7\" }", "no list"),
    ] {
        let playbook = playbook(&format!("[[rule]]\nname = \"bad\"\nreply = [{reply}]"));
        let script = send(&playbook, &asked("x"));
        let error = json_body(&script)["error"]["message"].as_str().unwrap().to_owned();
        assert_eq!(script.status, 400, "{error}");
        assert!(error.starts_with("playbook test.toml, rule `bad`: reply 1: "), "{error}");
        assert!(error.contains(why), "{error}");
    }
}
