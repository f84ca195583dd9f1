//! Built under `#[cfg(test)]` only.

use serde_json::{Value, json};

use super::*;
use crate::step5_model_call::{request::PrefixChain, view::View, wire_format::WireFormat};

fn head(model: &str, stream: bool) -> EncodedHead {
    EncodedHead::new(RequestHead {
        model: model.into(),
        max_tokens: 100,
        stream,
        system: vec!["Be brief.".into()],
        tools: Vec::new(),
        cache: Default::default(),
        parameters: Default::default(),
    })
}

fn user(blocks: &[Block]) -> ViewMessage {
    ViewMessage { role: Role::User, blocks: blocks.to_vec() }
}

fn assistant(blocks: &[Block]) -> ViewMessage {
    ViewMessage { role: Role::Assistant, blocks: blocks.to_vec() }
}

fn body(head: &EncodedHead, messages: Vec<ViewMessage>) -> Value {
    let view = View { messages, notes: Vec::new() };
    let request = WireFormat::OpenAiResponses.encode(head, &view, &mut PrefixChain::default());
    serde_json::from_slice(&request.body.to_bytes()).unwrap()
}

fn reasoning(item: &str) -> Block {
    Block::from_wire(&format!(r#"{{"type":"{OPENAI_ITEM}","item":{item}}}"#)).unwrap()
}

// REQ: MDL-8
#[test]
fn nothing_is_kept_at_the_server_and_reasoning_is_asked_for() {
    let sent = body(&head("gpt-5", true), vec![user(&[Block::text("hi")])]);
    assert_eq!(
        sent,
        json!({
            "model": "gpt-5", "max_output_tokens": 100, "stream": true, "store": false,
            "include": ["reasoning.encrypted_content"], "instructions": "Be brief.",
            "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}],
        })
    );
    for model in ["gpt-4o", "gpt-5-chat-latest", "openai/gpt-4.1"] {
        assert!(body(&head(model, false), Vec::new()).get("include").is_none(), "{model}");
    }
}

// REQ: MDL-8
#[test]
fn reasoning_goes_back_whole_in_front_of_its_call() {
    let raw = r#"{"id":"rs_1","type":"reasoning","summary":[ ],"encrypted_content":"gA=="}"#;
    let blocks = [
        reasoning(raw),
        Block::text("I look."),
        Block::thinking("of another", Some("sig")),
        Block::tool_use(&"t1".into(), &"Read".into(), r#"{"a":1}"#),
    ];
    let results = [Block::tool_result(&"t1".into(), "gone", true), Block::text("on")];
    let view = View {
        messages: vec![user(&[Block::text("go")]), assistant(&blocks), user(&results)],
        notes: Vec::new(),
    };
    let request = WireFormat::OpenAiResponses.encode(
        &head("gpt-5", true),
        &view,
        &mut PrefixChain::default(),
    );
    assert!(
        request.body.to_bytes().windows(raw.len()).any(|it| it == raw.as_bytes()),
        "byte for byte"
    );
    let sent: Value = serde_json::from_slice(&request.body.to_bytes()).unwrap();
    assert_eq!(
        json!(sent["input"].as_array().unwrap()[1..]),
        json!([
            serde_json::from_str::<Value>(raw).unwrap(),
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
            {"type": "function_call", "call_id": "t1", "name": "Read", "arguments": r#"{"a":1}"#},
            {"type": "function_call_output", "call_id": "t1", "output": "Error: gone"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "on"}]},
        ])
    );
}

// REQ: MDL-8
#[test]
fn reasoning_that_led_to_nothing_is_left_out() {
    let raw = r#"{"type":"reasoning","encrypted_content":"gA=="}"#;
    let sent = body(
        &head("gpt-5", true),
        vec![
            user(&[Block::text("a")]),
            assistant(&[Block::text("b"), reasoning(raw)]),
            user(&[Block::text("c")]),
            assistant(&[reasoning(raw)]),
            user(&[Block::text("d")]),
        ],
    );
    let roles: Vec<&str> =
        sent["input"].as_array().unwrap().iter().filter_map(|it| it["role"].as_str()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "user"]);
}
