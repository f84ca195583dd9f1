//! Servers of the older transport over HTTP, whose messages come on one stream.

use std::sync::{Arc, Mutex};

use axum::{http::Method, response::Response};
use ennead::SessionHandle;
use ennead_runtime::mcp::state::ServerState;
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::timeout};

use super::{only_result, pauses, start, starts::LIMIT};
use crate::support::{
    host::{Host, check_usable},
    mcp_http::{McpHttp, McpRequest, accepted, streamed},
};

type MessageStream = Arc<Mutex<Option<mpsc::UnboundedSender<String>>>>;

/// Opens the stream, whose first event names this address for messages.
fn opened(stream: &MessageStream, endpoint: &str) -> Response {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    *stream.lock().unwrap() = Some(sender);
    let first = format!("event: endpoint\ndata: {endpoint}\n\n");
    let rest = stream::poll_fn(move |cx| receiver.poll_recv(cx));
    streamed("text/event-stream", stream::once(async { first }).chain(rest))
}

fn send(stream: &MessageStream, message: &Value) {
    let event = format!("event: message\ndata: {message}\n\n");
    // A stream that has no reader any more takes nothing.
    let _gone = stream.lock().unwrap().as_ref().map(|it| it.send(event));
}

/// A server whose calls are answered so.
async fn server(
    endpoint: &str,
    call: impl Fn(&MessageStream, &McpRequest) + Send + Sync + 'static,
) -> (McpHttp, MessageStream) {
    let (stream, endpoint) = (MessageStream::default(), endpoint.to_owned());
    let kept = stream.clone();
    let server = McpHttp::start(move |asked, _| {
        if asked.verb == Method::GET {
            return Some(opened(&stream, &endpoint));
        }
        match asked.method() {
            "tools/call" => call(&stream, asked),
            _ if asked.message["id"].is_null() => {}
            _ => send(&stream, &asked.usual()),
        }
        Some(accepted())
    })
    .await;
    (server, kept)
}

async fn open(server: &McpHttp) -> (Host, SessionHandle) {
    let host = start(&pauses()).await;
    let options = host.options().mcp_server(server.configured("srv", "sse", json!({})));
    let session = timeout(LIMIT, host.ennead.open(options)).await.unwrap().unwrap();
    (host, session)
}

async fn echo(session: &SessionHandle) -> (bool, String) {
    let run = timeout(LIMIT, session.prompt("use mcp__srv__echo")).await;
    only_result(&run.unwrap().unwrap())
}

// REQ: TOL-11
#[tokio::test]
async fn tools_of_a_server_with_one_stream_are_called() {
    let (server, _) = server("/messages?s=1", |stream, asked| send(stream, &asked.usual())).await;
    let (_host, session) = open(&server).await;
    assert_eq!(session.mcp_servers()[0].state, ServerState::Connected);
    let heard = r#"heard {"name":"0","path":"file"}"#;
    assert_eq!(echo(&session).await, (false, heard.to_owned()));
    assert_eq!(server.methods()[..2], ["GET", "initialize"]);
    check_usable(&session).await;
}

// REQ: TOL-11
#[tokio::test]
async fn server_that_names_another_origin_for_messages_is_refused() {
    let other = McpHttp::usual().await;
    let (server, _) = server(&other.url(), |_, _| {}).await;
    let (_host, session) = open(&server).await;
    let found = session.mcp_servers().remove(0);
    assert_eq!(found.state, ServerState::Failed);
    assert!(found.error.unwrap().contains("not its own"));
    assert!(other.asked().is_empty());
}

// REQ: TOL-11
#[tokio::test]
async fn stream_that_ends_fails_the_calls_under_way_and_is_opened_again() {
    let is_first = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let (server, _) = server("/messages", move |stream, asked| {
        if is_first.swap(false, std::sync::atomic::Ordering::SeqCst) {
            *stream.lock().unwrap() = None;
        } else {
            send(stream, &asked.usual());
        }
    })
    .await;
    let (_host, session) = open(&server).await;
    let (is_error, text) = echo(&session).await;
    assert!(is_error && text.contains("ended during the call"), "{text}");
    assert!(!echo(&session).await.0);
    assert_eq!(server.methods().iter().filter(|it| *it == "GET").count(), 2);
}
