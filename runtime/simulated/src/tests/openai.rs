//! The formats of OpenAI: what our own requests are answered with, read by our own readers, and what
//! is refused.

use serde_json::json;

use super::{Attempts, Exchange, HELLO, Playbook, Script, Value, body, playbook};
use ennead_runtime::{
    block::{Block, BlockKind},
    message::Role,
    step5_model_call::{
        ModelAnswer, StopReason,
        request::{EncodedHead, EncodedRequest, PrefixChain, RequestHead},
        view::{View, ViewMessage},
        wire_format::WireFormat,
    },
};

const FORMATS: [WireFormat; 2] = [WireFormat::OpenAiChat, WireFormat::OpenAiResponses];

const STORY: &str = r#"
[[rule]]
name = "failed"
when.failed = true
reply = [{ text = "It failed: {{ result }}" }]

[[rule]]
name = "done"
when.answers = { min = 1 }
reply = [{ text = "{{ new_results|length }} results for {{ system }}" }]

[[rule]]
name = "use"
delta = 3
reply = [
  { thinking = "I think of é." },
  { text = "Looking." },
  { tool = "Read", input = { file_path = "/a" } },
  { tool = "Glob", input = { pattern = "*" } },
]
usage = { input_tokens = 20, cache_read_input_tokens = 100, output_tokens = 7 }
"#;

fn send_to(playbook: &Playbook, path: &str, body: &[u8]) -> Script {
    let exchange = Exchange { method: "POST", path, headers: &[], body };
    let mut attempts = Attempts::default();
    playbook.exchange(&exchange, &mut |attempt| attempts.next(attempt))
}

fn request(format: WireFormat, stream: bool, messages: &[ViewMessage]) -> EncodedRequest {
    let head = EncodedHead::new(RequestHead {
        model: "sim-1".into(),
        max_tokens: 100,
        stream,
        system: vec!["the system".into()],
        tools: Vec::new(),
        cache: Default::default(),
        parameters: Default::default(),
    });
    let view = View { messages: messages.to_vec(), notes: Vec::new() };
    format.encode(&head, &view, &mut PrefixChain::default())
}

/// Asks and reads the answer, as a session would.
#[track_caller]
fn answer(format: WireFormat, stream: bool, messages: &[ViewMessage]) -> ModelAnswer {
    let request = request(format, stream, messages);
    let url = format.url("http://host", "sim-1", stream);
    let path = url.strip_prefix("http://host").unwrap();
    let script = send_to(&playbook(STORY), path, &request.body.to_bytes());
    assert_eq!(script.status, 200, "{}", String::from_utf8_lossy(&body(&script)));
    if !stream {
        return format.read_whole(&body(&script), request.digest).unwrap();
    }
    let mut reader = format.reader(request.digest);
    reader.push_chunk(&body(&script), &mut Vec::new());
    reader.finish().into_result().unwrap()
}

fn says(role: Role, blocks: &[Block]) -> ViewMessage {
    ViewMessage { role, blocks: blocks.to_vec() }
}

// REQ: MDL-8, MDL-11
#[test]
fn our_own_requests_are_answered_in_their_format() {
    for (format, stream) in FORMATS.into_iter().flat_map(|it| [(it, true), (it, false)]) {
        let mut messages = vec![says(Role::User, &[Block::text("go")])];
        let first = answer(format, stream, &messages);
        assert_eq!(first.stop_reason, StopReason::ToolUse, "{format:?}");
        let usage = first.usage;
        assert_eq!(
            (usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens),
            (20, 100, 7)
        );
        let calls: Vec<_> = first.blocks.iter().filter_map(Block::as_tool_use).collect();
        let seen: Vec<_> = calls.iter().map(|(_, name, input)| (name.as_str(), *input)).collect();
        assert_eq!(seen, [("Read", r#"{"file_path":"/a"}"#), ("Glob", r#"{"pattern":"*"}"#)]);
        let kept = first.blocks.iter().any(|it| matches!(it.kind(), BlockKind::Opaque { .. }));
        assert_eq!(
            kept,
            format == WireFormat::OpenAiResponses,
            "reasoning is kept where it can be"
        );
        let result =
            |n: usize, is_error| Block::tool_result(calls[n].0, &format!("r{n}"), is_error);
        let results = |is_error| says(Role::User, &[result(0, false), result(1, is_error)]);
        messages.push(says(Role::Assistant, &first.blocks));
        messages.push(results(false));
        let second = answer(format, stream, &messages);
        assert_eq!(second.blocks, [Block::text("2 results for the system")]);
        assert_eq!(second.stop_reason, StopReason::EndTurn);
        messages[2] = results(true);
        assert_eq!(answer(format, stream, &messages).blocks, [Block::text("It failed: r0\nr1")]);
    }
}

#[track_caller]
fn check_refused(path: &str, request: &Value, why: &str) {
    let script = send_to(&playbook(HELLO), path, request.to_string().as_bytes());
    assert_eq!(script.status, 400, "{request}");
    let answer: Value = serde_json::from_slice(&body(&script)).unwrap();
    assert!(answer["error"]["message"].as_str().unwrap().contains(why), "{answer}");
    assert_eq!(answer["error"]["type"], "invalid_request_error");
}

// REQ: MDL-11
#[test]
fn what_the_real_ones_refuse_is_refused() {
    let chat = "/v1/chat/completions";
    let asked = |messages: Value| json!({"model": "m", "messages": messages});
    let call = json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": "n", "arguments": "{}"}}]});
    let user = json!({"role": "user", "content": "hi"});
    let result = json!({"role": "tool", "tool_call_id": "other", "content": "x"});
    check_refused(chat, &asked(json!([user, call, user])), "tool_use");
    check_refused(chat, &asked(json!([user, call, result])), "other");
    check_refused(chat, &asked(json!([user, {"role": "robot", "content": "x"}])), "unknown role");
    check_refused(chat, &json!({"messages": [user]}), "model");
    let both =
        json!({"model": "m", "max_tokens": 1, "max_completion_tokens": 1, "messages": [user]});
    check_refused(chat, &both, "at the same time");
    let responses = "/v1/responses";
    let asked = |input: Value| json!({"model": "m", "input": input});
    let reasoning = json!({"type": "reasoning", "id": "rs", "summary": []});
    check_refused(responses, &asked(json!([user, reasoning])), "not kept");
    let reasoning = json!({"type": "reasoning", "summary": [], "encrypted_content": "x"});
    check_refused(responses, &asked(json!([user, reasoning, user])), "the item it led to");
    let call = json!({"type": "function_call", "call_id": "c", "name": "n", "arguments": "[1"});
    check_refused(responses, &asked(json!([user, call])), "not JSON");
}

// REQ: MDL-11
#[test]
fn errors_of_a_playbook_are_worded_as_the_format_words_them() {
    let full = r#"
[[rule]]
name = "quota"
fault = { status = 429, error = "insufficient_quota", message = "Nothing left" }
"#;
    for format in FORMATS {
        let request = request(format, true, &[says(Role::User, &[Block::text("go")])]);
        let path = format.url("", "", true);
        let script = send_to(&playbook(full), &path, &request.body.to_bytes());
        let answer: Value = serde_json::from_slice(&body(&script)).unwrap();
        assert_eq!(
            answer,
            json!({"error": {"message": "Nothing left", "type": "requests", "param": null,
                "code": "insufficient_quota"}})
        );
    }
}
