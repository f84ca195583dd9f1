//! The bytes of requests, and the chain that is their digest.
//!
//! Built under `#[cfg(test)]` only.

use serde_json::{Value, json};

use super::*;
use crate::{
    block::Block,
    ids::ToolUseId,
    message::Role,
    step5_model_call::{fixture::tool, view::ViewMessage},
};

fn odd_tool(name: &str) -> ToolSpec {
    ToolSpec {
        description: "does \"it\"".into(),
        input_schema: r#"{"type":"object","properties":{"b":{},"a":{}}}"#.into(),
        ..tool(name)
    }
}

fn head() -> RequestHead {
    RequestHead {
        model: "m".into(),
        max_tokens: 100,
        stream: true,
        system: vec!["be\nkind".into(), "  ".into(), "here".into()],
        tools: vec![odd_tool("A").into(), odd_tool("B").into()],
        cache: CachePlan { caching: PromptCaching::Off, n_static: 1 },
        parameters: Arc::default(),
    }
}

const MESSAGES: WireFormat = WireFormat::AnthropicMessages;

fn encode_fresh(head: &EncodedHead, view: &View) -> EncodedRequest {
    encode(MESSAGES, head, view, &mut PrefixChain::default())
}

fn message(role: Role, blocks: &[Block]) -> ViewMessage {
    ViewMessage { role, blocks: blocks.to_vec() }
}

fn view(messages: &[ViewMessage]) -> View {
    View { messages: messages.to_vec(), notes: Vec::new() }
}

fn conversation() -> Vec<ViewMessage> {
    let id = ToolUseId::from("t");
    vec![
        message(Role::User, &[Block::text("hi"), Block::text("there")]),
        message(Role::Assistant, &[Block::tool_use(&id, &"A".into(), r#"{"b":1,"a":2}"#)]),
        message(Role::User, &[Block::tool_result(&id, "ok", false)]),
    ]
}

// REQ: MDL-1
#[test]
fn body_has_the_fields_of_the_api_and_keeps_the_bytes_of_blocks() {
    let request = encode_fresh(&EncodedHead::new(head()), &view(&conversation()));
    let schema = json!({"type": "object", "properties": {"b": {}, "a": {}}});
    assert_eq!(
        serde_json::from_slice::<Value>(&request.body.to_bytes()).unwrap(),
        json!({
            "model": "m",
            "max_tokens": 100,
            "stream": true,
            "system": [{"type": "text", "text": "be\nkind"}, {"type": "text", "text": "here"}],
            "tools": [
                {"name": "A", "description": "does \"it\"", "input_schema": schema},
                {"name": "B", "description": "does \"it\"", "input_schema": schema},
            ],
            "messages": [
                {"role": "user", "content": [
                    {"type": "text", "text": "hi"}, {"type": "text", "text": "there"}]},
                {"role": "assistant", "content": [
                    {"type": "tool_use", "id": "t", "name": "A", "input": {"b": 1, "a": 2}}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "t", "content": "ok"}]},
            ],
        })
    );
    let text = String::from_utf8(request.body.to_bytes().to_vec()).unwrap();
    assert!(text.contains(r#""input":{"b":1,"a":2}"#), "{text}");
}

// REQ: MDL-1
#[test]
fn empty_lists_are_left_out_and_the_ceiling_changes_without_encoding_again() {
    let bare = RequestHead { system: Vec::new(), tools: Vec::new(), ..head() };
    let body = |head: &EncodedHead| {
        String::from_utf8(encode_fresh(head, &View::default()).body.to_bytes().to_vec()).unwrap()
    };
    let encoded = EncodedHead::new(bare);
    assert_eq!(body(&encoded), r#"{"model":"m","max_tokens":100,"stream":true,"messages":[]}"#);
    assert_eq!(
        body(&encoded.with("n", 200, false)),
        r#"{"model":"n","max_tokens":200,"messages":[]}"#
    );
}

#[test]
fn equal_requests_have_equal_bytes_and_digests() {
    let once = encode_fresh(&EncodedHead::new(head()), &view(&conversation()));
    assert_eq!(once, encode_fresh(&EncodedHead::new(head()), &view(&conversation())));
}

#[test]
fn encoded_head_knows_what_it_was_made_from() {
    let encoded = EncodedHead::new(head());
    assert!(encoded.matches(&head()));
    assert!(!encoded.matches(&RequestHead { max_tokens: 101, ..head() }));
    assert!(!encoded.matches(&RequestHead { tools: Vec::new(), ..head() }));
    let other = RequestHead { model: "n".into(), max_tokens: 7, stream: false, ..head() };
    let changed = encoded.with("n", 7, false);
    assert!(changed.matches(&other));
    let empty = View::default();
    assert_eq!(encode_fresh(&changed, &empty), encode_fresh(&EncodedHead::new(other), &empty));
}

#[test]
fn digest_tells_heads_blocks_and_borders_of_messages_apart() {
    let encoded = EncodedHead::new(head());
    let a = Block::text("a");
    let b = Block::text("b");
    let user = |blocks: &[&Block]| {
        message(Role::User, &blocks.iter().copied().cloned().collect::<Vec<_>>())
    };
    let answer = |block: &Block| message(Role::Assistant, std::slice::from_ref(block));
    let other_tools =
        RequestHead { tools: vec![odd_tool("B").into(), odd_tool("A").into()], ..head() };
    let digests = [
        encode_fresh(&encoded, &view(&[])).digest,
        encode_fresh(&encoded, &view(&[user(&[&a, &b])])).digest,
        encode_fresh(&encoded, &view(&[user(&[&b, &a])])).digest,
        encode_fresh(&encoded, &view(&[user(&[&a]), user(&[&b])])).digest,
        encode_fresh(&encoded, &view(&[user(&[&a]), answer(&b)])).digest,
        encode_fresh(&encoded.with("m", 101, true), &view(&[user(&[&a, &b])])).digest,
        encode_fresh(&encoded.with("m", 100, false), &view(&[user(&[&a, &b])])).digest,
        encode_fresh(&EncodedHead::new(other_tools), &view(&[user(&[&a, &b])])).digest,
    ];
    let distinct: std::collections::BTreeSet<Digest> = digests.into_iter().collect();
    assert_eq!(distinct.len(), digests.len());
}

#[test]
fn kept_chain_gives_the_digest_of_a_fresh_one_and_hashes_only_what_is_new() {
    let encoded = EncodedHead::new(head());
    let mut chain = PrefixChain::default();
    let mut messages = conversation();
    let first = encode(MESSAGES, &encoded, &view(&messages), &mut chain);
    assert_eq!(first, encode_fresh(&encoded, &view(&messages)));
    // A false link in the unchanged front would be found out if the front were hashed again.
    let kept = chain.links.clone();
    messages.push(message(Role::Assistant, &[Block::text("done")]));
    let second = encode(MESSAGES, &encoded, &view(&messages), &mut chain);
    assert_eq!(second, encode_fresh(&encoded, &view(&messages)));
    assert_eq!(chain.links[..kept.len()], kept);
    let mut marked = chain.clone();
    marked.links[0].1 = Digest::default();
    let nothing = SharedList::default();
    let digest = marked.follow(marked.head, &nothing, &view(&messages).messages);
    assert_eq!(digest, second.digest);
    // Shorter, changed in front, other head.
    messages.truncate(1);
    assert_eq!(
        encode(MESSAGES, &encoded, &view(&messages), &mut chain),
        encode_fresh(&encoded, &view(&messages))
    );
    messages[0].blocks[0] = Block::text("ho");
    assert_eq!(
        encode(MESSAGES, &encoded, &view(&messages), &mut chain),
        encode_fresh(&encoded, &view(&messages))
    );
    let other = encoded.with("m", 7, false);
    assert_eq!(
        encode(MESSAGES, &other, &view(&messages), &mut chain),
        encode_fresh(&other, &view(&messages))
    );
}
