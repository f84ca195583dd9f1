//! One request as each of those who serve Claude wants it.
//!
//! Built under `#[cfg(test)]` only.

use serde_json::{Value, json};

use super::*;
use crate::{
    block::Block,
    message::Role,
    step5_model_call::{
        adaptation::{Parameters, Thinking},
        fixture::tool,
        request::{CachePlan, EncodedHead, EncodedRequest, PrefixChain, PromptCaching},
        view::View,
    },
};

fn head(parameters: Parameters) -> RequestHead {
    RequestHead {
        model: "claude-opus-4-8".into(),
        max_tokens: 100,
        stream: true,
        system: vec!["be kind".into()],
        tools: vec![tool("A").into()],
        cache: CachePlan { caching: PromptCaching::Off, n_static: 0 },
        parameters: Arc::new(parameters),
    }
}

fn asks(messages: &[(Role, Vec<Block>)]) -> View {
    let message =
        |(role, blocks): &(Role, Vec<Block>)| ViewMessage { role: *role, blocks: blocks.clone() };
    View { messages: messages.iter().map(message).collect(), notes: Vec::new() }
}

fn encode(format: WireFormat, head: RequestHead, view: &View) -> EncodedRequest {
    format.encode(&EncodedHead::new(head), view, &mut PrefixChain::default())
}

#[track_caller]
fn check(format: WireFormat, url: &str, mut front: Value, headers: &[(&str, &str)]) {
    let parameters = Parameters {
        stop_sequences: vec!["x".into()],
        betas: vec!["b1".into(), "b2".into()],
        ..Parameters::default()
    };
    let view = asks(&[(Role::User, vec![Block::text("hi")])]);
    let request = encode(format, head(parameters), &view);
    let body: Value = serde_json::from_slice(&request.body.to_bytes()).unwrap();
    for (name, value) in [
        ("max_tokens", json!(100)),
        ("stop_sequences", json!(["x"])),
        ("system", json!([{"type": "text", "text": "be kind"}])),
        (
            "tools",
            json!([{"name": "A", "description": "does it", "input_schema": {"type": "object"}}]),
        ),
        ("messages", json!([{"role": "user", "content": [{"type": "text", "text": "hi"}]}])),
    ] {
        front[name] = value;
    }
    assert_eq!(body, front);
    let sent: Vec<_> = request.headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    assert_eq!(sent, headers);
    assert_eq!(format.url("https://h/", "us.anthropic.m-v1:0", true), url);
}

// REQ: MDL-8
#[test]
fn each_provider_is_named_model_version_and_betas_where_it_looks() {
    check(
        WireFormat::AnthropicMessages,
        "https://h/v1/messages",
        json!({"model": "claude-opus-4-8", "stream": true}),
        &[("anthropic-beta", "b1,b2")],
    );
    check(
        WireFormat::BedrockInvoke,
        "https://h/model/us.anthropic.m-v1%3A0/invoke-with-response-stream",
        json!({"anthropic_version": "bedrock-2023-05-31", "anthropic_beta": ["b1", "b2"]}),
        &[],
    );
    check(
        WireFormat::VertexRawPredict,
        "https://h/publishers/anthropic/models/us.anthropic.m-v1%3A0:streamRawPredict",
        json!({"anthropic_version": "vertex-2023-10-16", "stream": true}),
        &[("anthropic-beta", "b1,b2")],
    );
    let url = |format: WireFormat| format.url("https://h", "m@1", false);
    assert_eq!(url(WireFormat::BedrockInvoke), "https://h/model/m@1/invoke");
    let raw = "https://h/publishers/anthropic/models/m@1:rawPredict";
    assert_eq!(url(WireFormat::VertexRawPredict), raw);
}

// REQ: MDL-8
#[test]
fn digest_tells_apart_what_only_the_address_and_the_headers_say() {
    let view = asks(&[(Role::User, vec![Block::text("hi")])]);
    for format in [WireFormat::BedrockInvoke, WireFormat::VertexRawPredict] {
        let digest = |head| encode(format, head, &view).digest;
        let plain = head(Parameters::default());
        assert_eq!(digest(plain.clone()), digest(plain.clone()));
        assert_ne!(
            digest(plain.clone()),
            digest(RequestHead { model: "n".into(), ..plain.clone() })
        );
        assert_ne!(digest(plain.clone()), digest(RequestHead { stream: false, ..plain.clone() }));
        let betas = Parameters { betas: vec!["b".into()], ..Parameters::default() };
        assert_ne!(digest(plain), digest(head(betas)));
    }
}

// REQ: MDL-8
#[test]
fn budget_is_left_out_of_a_loop_that_another_model_began() {
    let thinking = Some(Thinking::Enabled { budget_tokens: 1_024, display: None });
    let thinks = |messages: &[(Role, Vec<Block>)]| {
        let parameters = Parameters { thinking, ..Parameters::default() };
        let request = encode(WireFormat::AnthropicMessages, head(parameters), &asks(messages));
        serde_json::from_slice::<Value>(&request.body.to_bytes()).unwrap().get("thinking").is_some()
    };
    let ask = (Role::User, vec![Block::text("hi")]);
    let call = Block::tool_use(&"t".into(), &"A".into(), "{}");
    let results = (Role::User, vec![Block::tool_result(&"t".into(), "ok", false)]);
    let begun = (Role::Assistant, vec![Block::thinking("", Some("S")), call.clone()]);
    let foreign = (Role::Assistant, vec![call]);
    assert!(thinks(std::slice::from_ref(&ask)));
    assert!(thinks(&[ask.clone(), begun, results.clone()]));
    assert!(!thinks(&[ask.clone(), foreign.clone(), results.clone()]));
    let answer = (Role::Assistant, vec![Block::text("done")]);
    assert!(thinks(&[ask.clone(), foreign, results, answer, ask]));
}
