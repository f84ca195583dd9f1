//! Who may what: tokens, roles, hosts and origins, and that no tenant reaches what is another's.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{client::ask, rig::Rig};
use crate::support::scripted::{call, says};

/// What a row of the table sends, where the body matters.
fn body_of(route: &str) -> Option<Value> {
    match route {
        "POST /v1/sessions" => Some(json!({ "title": "theirs" })),
        "POST /v1/sessions/{id}/runs" => Some(json!({ "prompt": "hello" })),
        "POST /v1/approvals/{id}" => {
            Some(json!({ "allow": true, "digest": "0".repeat(64), "epoch": "0".repeat(64) }))
        }
        _ => None,
    }
}

/// What becomes of a request with the token of another tenant.
enum Fate {
    /// What is asked for is not there.
    Missing(&'static str),
    /// The answer holds nothing of the first tenant.
    Without,
    /// Another role is needed.
    Forbidden,
    /// Everybody may ask; it tells nothing.
    Open,
}

const TABLE: &[(&str, Fate)] = &[
    ("POST /v1/sessions", Fate::Without),
    ("GET /v1/sessions", Fate::Without),
    ("GET /v1/sessions/{id}", Fate::Missing("session_not_found")),
    ("DELETE /v1/sessions/{id}", Fate::Missing("session_not_found")),
    ("POST /v1/sessions/{id}/runs", Fate::Missing("session_not_found")),
    ("GET /v1/sessions/{id}/runs", Fate::Missing("session_not_found")),
    ("GET /v1/sessions/{id}/runs/{run}", Fate::Missing("session_not_found")),
    ("POST /v1/sessions/{id}/interrupt", Fate::Missing("session_not_found")),
    ("GET /v1/sessions/{id}/events", Fate::Missing("session_not_found")),
    ("GET /v1/sessions/{id}/turns", Fate::Missing("session_not_found")),
    ("GET /v1/sessions/{id}/turns/{number}", Fate::Missing("session_not_found")),
    ("GET /v1/sessions/{id}/transcript", Fate::Missing("session_not_found")),
    ("GET /v1/approvals", Fate::Without),
    ("POST /v1/approvals/{id}", Fate::Missing("approval_not_found")),
    ("GET /v1/tree", Fate::Without),
    ("GET /v1/tree/events", Fate::Without),
    ("GET /v1/me", Fate::Without),
    ("GET /healthz", Fate::Open),
    ("GET /readyz", Fate::Open),
    ("GET /metrics", Fate::Forbidden),
];

// REQ: SUR-5, RUN-4
#[tokio::test]
async fn tenant_sees_and_touches_nothing_of_another_on_any_route() {
    let input = json!({ "file_path": "new.txt", "content": "hello" });
    let rig = Rig::start(says(vec![call("c1", "Write", input)])).await;
    let session = rig.session(json!({ "title": "secret plan" })).await;
    let mut events = rig.stream(&format!("GET {session}/events"), &[], None).await;
    let run = rig.ask(&format!("POST {session}/runs"), Some(json!({ "prompt": "write" }))).await;
    events.until("permission_asked").await;
    let run = run.ok(202)["id"].as_str().unwrap().to_owned();
    let open = rig.ask("GET /v1/approvals", None).await.ok(200);
    let question = open["approvals"][0]["id"].as_str().unwrap().to_owned();
    let id = session.rsplit('/').next().unwrap().to_owned();

    let document = ask(&rig.address, "GET /openapi.json", &[], None).await.ok(200);
    let mut routes = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            routes.insert(format!("{} {path}", method.to_uppercase()));
        }
    }
    let rows: BTreeSet<String> = TABLE.iter().map(|it| it.0.to_owned()).collect();
    assert_eq!(routes, rows, "every route has a row");

    for (route, fate) in TABLE {
        let target = if route.contains("approvals") { &question } else { &id };
        let line = route.replace("{id}", target).replace("{run}", &run).replace("{number}", "1");
        if line.ends_with("/tree/events") {
            let bearer = format!("Bearer {}", rig.other);
            let headers = [("Authorization", &*bearer)];
            let mut stream = super::client::Stream::open(&rig.address, &line, &headers, None).await;
            assert_eq!(stream.next().await.unwrap()["actors"], json!([]));
            continue;
        }
        let reply = rig.ask_as(&rig.other, &line, body_of(route)).await;
        match fate {
            Fate::Missing(code) => assert_eq!(reply.code(), *code, "{line}"),
            Fate::Forbidden => assert_eq!(reply.code(), "forbidden", "{line}"),
            Fate::Without | Fate::Open => {
                assert!(reply.status < 300, "{line}: {reply:?}");
                for secret in [&*id, &*run, &*question, "secret plan", "acme"] {
                    assert!(!reply.text.contains(secret), "{line}: {reply:?}");
                }
            }
        }
        // And without a token there is nothing, but for what is open.
        let bare = ask(&rig.address, &line, &[], body_of(route).as_ref()).await;
        match fate {
            Fate::Open => assert_eq!(bare.status, 200),
            _ => assert_eq!(bare.code(), "unauthorized", "{line}"),
        }
    }
    let shown = rig.ask(&format!("GET {session}"), None).await.ok(200);
    assert_eq!((&shown["state"], &shown["queued"]), (&json!("waiting"), &json!(0)));
    let seen = rig.ask_as(&rig.admin, &format!("GET {session}"), None).await.ok(200);
    assert_eq!(seen["tenant"], "acme", "the operator sees all");
}

// REQ: SUR-5
#[tokio::test]
async fn request_for_another_host_or_from_a_page_of_another_is_refused() {
    let rig = Rig::start(says(vec![])).await;
    let line = "GET /v1/sessions";
    let bearer = format!("Bearer {}", rig.user);
    let with = async |more: (&str, &str)| {
        ask(&rig.address, line, &[("Authorization", &bearer), more], None).await
    };
    assert_eq!(with(("Host", "evil.example")).await.code(), "host_refused");
    assert_eq!(with(("Origin", "http://evil.example")).await.code(), "origin_refused");
    assert_eq!(with(("Origin", "null")).await.code(), "origin_refused");
    let origin = format!("http://{}", rig.address);
    assert_eq!(with(("Origin", &origin)).await.status, 200);
    let wrong = ask(&rig.address, line, &[("Authorization", "Bearer ennead_x")], None).await;
    assert_eq!(wrong.code(), "unauthorized");
    assert!(!wrong.text.contains("ennead_x"), "a token is not repeated");
}

// REQ: SUR-5
#[tokio::test]
async fn token_that_is_taken_away_lets_nobody_in_any_more() {
    let rig = Rig::start(says(vec![])).await;
    assert_eq!(rig.ask("GET /v1/sessions", None).await.status, 200);
    assert!(rig.server.tokens().remove("user").unwrap());
    assert_eq!(rig.ask("GET /v1/sessions", None).await.code(), "unauthorized");
    let file = std::fs::read_to_string(rig.server.tokens().path()).unwrap();
    assert!(!file.contains(&rig.viewer), "the file holds no token");
}

// REQ: SUR-5, RUN-7
#[tokio::test]
async fn hostile_requests_are_refused_with_a_code_and_the_server_lives() {
    let rig = Rig::start(says(vec![])).await;
    let session = rig.session(json!({})).await;
    for (line, body, code) in [
        ("POST /v1/sessions", json!({ "directory": "../globex" }), "bad_directory"),
        ("POST /v1/sessions", json!({ "directory": "/etc" }), "bad_directory"),
        ("POST /v1/sessions", json!({ "mode": "bypassPermissions" }), "bad_request"),
        ("POST /v1/sessions", json!({ "surprise": 1 }), "bad_request"),
        ("POST /v1/sessions", json!({ "title": "x".repeat(2_000_000) }), "body_too_large"),
        ("GET /v1/sessions/..%2f..%2fetc", json!({}), "session_not_found"),
        ("GET /v1/sessions/x/transcript", json!({}), "session_not_found"),
        ("GET /v1/nothing", json!({}), "not_found"),
        ("GET /v1/sessions/%ff", json!({}), "bad_request"),
        ("PUT /v1/sessions", json!({}), "method_not_allowed"),
    ] {
        let reply = rig.ask(line, Some(body)).await;
        assert_eq!(reply.code(), code, "{line}");
    }
    let line = format!("GET {session}/transcript?agent=..%2f..%2fx");
    assert_eq!(rig.ask(&line, None).await.code(), "bad_request");
    let line = format!("POST {session}/runs");
    assert_eq!(rig.ask(&line, Some(json!({ "prompt": " " }))).await.code(), "bad_request");
    assert_eq!(rig.ask_as(&rig.viewer, &line, None).await.code(), "forbidden");
    assert_eq!(rig.ask("GET /readyz", None).await.status, 200);
}
