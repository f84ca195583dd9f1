//! Streams of events: from the request, from memory, from the transcript, and of the tree.

use serde_json::json;

use super::rig::Rig;
use crate::support::scripted::{apart, call, says, text};

// REQ: INP-3
#[tokio::test]
async fn run_is_streamed_up_to_its_outcome() {
    let rig = Rig::start(says(vec![text("hello there").in_pieces(3)])).await;
    let session = rig.session(json!({})).await;
    let body = json!({ "prompt": "hi" });
    let headers = [("Accept", "text/event-stream")];
    let mut stream = rig.stream(&format!("POST {session}/runs"), &headers, Some(body)).await;
    let (mut answer, mut last) = (String::new(), json!(null));
    while let Some(event) = stream.next().await {
        if event["type"] == "text_delta" {
            answer.push_str(event["text"].as_str().unwrap());
        }
        last = event;
    }
    assert_eq!(answer, "hello there");
    assert_eq!(
        (&last["type"], &last["run"]["outcome"]["text"]),
        (&json!("outcome"), &json!("hello there"))
    );
}

// REQ: INP-3
#[tokio::test]
async fn reader_that_comes_back_gets_what_followed_from_memory_and_after_a_restart_from_the_transcript()
 {
    let rig =
        Rig::start(says(vec![call("c1", "Glob", json!({ "pattern": "*" })), text("none")])).await;
    let session = rig.session(json!({})).await;
    let line = format!("GET {session}/events");
    let mut stream = rig.stream(&line, &[], None).await;
    rig.run(&session, "look").await;
    let mut ids = Vec::new();
    loop {
        let event = stream.next().await.unwrap();
        ids.push((stream.id.clone(), event["seq"].as_u64().unwrap()));
        if event["type"] == "run_finished" {
            break;
        }
    }
    let (third, last) = (ids[2].clone(), ids.last().unwrap().clone());
    for after in [third.0.clone(), third.1.to_string()] {
        let mut again = rig.stream(&line, &[("Last-Event-ID", &after)], None).await;
        for (id, seq) in &ids[3..] {
            assert_eq!(again.next().await.unwrap()["seq"], *seq);
            assert_eq!(again.id, *id);
        }
    }
    let Rig { server, directory, .. } = rig;
    server.shutdown().await;
    let rig = Rig::start_in(directory, says(vec![]), |it| it).await;
    let mut again = rig.stream(&line, &[("Last-Event-ID", &third.0)], None).await;
    let mut kinds = Vec::new();
    loop {
        let event = again.next().await.unwrap();
        assert_eq!(event["type"], "recorded");
        for record in apart(&event["line"].to_string()) {
            kinds.push(record["kind"].as_str().unwrap_or("message").to_owned());
        }
        if event["line"]["kind"] == "run_end" {
            break;
        }
    }
    for kind in ["model_attempt", "tool_intent", "tool_end", "message"] {
        assert!(kinds.iter().any(|it| it == kind), "{kind} of {kinds:?}");
    }
    // After the last one only what is new, and it has the same place in time.
    let mut again = rig.stream(&line, &[("Last-Event-ID", &last.0)], None).await;
    let run = rig.run(&session, "more").await;
    let started = again.until("run_started").await;
    assert_eq!(started["run"], run["id"]);
    let refused = rig.ask_with(&line, &[("Last-Event-ID", "x")], None).await;
    assert_eq!(refused.code(), "bad_request");
}

// REQ: RUN-5
#[tokio::test]
async fn tree_is_streamed_as_its_actors_come_and_go() {
    let rig =
        Rig::start(says(vec![call("c1", "Glob", json!({ "pattern": "*" })), text("none")])).await;
    let session = rig.session(json!({})).await;
    let mut stream = rig.stream("GET /v1/tree/events", &[], None).await;
    assert_eq!(stream.next().await.unwrap()["type"], "tree");
    rig.run(&session, "look").await;
    let (mut steps, mut started) = (Vec::new(), Vec::new());
    loop {
        let event = stream.next().await.unwrap();
        let actor = &event["actor"];
        match event["type"].as_str().unwrap() {
            "actor_started" => started.push(actor["kind"].as_str().unwrap().to_owned()),
            "actor_changed" => steps.push(actor["step"].as_str().unwrap().to_owned()),
            _ if actor["kind"] == "turn_supervisor" && 9 < steps.len() => break,
            _ => {}
        }
    }
    assert_eq!(steps[..3], ["settings_resolution", "state_initialization", "context_assembly"]);
    for kind in ["session", "turn_supervisor", "model_call", "tool_executor"] {
        assert!(started.iter().any(|it| it == kind), "{kind} of {started:?}");
    }
    let tree = rig.ask("GET /v1/tree", None).await.ok(200);
    let actors = tree["actors"].as_array().unwrap();
    let of_session = actors.iter().find(|it| it["kind"] == "session").unwrap();
    assert_eq!(of_session["mailbox"]["depth"], 0, "{of_session}");
    assert!(of_session["parent"].is_string() && of_session["since"].as_u64() > Some(0));
    assert!(!actors.iter().any(|it| it["kind"] == "shard"), "that is the operator's");
    let all = rig.ask_as(&rig.admin, "GET /v1/tree", None).await.ok(200);
    assert!(all["actors"].as_array().unwrap().iter().any(|it| it["kind"] == "shard"));
}
