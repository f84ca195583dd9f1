//! What a request says about calls, in all three formats; fields that no format has; the list of models.
//!
//! Built under `#[cfg(test)]` only.

use super::*;

/// Speaks, and calls `B` twice.
const CALLS: &str = r#"
[[rule]]
name = "calls"
when.prompt = "call"
reply = [{ text = "so" }, { tool = "B", input = { x = "1" } }, { tool = "B", input = { x = "2" } }]

[[rule]]
name = "speaks"
reply = [{ text = "no call" }]
"#;

fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["path", "n", "deep"],
        "properties": {
            "path": {"type": "string"},
            "n": {"type": "integer", "minimum": 3},
            "deep": {"$ref": "#/$defs/deep"},
            "other": {"type": "string"},
        },
        "$defs": {"deep": {"type": "object", "required": ["kind"], "properties": {"kind": {"enum": ["a"]}}}},
    })
}

/// A request in each format, which offers the tools A and B.
fn in_formats(prompt: &str, choice: &str, one: bool) -> [(&'static str, Value); 3] {
    let function = |name: &str| json!({"name": name, "parameters": schema()});
    let messages = json!([{"role": "user", "content": prompt}]);
    let mut claude = json!({
        "model": "m", "max_tokens": 9, "messages": messages,
        "tools": [{"name": "A", "input_schema": schema()}, {"name": "B", "input_schema": schema()}],
        "tool_choice": match choice {
            "required" => json!({"type": "any"}),
            "auto" | "none" => json!({"type": choice}),
            name => json!({"type": "tool", "name": name}),
        },
    });
    let of_chat = |name| json!({"type": "function", "function": function(name)});
    let named = !matches!(choice, "required" | "auto" | "none");
    let mut chat = json!({
        "model": "m", "messages": messages, "tools": [of_chat("A"), of_chat("B")],
        "tool_choice": if named { json!({"type": "function", "function": {"name": choice}}) } else { json!(choice) },
    });
    let of_responses = |name| {
        let mut tool = function(name);
        tool["type"] = "function".into();
        tool
    };
    let mut responses = json!({
        "model": "m", "input": prompt, "tools": [of_responses("A"), of_responses("B")],
        "tool_choice": if named { json!({"type": "function", "name": choice}) } else { json!(choice) },
    });
    if one {
        claude["tool_choice"]["disable_parallel_tool_use"] = true.into();
        chat["parallel_tool_calls"] = false.into();
        responses["parallel_tool_calls"] = false.into();
    }
    [("/v1/messages", claude), ("/v1/chat/completions", chat), ("/v1/responses", responses)]
}

fn post(path: &str, request: &Value) -> Script {
    let body = request.to_string();
    let exchange = Exchange { method: "POST", path, headers: &[], body: body.as_bytes() };
    playbook(CALLS).exchange(&exchange, &mut |_| 0)
}

/// The tools that an answer calls, with their inputs, and whether it says anything.
fn calls_of(path: &str, script: &Script) -> (Vec<(String, Value)>, bool) {
    assert_eq!(script.status, 200, "{:?}", json_body(script));
    let answer = json_body(script);
    let parsed = |it: &Value| serde_json::from_str(it.as_str().unwrap()).unwrap();
    let name = |it: &Value| it.as_str().unwrap().to_owned();
    let list = |it: &Value| it.as_array().cloned().unwrap_or_default();
    match path {
        "/v1/messages" => {
            let blocks = list(&answer["content"]);
            let calls: Vec<_> = blocks.iter().filter(|it| it["type"] == "tool_use").collect();
            let reason = if calls.is_empty() { "end_turn" } else { "tool_use" };
            assert_eq!(answer["stop_reason"], reason);
            let made = calls.iter().map(|it| (name(&it["name"]), it["input"].clone())).collect();
            (made, blocks.iter().any(|it| it["type"] == "text"))
        }
        "/v1/chat/completions" => {
            let message = &answer["choices"][0]["message"];
            let calls = list(&message["tool_calls"]);
            let reason = if calls.is_empty() { "stop" } else { "tool_calls" };
            assert_eq!(answer["choices"][0]["finish_reason"], reason);
            let of =
                |it: &Value| (name(&it["function"]["name"]), parsed(&it["function"]["arguments"]));
            (calls.iter().map(of).collect(), message["content"].is_string())
        }
        _ => {
            let items = list(&answer["output"]);
            let calls = items.iter().filter(|it| it["type"] == "function_call");
            let made = calls.map(|it| (name(&it["name"]), parsed(&it["arguments"]))).collect();
            (made, items.iter().any(|it| it["type"] == "message"))
        }
    }
}

// REQ: MDL-11
#[test]
fn what_a_request_says_about_calls_holds_in_every_format() {
    let made = json!({"path": "", "n": 3, "deep": {"kind": "a"}});
    let b = |x: &str| ("B".to_owned(), json!({"x": x}));
    let added = |name: &str| (name.to_owned(), made.clone());
    for (prompt, choice, one, calls, says) in [
        ("call", "auto", false, vec![b("1"), b("2")], true),
        ("call", "auto", true, vec![b("1")], true),
        ("call", "none", false, vec![], true),
        ("call", "required", false, vec![b("1"), b("2")], false),
        ("call", "required", true, vec![b("1")], false),
        ("call", "B", false, vec![b("1"), b("2")], false),
        ("call", "A", false, vec![added("A")], false),
        ("speak", "auto", false, vec![], true),
        ("speak", "required", false, vec![added("A")], false),
        ("speak", "B", false, vec![added("B")], false),
    ] {
        for (path, request) in in_formats(prompt, choice, one) {
            let script = post(path, &request);
            assert_eq!(calls_of(path, &script), (calls.clone(), says), "{path} {prompt} {choice}");
        }
    }
}

#[track_caller]
fn refused(path: &str, request: &Value, why: &str) -> Value {
    let script = post(path, request);
    let error = json_body(&script);
    assert_eq!(script.status, 400, "{error}");
    assert!(error["error"]["message"].as_str().unwrap().contains(why), "{error}\n  lacks: {why}");
    error["error"].clone()
}

// REQ: MDL-11
#[test]
fn choice_that_cannot_be_made_is_refused() {
    for (path, mut request) in in_formats("call", "C", false) {
        refused(path, &request, "Tool 'C' not found in provided tools");
        request["tool_choice"] = json!("auto");
        request.as_object_mut().unwrap().remove("tools");
        if path != "/v1/messages" {
            refused(path, &request, "only be specified while providing tools");
        }
        request["tool_choice"] = json!({"type": "sometimes"});
        refused(path, &request, "tool_choice");
    }
    let [(path, mut request), ..] = in_formats("call", "A", false);
    request["thinking"] = json!({"type": "enabled", "budget_tokens": 1024});
    request["max_tokens"] = 2000.into();
    refused(path, &request, "Thinking may not be enabled when tool_choice forces tool use");
}

// REQ: MDL-11
#[test]
fn schema_that_names_itself_makes_an_input_of_bounded_size() {
    let mut request = in_formats("speak", "A", false)[0].1.clone();
    let names: Vec<String> = (0..40).map(|i| format!("p{i}")).collect();
    let itself: serde_json::Map<_, _> =
        names.iter().map(|it| (it.clone(), json!({"$ref": "#"}))).collect();
    request["tools"][0]["input_schema"] =
        json!({"type": "object", "required": names, "properties": itself});
    let (calls, _) = calls_of("/v1/messages", &post("/v1/messages", &request));
    assert_eq!(calls.len(), 1);
    assert!(calls[0].1.to_string().len() < 100_000);
}

// REQ: MDL-11
#[test]
fn field_that_a_format_does_not_have_is_refused_in_its_words() {
    let with = |path: &str, place: &str, field: &str| {
        let requests = in_formats("x", "auto", false);
        let mut request = requests.into_iter().find(|it| it.0 == path).unwrap().1;
        request.pointer_mut(place).unwrap()[field] = json!("t1");
        request
    };
    let messages = "/v1/messages";
    for (place, field, why) in [
        ("", "max_output_tokens", "max_output_tokens: Extra inputs"),
        ("", "threads", "threads: Extra inputs"),
        ("/tools/1", "parameters", "tools.1.parameters: Extra inputs"),
        ("/messages/0", "name", "messages.0.name: Extra inputs"),
    ] {
        refused(messages, &with(messages, place, field), why);
    }
    let mut block = with(messages, "", "top_p");
    block["messages"][0]["content"] = json!([{"type": "text", "text": "x", "txet": "y"}]);
    refused(messages, &block, "messages.0.content.0.text.txet: Extra inputs are not permitted");

    let chat = "/v1/chat/completions";
    let error = refused(
        chat,
        &with(chat, "", "threads"),
        "Unrecognized request argument supplied: threads",
    );
    assert_eq!((&error["type"], &error["code"]), (&json!("invalid_request_error"), &Value::Null));

    let responses = "/v1/responses";
    for (field, code) in [
        ("threads", "unknown_parameter"),
        ("previous_response_id", "previous_response_not_found"),
        ("conversation", "conversation_not_found"),
    ] {
        let error = refused(responses, &with(responses, "", field), "");
        assert_eq!((&error["code"], &error["param"]), (&json!(code), &json!(field)));
    }
}

// REQ: MDL-11
#[test]
fn thread_is_refused_with_a_code_of_its_own_in_every_format() {
    for (path, mut request) in in_formats("x", "auto", false) {
        request["thread"] = Value::Null;
        if path != "/v1/messages" {
            // Said, but empty: as unknown as any other field.
            assert_ne!(refused(path, &request, "thread")["code"], "thread_not_supported");
        }
        for thread in [json!("t1"), json!({"id": "t1"})] {
            request["thread"] = thread;
            let error = refused(path, &request, "threads are not kept");
            assert_eq!(error["type"], "invalid_request_error", "{path}");
            assert_eq!(error["code"], "thread_not_supported", "{path}");
        }
    }
}

// REQ: MDL-11
#[test]
fn list_of_models_is_answered_in_the_format_of_who_asks() {
    let get = |method: &str, path: &str, headers: &[(&str, &str)]| {
        let headers: Vec<(String, String)> =
            headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let exchange = Exchange { method, path, headers: &headers, body: b"" };
        let locked = playbook(&format!("key = \"k\"\n{CALLS}"));
        let script = locked.exchange(&exchange, &mut |_| 0);
        (script.status, json_body(&script))
    };
    let claude = [("anthropic-version", "2023-06-01"), ("x-api-key", "k")];
    let (status, list) = get("GET", "/v1/models", &claude);
    assert_eq!((status, &list["has_more"]), (200, &json!(false)));
    let first = list["data"][0]["id"].as_str().unwrap();
    assert_eq!(
        (&list["data"][0]["type"], list["first_id"].as_str()),
        (&json!("model"), Some(first))
    );
    let (status, one) = get("GET", &format!("/v1/models/{first}"), &claude);
    assert_eq!((status, &one["id"]), (200, &json!(first)));
    let openai = [("authorization", "Bearer k")];
    let (status, list) = get("GET", "/v1/models", &openai);
    assert_eq!((status, &list["object"]), (200, &json!("list")));
    assert_eq!(list["data"][0]["object"], "model");
    assert_eq!(get("GET", "/v1/models/no-such", &openai).0, 404);
    assert_eq!(get("POST", "/v1/models", &openai).0, 405);
    assert_eq!(get("GET", "/v1/models", &[]).0, 401);
}
