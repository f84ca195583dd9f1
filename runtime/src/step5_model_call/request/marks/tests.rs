//! Where marks are, and that there are never more than four.
//!
//! Built under `#[cfg(test)]` only.

use std::slice::from_ref;

use serde_json::Value;

use crate::{
    block::Block,
    ids::ToolUseId,
    message::Role,
    step5_model_call::{
        fixture::tool,
        request::{CachePlan, EncodedHead, PrefixChain, PromptCaching, RequestHead, encode},
        view::{View, ViewMessage},
        wire_format::WireFormat,
    },
};

fn head(caching: PromptCaching) -> RequestHead {
    RequestHead {
        model: "m".into(),
        max_tokens: 100,
        stream: true,
        system: vec!["base".into(), " ".into(), "tools".into(), "git".into()],
        tools: vec![tool("A").into(), tool("B").into()],
        parameters: Default::default(),
        cache: CachePlan { caching, n_static: 3 },
    }
}

fn body(head: RequestHead, messages: &[ViewMessage]) -> Value {
    let view = View { messages: messages.to_vec(), notes: Vec::new() };
    let request =
        encode(WireFormat::default(), &EncodedHead::new(head), &view, &mut PrefixChain::default());
    serde_json::from_slice(&request.body.to_bytes()).unwrap()
}

fn user(blocks: &[Block]) -> ViewMessage {
    ViewMessage { role: Role::User, blocks: blocks.to_vec() }
}

fn answer(blocks: &[Block]) -> ViewMessage {
    ViewMessage { role: Role::Assistant, blocks: blocks.to_vec() }
}

/// Pointers of everything that is marked, in the order of the provider's prefix.
fn marked(body: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for list in ["tools", "system"] {
        let items = body[list].as_array().into_iter().flatten().enumerate();
        let of_list = items.filter(|(_, it)| it.get("cache_control").is_some());
        found.extend(of_list.map(|(i, _)| format!("{list}/{i}")));
    }
    for (i, message) in body["messages"].as_array().into_iter().flatten().enumerate() {
        let blocks = message["content"].as_array().into_iter().flatten().enumerate();
        let of_message = blocks.filter(|(_, it)| it.get("cache_control").is_some());
        found.extend(of_message.map(|(block, _)| format!("{i}/{block}")));
    }
    found
}

#[track_caller]
fn check(messages: &[ViewMessage], places: &[&str]) {
    let mut expected = vec!["tools/1", "system/1"];
    expected.extend(places);
    assert_eq!(marked(&body(head(PromptCaching::FiveMinutes), messages)), expected);
    assert_eq!(marked(&body(head(PromptCaching::Off), messages)), Vec::<String>::new());
}

// REQ: CTX-7
#[test]
fn marks_stand_on_tools_static_system_and_the_last_two_boundaries() {
    let id = ToolUseId::from("t");
    let (hi, ok) = (Block::text("hi"), Block::text("ok"));
    let call = Block::tool_use(&id, &"A".into(), "{}");
    let result = Block::tool_result(&id, "done", false);
    let thought = Block::thinking("hm", Some("s"));
    check(&[], &[]);
    check(&[user(&[hi.clone(), ok.clone()])], &["0/1"]);
    let turn = [user(&[hi.clone(), ok.clone()]), answer(&[call]), user(&[result])];
    check(&turn, &["0/1", "2/0"]);
    let next = [&turn[..], &[answer(from_ref(&ok)), user(&[ok.clone(), hi.clone()])]].concat();
    check(&next, &["2/0", "4/1"]);
    // A paused answer goes back unchanged; reasoning is never marked.
    let paused = [&turn[..], &[answer(&[ok, thought.clone()])]].concat();
    check(&paused, &["0/1", "2/0"]);
    check(&[user(from_ref(&hi)), answer(&[thought])], &["0/0"]);
    let image = Block::from_wire(r#"{"type":"image","source":{}}"#).unwrap();
    let server = Block::from_wire(r#"{"type":"server_tool_use","id":"s"}"#).unwrap();
    check(&[user(&[hi.clone(), image])], &["0/1"]);
    check(&[user(&[hi, server])], &["0/0"]);
}
// REQ: CTX-7
#[test]
fn marks_that_blocks_bring_along_are_not_sent() {
    let own = |text: &str| {
        let wire = format!(
            r#"{{"type":"text","text":"{text}","cache_control":{{"type":"ephemeral"}},"z":[1, 2]}}"#
        );
        Block::from_wire(&wire).unwrap()
    };
    let five: Vec<Block> = ["a", "b", "c", "d", "e"].map(own).to_vec();
    check(&[user(&five)], &["0/4"]);
    assert_eq!(five[0].wire_open(), r#"{"type":"text","text":"a","z":[1, 2]"#);
}

// REQ: CTX-7
#[test]
fn an_hour_is_said_on_every_mark_or_on_none() {
    let messages =
        [user(&[Block::text("hi")]), answer(&[Block::text("ho")]), user(&[Block::text("he")])];
    for (caching, ttl) in [(PromptCaching::OneHour, Some("1h")), (PromptCaching::FiveMinutes, None)]
    {
        let body = body(head(caching), &messages);
        let marks = [
            &body["tools"][1],
            &body["system"][1],
            &body["messages"][0]["content"][0],
            &body["messages"][2]["content"][0],
        ];
        for marked in marks {
            assert_eq!(marked["cache_control"]["type"], "ephemeral");
            assert_eq!(marked["cache_control"]["ttl"].as_str(), ttl);
        }
    }
}

#[test]
fn digest_tells_the_ways_of_caching_apart() {
    let view = View { messages: vec![user(&[Block::text("hi")])], notes: Vec::new() };
    let bare = |caching| RequestHead { system: Vec::new(), tools: Vec::new(), ..head(caching) };
    let all = [PromptCaching::Off, PromptCaching::FiveMinutes, PromptCaching::OneHour];
    let digests: std::collections::BTreeSet<_> = all
        .map(|it| {
            encode(
                WireFormat::default(),
                &EncodedHead::new(bare(it)),
                &view,
                &mut PrefixChain::default(),
            )
            .digest
        })
        .into();
    assert_eq!(digests.len(), 3);
}
