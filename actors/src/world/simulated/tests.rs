//! The transport in process, and the playbooks that come with ennead.
//!
//! Built under `#[cfg(test)]` only.

mod survey;

use serde_json::{Value, json};

use super::*;

const STORY: &str = r#"
[[rule]]
name = "broken"
times = 1
when.prompt = "reset"
reply = [{ text = "Hello" }]
fault = { action = "reset", at = 10 }
[[rule]]
name = "stalled"
when.prompt = "stall"
reply = [{ text = "Hello" }]
fault = { action = "stall", at = 10 }
[[rule]]
name = "slow"
reply = [{ text = "Hello" }]
pace = { head_ms = 1000, first_ms = 2000, between_ms = 500, cut = [100] }
"#;

fn simulator(text: &str) -> Arc<Simulator> {
    Simulator::new(Playbook::parse(text, "test").unwrap())
}

fn request(prompt: &str) -> WireRequest {
    let body = json!({"model": "m", "max_tokens": 9, "stream": true, "messages": [{"role": "user", "content": prompt}]});
    let url = "http://localhost:1/v1/messages?beta=true";
    WireRequest::new(url, Vec::new(), body.to_string(), std::time::Duration::MAX)
}

async fn read(mut response: WireResponse) -> (Vec<usize>, Result<(), TransportError>) {
    let mut sizes = Vec::new();
    loop {
        match response.body.try_next().await {
            Ok(Some(bytes)) => sizes.push(bytes.len()),
            Ok(None) => return (sizes, Ok(())),
            Err(error) => return (sizes, Err(error)),
        }
    }
}

// REQ: MDL-11
#[tokio::test(start_paused = true)]
async fn delays_take_the_time_they_are_given() {
    let transport = SimulatedTransport::new(simulator(STORY));
    let start = tokio::time::Instant::now();
    let response = transport.send(request("hi")).await.unwrap();
    assert_eq!(start.elapsed().as_millis(), 1000);
    let (sizes, end) = read(response).await;
    assert_eq!(end, Ok(()));
    assert_eq!(start.elapsed().as_millis(), 3000 + 500 * (sizes.len() as u128 - 1));
}

// REQ: MDL-11
#[tokio::test(start_paused = true)]
async fn a_reset_breaks_the_body_and_passes_with_the_next_attempt() {
    let transport = SimulatedTransport::new(simulator(STORY));
    let (sizes, end) = read(transport.send(request("reset")).await.unwrap()).await;
    assert_eq!(sizes, [10]);
    assert!(matches!(end, Err(TransportError::Broken { .. })));
    let (_, end) = read(transport.send(request("reset")).await.unwrap()).await;
    assert_eq!(end, Ok(()));
    let log = transport.simulator.log();
    let rules: Vec<_> = log.requests.iter().filter_map(|request| request.rule.as_deref()).collect();
    assert_eq!((log.n_requests, rules), (2, vec!["broken", "slow"]));
    assert_eq!(log.requests[0].digest, log.requests[1].digest);
    assert_eq!(log.requests[0].path, "/v1/messages");
}

// REQ: MDL-11
#[tokio::test(start_paused = true)]
async fn a_stall_lasts_and_a_reader_may_ask_again() {
    let transport = SimulatedTransport::new(simulator(STORY));
    let mut response = transport.send(request("stall")).await.unwrap();
    assert_eq!(response.body.try_next().await.unwrap().map(|bytes| bytes.len()), Some(10));
    for _ in 0..2 {
        let waited =
            tokio::time::timeout(Duration::from_secs(3600), response.body.try_next()).await;
        assert!(waited.is_err());
    }
    let mut response = transport.send(request("slow")).await.unwrap();
    let early = tokio::time::timeout(Duration::from_millis(1), response.body.try_next()).await;
    assert!(early.is_err());
    assert_eq!(response.body.try_next().await.unwrap().map(|bytes| bytes.len()), Some(100));
}

#[test]
fn the_path_of_a_url_is_found() {
    for (url, path) in [
        ("http://h/v1/messages", "/v1/messages"),
        ("http://h:1/a/v1/messages?x=/y#z", "/a/v1/messages"),
        ("sim://h", "/"),
        ("/v1", "/v1"),
    ] {
        assert_eq!(path_of(url), path, "{url}");
    }
}

/// Asks a simulator and gives the message it answers; not streamed.
fn ask(simulator: &Simulator, messages: &[Value], tools: &[&str]) -> Value {
    let tools: Vec<Value> = tools
        .iter()
        .map(|name| json!({"name": name, "input_schema": {"type": "object"}}))
        .collect();
    let body = json!({"model": "m", "max_tokens": 9, "messages": messages, "tools": tools});
    let body = body.to_string();
    let script = simulator.answer(&Exchange {
        method: "POST",
        path: "/v1/messages",
        headers: &[],
        body: body.as_bytes(),
    });
    let answer: Vec<u8> = script.pieces.iter().flat_map(|piece| piece.bytes.to_vec()).collect();
    let answer = String::from_utf8(answer).unwrap();
    assert_eq!(script.status, 200, "{answer}");
    serde_json::from_str(&answer).unwrap()
}

fn text_of(message: &Value) -> String {
    let blocks = message["content"].as_array().unwrap().iter();
    blocks.filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
}

// REQ: MDL-11
#[test]
fn every_playbook_that_comes_with_ennead_can_be_read() {
    for (name, _) in EMBEDDED {
        let playbook = embedded(name).unwrap().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(playbook.name(), name);
    }
    assert!(embedded("other").is_none());
}

// REQ: MDL-11
#[test]
fn the_default_playbook_says_what_it_is_and_answers_plain_prompts() {
    let simulator = Simulator::new(embedded("default").unwrap().unwrap());
    for (prompt, part) in [
        ("hello", "Hello!"),
        ("Why is the sky blue?", "prompt of 5 words"),
        ("What is 17 + 25?", "42"),
        ("6*7", "42"),
        ("Ignore\nthis", "> Ignore\n> this"),
    ] {
        let text = text_of(&ask(&simulator, &[json!({"role": "user", "content": prompt})], &[]));
        assert!(text.contains("simulated model of ennead"), "{text}");
        assert!(text.contains(part), "{text}");
    }
}

// REQ: MDL-11
#[test]
fn the_default_playbook_uses_tools_when_asked() {
    let simulator = Simulator::new(embedded("default").unwrap().unwrap());
    for (prompt, name, input) in [
        ("read /a/b.rs", "Read", json!({"file_path": "/a/b.rs"})),
        ("Please read the file `b.rs`.", "Read", json!({"file_path": "b.rs"})),
        ("search for f(x)", "Grep", json!({"pattern": "f\\(x\\)", "output_mode": "count"})),
        ("list files", "Glob", json!({"pattern": "**/*"})),
    ] {
        let ask_for = json!({"role": "user", "content": prompt});
        let tools = ["Read", "Grep", "Glob"];
        let call = ask(&simulator, std::slice::from_ref(&ask_for), &tools);
        assert_eq!(call["content"][1]["name"], name, "{call}");
        assert_eq!(call["content"][1]["input"], input);
        let result = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": call["content"][1]["id"], "content": "one\ntwo"}]});
        let answer = json!({"role": "assistant", "content": call["content"]});
        let text = text_of(&ask(&simulator, &[ask_for, answer, result], &tools));
        assert!(text.contains(&format!("{name} answered with 2 lines:\n\none\ntwo")), "{text}");
    }
}
