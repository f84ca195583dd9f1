//! The server inside a program of somebody else: merged into a router that answers itself, and nested in one.

use axum::{Router, response::Html};
use ennead::serve::Server;
use serde_json::json;
use tokio::net::TcpListener;

use super::{client::ask, rig::Rig};
use crate::support::scripted::{says, text};

/// Serves a program's router on a port of its own.
async fn listen(server: &Server, router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = server.clone();
    tokio::spawn(async move { server.listen(listener, None, router).await.unwrap() });
    address
}

async fn of_program() -> Html<&'static str> {
    Html("the program's own")
}

// REQ: SUR-5
#[tokio::test]
async fn server_is_merged_into_a_router_that_answers_what_is_nowhere() {
    let rig = Rig::start(says(vec![])).await;
    let address =
        listen(&rig.server, Router::new().fallback(of_program).merge(rig.server.router())).await;
    let headers = [("Authorization", &*format!("Bearer {}", rig.user))];
    ask(&address, "GET /v1/sessions", &headers, None).await.ok(200);
    let nowhere = ask(&address, "GET /elsewhere", &[], None).await;
    assert_eq!((nowhere.status, &*nowhere.text), (200, "the program's own"));
    let method = ask(&address, "PUT /v1/sessions", &headers, None).await;
    assert_eq!(method.code(), "method_not_allowed");
    assert_eq!(rig.ask("GET /elsewhere", None).await.code(), "not_found", "by itself it refuses");
}

// REQ: SUR-5
#[tokio::test]
async fn server_that_is_nested_has_its_page_and_its_addresses_below_that_path() {
    let rig = Rig::start(says(vec![text("done")])).await;
    let app = Router::new().fallback(of_program).nest("/agents", rig.server.router());
    let address = listen(&rig.server, app).await;
    let page = ask(&address, "GET /agents", &[], None).await;
    assert!(page.text.contains("src=\"/agents/page/app.js\""), "{}", page.text);
    assert_eq!(ask(&address, "GET /agents/page/app.js", &[], None).await.status, 200);
    let headers = [("Authorization", &*format!("Bearer {}", rig.user)), ("Prefer", "wait=60")];
    let bare = ask(&address, "GET /agents/v1/sessions", &[], None).await;
    assert_eq!(bare.code(), "unauthorized");
    let made = ask(&address, "POST /agents/v1/sessions", &headers, Some(&json!({}))).await;
    let session = made.header("location").unwrap().to_owned();
    assert_eq!(session, format!("/agents/v1/sessions/{}", made.ok(201)["id"].as_str().unwrap()));
    let body = json!({ "prompt": "hello" });
    let run = ask(&address, &format!("POST {session}/runs"), &headers, Some(&body)).await;
    assert_eq!(run.ok(200)["outcome"]["text"], "done");
    let place = run.header("location").unwrap();
    ask(&address, &format!("GET {place}"), &headers, None).await.ok(200);
}
