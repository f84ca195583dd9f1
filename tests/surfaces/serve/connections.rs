//! Connections, streams and heads of requests: what one tenant leaves to others, and what is refused.

use serde_json::json;
use tokio::net::TcpStream;

use super::{client::ask, rig::Rig};
use crate::support::{
    scripted::{says, text},
    until::until,
};

// REQ: RUN-4, RUN-8
#[tokio::test]
async fn tenant_that_has_all_its_streams_is_refused_more_and_no_other_is() {
    let rig = Rig::start_with(says(vec![text("done")]), |it| it.max_streams(2)).await;
    let session = rig.session(json!({})).await;
    let events = format!("GET {session}/events");
    let first = rig.stream(&events, &[], None).await;
    let _tree = rig.stream("GET /v1/tree/events", &[], None).await;
    let refused = rig.ask(&events, None).await;
    assert_eq!((refused.status, refused.code().as_str()), (429, "stream_limit"));
    assert!(refused.header("retry-after").is_some());
    let line = format!("POST {session}/runs");
    let body = json!({ "prompt": "hello" });
    for header in [("Prefer", "wait=60"), ("Accept", "text/event-stream")] {
        let refused = rig.ask_with(&line, &[header], Some(body.clone())).await;
        assert_eq!(refused.code(), "stream_limit");
    }
    let runs = rig.ask(&format!("GET {session}/runs"), None).await.ok(200);
    assert_eq!(runs["runs"], json!([]), "a run that is refused is not begun");
    let transcript = rig.ask(&format!("GET {session}/transcript"), None).await;
    assert_eq!(transcript.code(), "stream_limit");
    rig.ask(&line, Some(body)).await.ok(202);

    let made = rig.ask_as(&rig.other, "POST /v1/sessions", Some(json!({}))).await.ok(201);
    let theirs = format!("GET /v1/sessions/{}/transcript", made["id"].as_str().unwrap());
    assert_eq!(rig.ask_as(&rig.other, &theirs, None).await.status, 200);
    drop(first);
    until("the place of one that left is free", async || {
        rig.ask(&format!("GET {session}/transcript"), None).await.status == 200
    })
    .await;
}

// REQ: RUN-4, RUN-8
#[tokio::test]
async fn tenant_leaves_readers_of_the_tree_to_others() {
    let rig = Rig::start(says(vec![])).await;
    let mut open = Vec::new();
    for _ in 0..16 {
        open.push(rig.stream("GET /v1/tree/events", &[], None).await);
    }
    assert_eq!(rig.ask("GET /v1/tree/events", None).await.code(), "stream_limit");
    let bearer = format!("Bearer {}", rig.other);
    let headers = [("Authorization", &*bearer)];
    let status = super::client::status(&rig.address, "GET /v1/tree/events", &headers).await;
    assert_eq!(status, 200);
}

// REQ: RUN-8, SUR-5
#[tokio::test]
async fn server_whose_connections_are_all_taken_says_so_and_is_seen_to_live() {
    let rig = Rig::start_with(says(vec![]), |it| it.max_connections(2)).await;
    let first = TcpStream::connect(&rig.address).await.unwrap();
    let _second = TcpStream::connect(&rig.address).await.unwrap();
    let refused = rig.ask("GET /v1/sessions", None).await;
    assert_eq!((refused.status, refused.code().as_str()), (503, "connection_limit"));
    assert!(refused.header("retry-after").is_some());
    for line in ["GET /healthz", "GET /readyz"] {
        assert_eq!(ask(&rig.address, line, &[], None).await.status, 200, "{line}");
    }
    let metrics = rig.ask_as(&rig.admin, "GET /metrics", None).await;
    let line = "ennead_refusals_total{code=\"connection_limit\"} 1";
    assert!(metrics.text.contains(line), "{}", metrics.text);
    drop(first);
    until("a place is free", async || rig.ask("GET /v1/sessions", None).await.status == 200).await;
}

// REQ: RUN-8
#[tokio::test]
async fn head_of_a_request_has_as_many_bytes_as_the_documents_say() {
    let rig = Rig::start(says(vec![])).await;
    let with = async |n: usize| {
        let long = "x".repeat(n);
        rig.ask_with("GET /v1/sessions", &[("X-Long", &long)], None).await
    };
    assert_eq!(with(31 * 1024).await.status, 200);
    let refused = with(32 * 1024).await;
    assert_eq!((refused.status, refused.code().as_str()), (431, "head_too_large"));
}
