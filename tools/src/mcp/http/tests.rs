//! Built under `#[cfg(test)]` only.

use std::{sync::Mutex, time::Duration};

use ennead_runtime::{
    mcp::config,
    ports::{TransportError, WireRequest, WireResponse},
};
use futures::stream;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::mcp::{CallError, ConnectError, Connection, ServerLaunch, connect};

/// How a request ends.
#[derive(Clone, Copy, Debug)]
enum End {
    /// With the usual answer.
    Usual,
    /// Never: no head comes.
    NoHead,
    /// The head comes, and a piece of the body.
    HalfBody,
    /// The connection is refused.
    NoConnection,
}

/// A server without a socket. Requests of this method end so.
#[derive(Debug)]
struct Fake {
    method: &'static str,
    end: End,
    kind: &'static str,
    asked: Mutex<Vec<String>>,
}

impl ennead_runtime::ports::Transport for Fake {
    fn send(
        &self,
        request: WireRequest,
    ) -> BoxFuture<'static, Result<WireResponse, TransportError>> {
        let message: Value = serde_json::from_slice(&request.body.to_bytes()).unwrap_or_default();
        let method = message["method"].as_str().unwrap_or(request.method.as_str()).to_owned();
        self.asked.lock().unwrap().push(method.clone());
        let end = if method == self.method { self.end } else { End::Usual };
        let mut headers = http::HeaderMap::new();
        headers.insert("content-type", self.kind.parse().unwrap());
        let result = match &*method {
            "initialize" => json!({
                "protocolVersion": message["params"]["protocolVersion"], "capabilities": {},
                "serverInfo": {"name": "fake", "version": "1"},
            }),
            "tools/list" => json!({"tools": []}),
            _ => json!({"content": [{"type": "text", "text": "done"}]}),
        };
        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
        Box::pin(async move {
            let pieces: ennead_runtime::ports::ResponseBody = match end {
                End::NoHead => std::future::pending().await,
                End::NoConnection => {
                    let (url, why) = ("http://x".to_owned(), "refused".to_owned());
                    return Err(TransportError::Connect { url, why });
                }
                End::HalfBody => {
                    let half = Bytes::from_static(b"{\"jsonrpc\":");
                    Box::pin(stream::iter([Ok(half)]).chain(stream::pending()))
                }
                End::Usual => Box::pin(stream::iter([Ok(Bytes::from(answer))])),
            };
            Ok(WireResponse::new(200, headers, pieces))
        })
    }
}

fn fake(method: &'static str, end: End, kind: &'static str) -> Arc<Fake> {
    Arc::new(Fake { method, end, kind, asked: Mutex::default() })
}

async fn connected(fake: &Arc<Fake>, entry: Value) -> Result<Connection, ConnectError> {
    let text = json!({"mcpServers": {"s": entry}}).to_string();
    let config = config::read(&text, &|_| None).unwrap().servers.remove(0);
    let launch =
        ServerLaunch { config, workspace: "/".into(), withheld: Vec::new(), confine: None };
    let http = Some(Arc::clone(fake) as Arc<dyn ennead_runtime::ports::Transport>);
    connect(&launch, http, WorkGuard::new(())).await.map(|(connection, _)| connection)
}

fn entry() -> Value {
    json!({"type": "http", "url": "http://x/mcp"})
}

async fn call(connection: &Connection) -> Result<String, CallError> {
    let never = std::future::pending();
    let result = connection.caller().call("t".into(), Default::default(), None, never).await;
    result.unwrap().map(|it| format!("{:?}", it.content))
}

/// A call fails for this reason after this time, and the next one does not wait for it.
#[track_caller]
fn check_call(end: End, entry: Value, why: &str, seconds: u64) -> impl Future<Output = ()> {
    let why = format!("MCP server `s` failed: {why}");
    async move {
        let fake = fake("tools/call", end, "application/json");
        let connection = connected(&fake, entry).await.unwrap();
        let begun = Instant::now();
        let error = call(&connection).await.unwrap_err();
        assert_eq!(error, CallError::Refused(why));
        assert_eq!(begun.elapsed().as_secs(), seconds);
        connection.close().await;
    }
}

// REQ: TOL-11
#[tokio::test(start_paused = true)]
async fn answer_that_does_not_begin_or_stops_fails_its_call_when_its_time_is_over() {
    check_call(End::NoHead, entry(), "no answer began within 60 s", 60).await;
    check_call(End::HalfBody, entry(), "its answer stopped for 300 s", 300).await;
    let entry = |ms: u32| json!({"type": "http", "url": "http://x/mcp", "timeout": ms});
    check_call(End::NoHead, entry(1000), "no answer began within 60 s", 60).await;
    check_call(End::NoHead, entry(90_000), "no answer began within 90 s", 90).await;
}

// REQ: TOL-11
#[tokio::test(start_paused = true)]
async fn server_without_an_end_of_its_greeting_is_given_up() {
    for (end, seconds) in [(End::NoHead, 60), (End::HalfBody, 300)] {
        let fake = fake("initialize", end, "text/event-stream");
        let begun = Instant::now();
        let error = connected(&fake, entry()).await.unwrap_err();
        assert!(matches!(error, ConnectError::Http { is_transient: false, .. }), "{error}");
        assert_eq!(begun.elapsed().as_secs(), seconds);
    }
}

// REQ: TOL-11
#[tokio::test(start_paused = true)]
async fn call_without_a_connection_ends_the_connection_after_its_answer() {
    let fake = fake("tools/call", End::NoConnection, "application/json");
    let mut connection = connected(&fake, entry()).await.unwrap();
    let error = call(&connection).await.unwrap_err();
    assert!(error.to_string().contains("cannot connect to http://x: refused"), "{error}");
    let why = tokio::time::timeout(Duration::from_secs(9), connection.wait_for_end()).await;
    assert_eq!(why.unwrap(), "cannot connect to http://x: refused");
    assert!(!connection.needs_auth());
}

// REQ: TOL-11
#[tokio::test(start_paused = true)]
async fn call_that_is_given_up_is_cancelled_and_its_exchange_closed() {
    let fake = fake("tools/call", End::NoHead, "application/json");
    let connection = connected(&fake, entry()).await.unwrap();
    let given_up = tokio::time::sleep(Duration::from_secs(1));
    let result = connection.caller().call("t".into(), Default::default(), None, given_up).await;
    assert!(result.is_none());
    let notified = async {
        while !fake.asked.lock().unwrap().iter().any(|it| it == "notifications/cancelled") {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(9), notified).await.unwrap();
    connection.close().await;
}

// REQ: TOL-11
#[tokio::test(start_paused = true)]
async fn without_an_http_client_there_is_no_connection() {
    let text = json!({"mcpServers": {"s": entry()}}).to_string();
    let config = config::read(&text, &|_| None).unwrap().servers.remove(0);
    let launch =
        ServerLaunch { config, workspace: "/".into(), withheld: Vec::new(), confine: None };
    let error = connect(&launch, None, WorkGuard::new(())).await.unwrap_err();
    assert!(matches!(error, ConnectError::HttpLeftOut), "{error}");
}
