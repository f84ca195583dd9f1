//! Built under `#[cfg(test)]` only.

use serde_json::{Value, json};

use super::*;
use crate::{
    block::Block,
    step5_model_call::{
        request::PrefixChain,
        view::View,
        wire_format::{OPENAI_ITEM, WireFormat},
    },
    tool::{Access, ToolEffect, ToolSpec},
};

fn tool(name: &str) -> std::sync::Arc<ToolSpec> {
    std::sync::Arc::new(
        ToolSpec::new(name, "reads \"files\"", r#"{"type":"object","properties":{"b":{},"a":{}}}"#)
            .with_effect(ToolEffect::ReadOnly)
            .with_access(Access::Free),
    )
}

fn head(stream: bool) -> EncodedHead {
    EncodedHead::new(RequestHead {
        model: "gpt-test".into(),
        max_tokens: 100,
        stream,
        system: vec!["Be brief.".into(), "  ".into(), "Be kind.".into()],
        tools: vec![tool("Glob"), tool("Read")],
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

fn view(messages: Vec<ViewMessage>) -> View {
    View { messages, notes: Vec::new() }
}

fn body(head: &EncodedHead, messages: Vec<ViewMessage>) -> Value {
    let request = WireFormat::OpenAiChat.encode(head, &view(messages), &mut PrefixChain::default());
    serde_json::from_slice(&request.body.to_bytes()).unwrap()
}

/// The messages after the system message.
#[track_caller]
fn check(messages: Vec<ViewMessage>, expected: Value) {
    let body = body(&head(true), messages);
    let sent = body["messages"].as_array().unwrap();
    assert_eq!(sent[0], json!({"role": "system", "content": "Be brief.\n\nBe kind."}));
    assert_eq!(json!(sent[1..]), expected);
}

fn image(data: &str) -> Value {
    json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}})
}

fn wire(value: &Value) -> Block {
    Block::from_wire(&value.to_string()).unwrap()
}

// REQ: MDL-8
#[test]
fn head_has_tools_ceiling_and_usage() {
    let sent = body(&head(true), vec![user(&[Block::text("hi")])]);
    assert_eq!(sent["model"], "gpt-test");
    assert_eq!(sent["max_completion_tokens"], 100);
    assert_eq!(
        (&sent["stream"], &sent["stream_options"]),
        (&json!(true), &json!({"include_usage": true}))
    );
    assert_eq!(
        sent["tools"][1],
        json!({"type": "function", "function": {
            "name": "Read", "description": "reads \"files\"",
            "parameters": {"type": "object", "properties": {"b": {}, "a": {}}},
        }})
    );
    let whole = body(&head(false), vec![user(&[Block::text("hi")])]);
    assert!(whole.get("stream").is_none() && whole.get("stream_options").is_none());
    let bare = RequestHead { system: Vec::new(), tools: Vec::new(), ..head(true).head().clone() };
    let bare = body(&EncodedHead::new(bare), vec![user(&[Block::text("hi")])]);
    assert_eq!(bare["messages"], json!([{"role": "user", "content": "hi"}]));
    assert!(bare.get("tools").is_none());
}

// REQ: MDL-8
#[test]
fn results_are_tool_messages_behind_the_calls() {
    let calls = [
        Block::thinking("hm", Some("sig")),
        Block::text("I look."),
        Block::tool_use(&"t1".into(), &"Read".into(), r#"{"a":"\"x\""}"#),
        Block::tool_use(&"t2".into(), &"Glob".into(), "{}"),
    ];
    let results = [
        Block::tool_result(&"t1".into(), "line", false),
        Block::tool_result(&"t2".into(), "no such file", true),
        Block::text("go on"),
    ];
    check(
        vec![user(&[Block::text("a"), Block::text("b")]), assistant(&calls), user(&results)],
        json!([
            {"role": "user", "content": "a\n\nb"},
            {"role": "assistant", "content": "I look.", "tool_calls": [
                {"id": "t1", "type": "function", "function": {"name": "Read", "arguments": r#"{"a":"\"x\""}"#}},
                {"id": "t2", "type": "function", "function": {"name": "Glob", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": "t1", "content": "line"},
            {"role": "tool", "tool_call_id": "t2", "content": "Error: no such file"},
            {"role": "user", "content": "go on"},
        ]),
    );
}

// REQ: MDL-8
#[test]
fn image_in_a_result_moves_to_the_user() {
    let result = wire(&json!({"type": "tool_result", "tool_use_id": "t1", "content": [
        {"type": "text", "text": "a picture"}, image("QUJD")]}));
    let call = Block::tool_use(&"t1".into(), &"Read".into(), "{}");
    check(
        vec![
            user(&[Block::text("look")]),
            assistant(&[call]),
            user(&[result, Block::text("and?")]),
        ],
        json!([
            {"role": "user", "content": "look"},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "t1", "type": "function", "function": {"name": "Read", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "t1", "content": "a picture"},
            {"role": "user", "content": [
                {"type": "text", "text": "[from the result of call t1]"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
                {"type": "text", "text": "and?"},
            ]},
        ]),
    );
}

// REQ: MDL-8
#[test]
fn what_the_format_has_no_word_for_is_left_out_or_named() {
    let item = wire(&json!({"type": OPENAI_ITEM, "item": {"type": "reasoning"}}));
    let long = format!("toolu_{}", "x".repeat(60));
    let call = Block::tool_use(&long.as_str().into(), &"Read".into(), "{}");
    let result = Block::tool_result(&long.as_str().into(), "", false);
    let document = wire(&json!({"type": "document", "title": "a.pdf", "source":
        {"type": "base64", "media_type": "application/pdf", "data": "QUJD"}}));
    let linked = wire(&json!({"type": "document", "source": {"type": "url", "url": "http://a/b"}}));
    let odd = wire(&json!({"type": "container_upload", "file_id": "f"}));
    let sent = body(
        &head(true),
        vec![
            user(&[document, odd, linked]),
            assistant(&[Block::thinking("", Some("s")), item]),
            user(&[Block::text("on")]),
            assistant(&[call]),
            user(&[result]),
        ],
    );
    let sent = sent["messages"].as_array().unwrap();
    let roles: Vec<&str> = sent.iter().map(|it| it["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "user", "assistant", "tool"]);
    assert_eq!(sent[1]["content"][0]["file"]["file_data"], "data:application/pdf;base64,QUJD");
    assert_eq!(sent[1]["content"][1]["text"], "[a block of type container_upload is left out]");
    assert_eq!(sent[1]["content"][2]["text"], "[document at http://a/b]");
    let id = sent[3]["tool_calls"][0]["id"].as_str().unwrap();
    assert!(id.len() <= 40, "{id}");
    assert_eq!(sent[4]["tool_call_id"], id);
}

// REQ: MDL-8
#[test]
fn front_of_a_request_stays_as_it_was_from_turn_to_turn() {
    let mut chain = PrefixChain::default();
    let head = head(true);
    let mut messages = vec![user(&[Block::text("go")])];
    let mut before: Vec<u8> = Vec::new();
    for n in 0..30 {
        let request = WireFormat::OpenAiChat.encode(&head, &view(messages.clone()), &mut chain);
        let afresh = WireFormat::OpenAiChat.encode(
            &head,
            &view(messages.clone()),
            &mut PrefixChain::default(),
        );
        assert_eq!(request, afresh, "turn {n}");
        // Everything but the closing brackets.
        let front = before.len().saturating_sub(2);
        assert_eq!(request.body.to_bytes()[..front], before[..front], "turn {n}");
        before = request.body.to_bytes().to_vec();
        let id = format!("call_{n}x");
        messages.push(assistant(&[Block::tool_use(&id.as_str().into(), &"Read".into(), "{}")]));
        messages.push(user(&[Block::tool_result(&id.as_str().into(), "é", n % 2 == 0)]));
    }
}

// REQ: MDL-8
#[test]
fn another_history_is_not_taken_from_what_is_kept() {
    let mut chain = PrefixChain::default();
    let head = head(true);
    let long: Vec<ViewMessage> = (0..6).map(|n| user(&[Block::text(&format!("m{n}"))])).collect();
    WireFormat::OpenAiChat.encode(&head, &view(long.clone()), &mut chain);
    let mut other = long[..4].to_vec();
    other[2] = user(&[Block::text("else")]);
    let request = WireFormat::OpenAiChat.encode(&head, &view(other.clone()), &mut chain);
    assert_eq!(
        request,
        WireFormat::OpenAiChat.encode(&head, &view(other.clone()), &mut PrefixChain::default())
    );
    assert_ne!(
        request.digest,
        WireFormat::OpenAiChat.encode(&head, &view(long), &mut chain).digest
    );
    let messages = encode_as_messages(&head, &other, &mut chain);
    assert_ne!(request.digest, messages, "another format is another request");
}

fn encode_as_messages(
    head: &EncodedHead,
    messages: &[ViewMessage],
    chain: &mut PrefixChain,
) -> Digest {
    use crate::step5_model_call::wire_format::WireFormat;
    WireFormat::AnthropicMessages.encode(head, &view(messages.to_vec()), chain).digest
}
