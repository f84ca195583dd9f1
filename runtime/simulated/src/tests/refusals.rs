//! What the real API refuses.
//!
//! Built under `#[cfg(test)]` only.

use super::*;

#[track_caller]
fn refused(request: &Value, status: u16, why: &str) {
    let script = send(&playbook(HELLO), request);
    let error = json_body(&script);
    assert_eq!(script.status, status, "{error}");
    assert_eq!((error["type"].as_str(), script.rule), (Some("error"), None));
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains(why), "{message}\n  lacks: {why}");
}

fn tool_use(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "A", "input": {}})
}

fn result(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": "x"})
}

fn user(content: Value) -> Value {
    json!({"role": "user", "content": content})
}

fn assistant(content: Value) -> Value {
    json!({"role": "assistant", "content": content})
}

// REQ: MDL-11
#[test]
fn calls_and_results_must_pair() {
    let ask = user(json!("x"));
    let text = json!({"type": "text", "text": "y"});
    let calls = assistant(json!([tool_use("a"), tool_use("b")]));
    for (messages, why) in [
        (
            json!([ask, calls, user(json!([result("a")]))]),
            "without `tool_result` blocks immediately after: b",
        ),
        (json!([ask, calls, ask]), "after: a, b"),
        (
            json!([ask, calls, ask, user(json!([result("a"), result("b")]))]),
            "must come before other content",
        ),
        (
            json!([ask, calls, user(json!([result("a"), text, result("b")]))]),
            "must come before other content",
        ),
        (
            json!([ask, calls, user(json!([result("a"), result("b"), result("c")]))]),
            "unexpected `tool_use_id`",
        ),
        (
            json!([ask, calls, user(json!([result("a"), result("a"), result("b")]))]),
            "unexpected `tool_use_id`",
        ),
        (json!([user(json!([result("a")]))]), "unexpected `tool_use_id`"),
        (
            json!([
                ask,
                assistant(json!([tool_use("a"), tool_use("a")])),
                user(json!([result("a")]))
            ]),
            "must be unique",
        ),
    ] {
        refused(&request(messages), 400, why);
    }
    for results in [
        json!([ask, calls, user(json!([result("b"), result("a"), text]))]),
        json!([ask, calls, user(json!([result("b")])), user(json!([result("a")])), ask]),
    ] {
        assert_eq!(send(&playbook(HELLO), &request(results)).status, 200);
    }
}

// REQ: MDL-11
#[test]
fn a_malformed_request_is_refused() {
    let with = |key: &str, value: Value| {
        let mut request = asked("x");
        request[key] = value;
        request
    };
    let marked = json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}});
    let tool = json!({"name": "A", "input_schema": {"type": "object"}});
    for (request, why) in [
        (json!([]), "not a JSON object"),
        (with("model", Value::Null), "model: field required"),
        (with("max_tokens", json!("x")), "max_tokens"),
        (with("stream", json!(1)), "stream"),
        (with("messages", json!([])), "at least one message"),
        (with("messages", json!([assistant(json!("x"))])), "must be of the user"),
        (
            with("messages", json!([user(json!("x")), assistant(json!("y"))])),
            "must end with a user",
        ),
        (with("messages", json!([user(json!(""))])), "non-empty content"),
        (with("messages", json!([user(json!([]))])), "non-empty content"),
        (
            with("messages", json!([user(json!([{"type": "text", "text": ""}]))])),
            "text content blocks must be non-empty",
        ),
        (with("messages", json!([{"role": "bot", "content": "x"}])), "`bot` is not allowed"),
        (with("system", json!([{"type": "text", "text": ""}])), "system.0"),
        (
            with("system", Value::Array(vec![marked.clone(); 5])),
            "maximum of 4 blocks with cache_control",
        ),
        (
            with("tools", json!([{"name": "a b", "input_schema": {"type": "object"}}])),
            "tools.0.name",
        ),
        (with("tools", json!([{"name": "a"}])), "input_schema"),
        (with("tools", json!([tool, tool])), "must be unique"),
    ] {
        refused(&request, 400, why);
    }
    assert_eq!(send(&playbook(HELLO), &with("system", Value::Array(vec![marked; 4]))).status, 200);
}

// REQ: MDL-11
#[test]
fn paths_methods_and_keys_are_checked() {
    let open = playbook(HELLO);
    let locked = playbook(&format!("key = \"k1\"\n{HELLO}"));
    let body = asked("x").to_string();
    let status = |playbook: &Playbook, method: &str, path: &str, header: (&str, &str)| {
        let headers = [(header.0.to_owned(), header.1.to_owned())];
        let exchange = Exchange { method, path, headers: &headers, body: body.as_bytes() };
        let script = playbook.exchange(&exchange, &mut |_| 0);
        (script.status, json_body_or_null(&script)["error"]["type"].as_str().map(str::to_owned))
    };
    let kind = |kind: &str| Some(kind.to_owned());
    let none = ("x", "y");
    assert_eq!(status(&open, "POST", "/sim/v1/messages", none), (200, None));
    assert_eq!(status(&open, "POST", "/v1/complete", none), (404, kind("not_found_error")));
    assert_eq!(status(&open, "GET", "/v1/messages", none), (405, kind("invalid_request_error")));
    assert_eq!(status(&locked, "POST", "/v1/messages", none), (401, kind("authentication_error")));
    assert_eq!(status(&locked, "POST", "/v1/messages", ("x-api-key", "k2")).0, 401);
    assert_eq!(status(&locked, "POST", "/v1/messages", ("x-api-key", "k1")).0, 200);
    assert_eq!(status(&locked, "POST", "/v1/messages", ("authorization", "Bearer k1")).0, 200);
}

fn json_body_or_null(script: &Script) -> Value {
    serde_json::from_slice(&body(script)).unwrap_or_default()
}

// REQ: MDL-11
#[test]
fn tokens_are_counted_by_four_characters() {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "ä".repeat(400)}]})
        .to_string();
    let path = "/v1/messages/count_tokens";
    let exchange = Exchange { method: "POST", path, headers: &[], body: body.as_bytes() };
    let script = playbook(HELLO).exchange(&exchange, &mut |_| 0);
    assert_eq!(json_body(&script), json!({"input_tokens": body.chars().count() / 4}));
}

// REQ: MDL-11
#[test]
fn a_request_no_rule_applies_to_is_refused_and_never_panics() {
    let picky = playbook("[[rule]]\nname = \"r\"\nwhen.model = \"zzz\"\nreply = []");
    let script = send(&picky, &asked("x"));
    assert_eq!(script.status, 400);
    assert!(script.headers.iter().any(|(name, _)| name == "x-ennead-simulated"));
    for body in [&b""[..], b"{", b"\xff", b"[[[[", br#"{"messages":[1,2]}"#, br#"{"messages":{}}"#]
    {
        let exchange = Exchange { method: "POST", path: "/v1/messages", headers: &[], body };
        assert_eq!(picky.exchange(&exchange, &mut |_| 0).status, 400);
    }
}

// REQ: MDL-11
#[test]
fn sampling_and_thinking_have_bounds() {
    let with = |fields: Value| {
        let mut request = json!({
            "model": "m", "max_tokens": 2000, "stream": false, "messages": [user(json!("x"))]
        });
        request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        request
    };
    refused(&with(json!({"temperature": 7})), 400, "temperature: must be a number from 0 to 1");
    refused(&with(json!({"top_p": "x"})), 400, "top_p: must be a number");
    let thinking = |n: Value| with(json!({"thinking": {"type": "enabled", "budget_tokens": n}}));
    refused(&thinking(json!(1023)), 400, "must be 1024 at least");
    refused(&thinking(json!(2000)), 400, "must be greater than thinking.budget_tokens");
    refused(&thinking(json!("x")), 400, "a whole number is required");
    for taken in [with(json!({"temperature": 1, "top_p": 0.5})), thinking(json!(1999))] {
        assert_eq!(send(&playbook(HELLO), &taken).status, 200, "{taken}");
    }
}
