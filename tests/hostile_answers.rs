//! Answers that are made to cost: from the socket to the tool, and back out of the transcript.
//!
//! Work must be linear in what comes. That cannot be timed on a machine that others use, so each answer
//! is so long that a step for every pair of its bytes, events or blocks would take hours, and the test
//! ends after two minutes. Meanwhile another session on the same thread answers prompt after prompt.

use std::{sync::Arc, time::Duration};

use ennead::{
    Endpoint, Ennead, Options, Placement, RunEnd, SessionHandle, SessionOptions,
    settings::Durability,
    tool::{Access, CustomTool, ToolOutcome},
};
use ennead_runtime::transcript::replay::replay;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::support::{
    model_server::{ModelServer, Reply, letting_through},
    record,
};

/// Nothing that is linear takes as long.
const HANGS: Duration = Duration::from_secs(120);

/// Brackets, commas, escapes.
const MANY: usize = 600_000;

fn event(kind: &str, fields: Value) -> String {
    let mut event = json!({ "type": kind });
    event.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    format!("event: {kind}\ndata: {event}\n\n")
}

/// A message of these blocks, each with the deltas of its input or text.
fn message(blocks: impl Iterator<Item = (Value, Vec<Value>)>) -> String {
    let start = json!({"message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
        "content": [], "stop_reason": null, "usage": {"input_tokens": 1, "output_tokens": 1}}});
    let mut events = event("message_start", start);
    for (index, (block, deltas)) in blocks.enumerate() {
        events += &event("content_block_start", json!({"index": index, "content_block": block}));
        for delta in deltas {
            events += &event("content_block_delta", json!({"index": index, "delta": delta}));
        }
        events += &event("content_block_stop", json!({"index": index}));
    }
    events += &event("message_delta", json!({"delta": {"stop_reason": "tool_use"}, "usage": {}}));
    events + &event("message_stop", json!({}))
}

fn call(number: usize, pieces: &[&str]) -> (Value, Vec<Value>) {
    let block =
        json!({"type": "tool_use", "id": format!("toolu_{number}x"), "name": "echo", "input": {}});
    let delta = |it: &&str| json!({"type": "input_json_delta", "partial_json": it});
    (block, pieces.iter().map(delta).collect())
}

fn one_call(pieces: &[&str]) -> String {
    message([call(1, pieces)].into_iter())
}

async fn open(
    ennead: &Ennead,
    place: &TempDir,
    server: &ModelServer,
    prompt: &str,
) -> SessionHandle {
    let echo =
        CustomTool::raw("echo", "Measures.", r#"{"type":"object"}"#, |input, _| async move {
            ToolOutcome::ok(format!("{} bytes", input.len()))
        });
    let hook = json!([{"hooks": [{"type": "command", "command": "cat > /dev/null"}]}]);
    let options = SessionOptions {
        home: Some(place.path().to_owned()),
        tools: vec![Arc::new(echo.access(Access::Free).build().unwrap())],
        ..SessionOptions::new(place.path(), Endpoint::messages(server.address(), None)).isolated()
    };
    let options = options.model(prompt).durability(Durability::Process);
    let options = options.setting("hooks", json!({ "PreToolUse": hook }));
    // What comes fits the window, so nothing is summed up.
    let facts = json!({ "models": { "hostile": { "window": 100_000_000 } } });
    let options = options.own_setting("catalogue", facts);
    ennead.open(options).await.unwrap()
}

/// Sends this answer. The run ends well; what the model asked for was run, or refused with a reason.
async fn check(answer: String) {
    check_ends(answer, (RunEnd::NoPendingTools, "done"), 2).await;
}

/// The same, with how it ends after how many turns.
async fn check_ends(answer: String, end: (RunEnd, &str), n_turns: u64) {
    let server = ModelServer::start(move |ask| match ask.model() {
        "hostile" if !ask.body.contains("tool_result") => Reply::events(answer.clone()),
        _ => Reply::text("done"),
    })
    .await;
    let place = TempDir::new().unwrap();
    let options = Options {
        placement: Placement::Threads(1),
        governor: letting_through(),
        ..Options::default()
    };
    let ennead = Ennead::start(options).await.unwrap();
    let hostile = open(&ennead, &place, &server, "hostile").await;
    let other = open(&ennead, &place, &server, "other").await;
    let run = async {
        let mut run = std::pin::pin!(hostile.prompt("go"));
        loop {
            tokio::select! {
                outcome = &mut run => break outcome.unwrap(),
                outcome = other.prompt("go") => {
                    assert_eq!(outcome.unwrap().end, RunEnd::NoPendingTools);
                }
            }
        }
    };
    let outcome = timeout(HANGS, run).await.expect("the run hangs");
    assert_eq!((outcome.end, outcome.text.as_str()), end);
    hostile.close().await;
    let transcript = hostile.transcript().to_owned();
    let again = tokio::task::spawn_blocking(move || {
        record::verified(&transcript);
        let stored = transcript.with_extension("");
        let stored =
            |digest| std::fs::read_to_string(stored.join(format!("stored/{digest}.txt"))).ok();
        replay(&std::fs::read(&transcript).unwrap(), &stored).unwrap().turns
    });
    assert_eq!(timeout(HANGS, again).await.expect("the replay hangs").unwrap(), n_turns);
    ennead.shutdown().await;
}

// REQ: MDL-1, MDL-2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deeply_nested_input_is_refused_in_linear_time() {
    check(one_call(&["{\"a\":", &"[".repeat(MANY / 2), &"]".repeat(MANY / 2), "}"])).await;
    check(one_call(&[&"{\"a\":[".repeat(MANY / 4), &"]}".repeat(MANY / 4)])).await;
}

// REQ: MDL-1, MDL-2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_commas_and_long_escapes_cost_linear_time() {
    check(one_call(&["{\"a\":[", &"1,".repeat(MANY), "1]}"])).await;
    check(one_call(&["{\"a\":\"", &"\\u00e9\\\\\\\"".repeat(MANY / 4), "\"}"])).await;
}

// REQ: MDL-1, MDL-2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_tiny_deltas_cost_linear_time() {
    let mut pieces = vec!["{\"a\":["];
    pieces.extend(["1", ","].repeat(50_000));
    pieces.push("1]}");
    check(one_call(&pieces)).await;
}

// REQ: MDL-1, MDL-2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_blocks_and_many_calls_cost_linear_time() {
    let text = |n: usize| (json!({"type": "text", "text": format!("{n}")}), Vec::new());
    check(message((0..4_000).map(text).chain([call(1, &["{}"])]))).await;
    // Nearly all are refused as too many, which is an end of its own.
    let calls = message((0..4_000).map(|n| call(n, &["{\"n\":1}"])));
    check_ends(calls, (RunEnd::NoProgress, ""), 1).await;
}
