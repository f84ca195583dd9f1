//! The engine as a caller sees it: a playbook, a request, the bytes of the answer.

mod choices;
mod faults;
mod openai;
mod playbooks;
mod reader;
mod refusals;
mod replies;

use serde_json::{Value, json};

use super::{Attempts, End, Exchange, Playbook, Script};

/// A rule that answers anything.
const HELLO: &str = r#"
[[rule]]
name = "hello"
reply = [{ text = "Hello" }]
"#;

fn playbook(text: &str) -> Playbook {
    Playbook::parse(text, "test.toml").unwrap_or_else(|error| panic!("{error}"))
}

/// A request with these messages; streamed.
fn request(messages: Value) -> Value {
    json!({"model": "sim-1", "max_tokens": 100, "stream": true, "messages": messages})
}

fn asked(text: &str) -> Value {
    request(json!([{"role": "user", "content": text}]))
}

/// A question, and one round of calls `(name, input, result)`.
fn after_calls(prompt: &str, calls: &[(&str, Value, &str)]) -> Value {
    let uses = calls.iter().enumerate().map(|(i, (name, input, _))| {
        json!({"type": "tool_use", "id": format!("t{i}"), "name": name, "input": input})
    });
    let results = calls.iter().enumerate().map(|(i, (_, _, text))| {
        json!({"type": "tool_result", "tool_use_id": format!("t{i}"), "content": [{"type": "text", "text": text}],
               "is_error": text.starts_with("error")})
    });
    request(json!([
        {"role": "user", "content": [{"type": "text", "text": prompt}]},
        {"role": "assistant", "content": uses.collect::<Vec<_>>()},
        {"role": "user", "content": results.collect::<Vec<_>>()},
    ]))
}

fn send_with(playbook: &Playbook, request: &Value, attempts: &mut Attempts) -> Script {
    let body = request.to_string();
    let exchange =
        Exchange { method: "POST", path: "/v1/messages", headers: &[], body: body.as_bytes() };
    playbook.exchange(&exchange, &mut |attempt| attempts.next(attempt))
}

fn send(playbook: &Playbook, request: &Value) -> Script {
    send_with(playbook, request, &mut Attempts::default())
}

fn body(script: &Script) -> Vec<u8> {
    script.pieces.iter().flat_map(|piece| piece.bytes.to_vec()).collect()
}

fn json_body(script: &Script) -> Value {
    let body = body(script);
    serde_json::from_slice(&body)
        .unwrap_or_else(|_| panic!("no JSON: {}", String::from_utf8_lossy(&body)))
}

/// The data of the events of a stream.
fn events(script: &Script) -> Vec<Value> {
    let body = String::from_utf8(body(script)).expect("a stream is text");
    body.split_terminator("\n\n")
        .map(|event| {
            let (name, data) = event.split_once("\ndata: ").expect("an event has data");
            let data: Value = serde_json::from_str(data).expect("data is JSON");
            assert_eq!(name.strip_prefix("event: "), data["type"].as_str());
            data
        })
        .collect()
}

/// The message that a stream makes, folded as a client would.
fn message(script: &Script) -> Value {
    assert_eq!((script.status, script.end), (200, End::Closed), "{script:?}");
    let mut message = Value::Null;
    let mut input = String::new();
    for event in events(script) {
        let i = event["index"].as_u64().unwrap_or_default() as usize;
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => message = event["message"].clone(),
            "content_block_start" => {
                assert_eq!(message["content"].as_array().map(Vec::len), Some(i), "blocks in order");
                message["content"].as_array_mut().unwrap().push(event["content_block"].clone());
                input.clear();
            }
            "content_block_delta" => {
                let delta = event["delta"].as_object().unwrap();
                let (field, text) = delta.iter().find(|(key, _)| *key != "type").unwrap();
                match field.as_str() {
                    "partial_json" => input.push_str(text.as_str().unwrap()),
                    field => {
                        let so_far = message["content"][i][field].as_str().unwrap_or_default();
                        message["content"][i][field] =
                            json!(format!("{so_far}{}", text.as_str().unwrap()));
                    }
                }
            }
            "content_block_stop" if message["content"][i]["type"] == "tool_use" => {
                message["content"][i]["input"] = serde_json::from_str(&input).expect("input");
            }
            "message_delta" => {
                for (key, value) in event["delta"].as_object().unwrap() {
                    message[key] = value.clone();
                }
                message["usage"]["output_tokens"] = event["usage"]["output_tokens"].clone();
            }
            "content_block_stop" | "ping" | "message_stop" => {}
            other => panic!("unknown event {other}"),
        }
    }
    message
}
