//! An MCP server over HTTP on a loopback port, which may be as odd as a test wants.
//!
//! What it is asked it keeps. Unless a test answers in its place it greets, lists the tools `echo` and
//! `slow` and calls them, with JSON.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Body,
    extract::Request,
    http::{HeaderMap, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use ennead::tool::ServerConfig;
use ennead_runtime::mcp::config;
use futures::{Stream, StreamExt, stream};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::Notify, task::JoinHandle};

/// A request that the server received.
#[derive(Clone, Debug)]
pub(crate) struct McpRequest {
    pub(crate) verb: Method,
    pub(crate) headers: HeaderMap,
    /// Null where there is none.
    pub(crate) message: Value,
}

impl McpRequest {
    /// The method of the protocol.
    pub(crate) fn method(&self) -> &str {
        self.message["method"].as_str().unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|it| it.to_str().ok())
    }

    /// The answer to it with this result.
    pub(crate) fn answer(&self, result: Value) -> Value {
        json!({"jsonrpc": "2.0", "id": self.message["id"], "result": result})
    }

    /// The usual answer to a call; `None` for other requests.
    pub(crate) fn usual_call(&self) -> Option<Value> {
        (self.method() == "tools/call").then(|| self.usual())
    }

    /// What a usual server answers.
    pub(crate) fn usual(&self) -> Value {
        let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
        let result = match self.method() {
            "initialize" => json!({
                "protocolVersion": self.message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "odd", "version": "1"},
            }),
            "tools/list" => json!({"tools": [tool("echo"), tool("slow")]}),
            "tools/call" => {
                let text = format!("heard {}", self.message["params"]["arguments"]);
                json!({"content": [{"type": "text", "text": text}]})
            }
            other => panic!("an unusual method: {other}"),
        };
        self.answer(result)
    }
}

/// Answers in the place of the usual server; `None`: it does not. The number says how many requests came before.
pub(crate) type McpScript = dyn Fn(&McpRequest, usize) -> Option<Response> + Send + Sync;

/// See the module. Ends when it is dropped.
#[derive(Debug)]
pub(crate) struct McpHttp {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<McpRequest>>>,
    came: Arc<Notify>,
    serving: JoinHandle<()>,
}

impl McpHttp {
    /// Starts a server that answers everything as the protocol says.
    pub(crate) async fn usual() -> Self {
        Self::start(|_, _| None).await
    }

    pub(crate) async fn start(
        script: impl Fn(&McpRequest, usize) -> Option<Response> + Send + Sync + 'static,
    ) -> Self {
        Self::at("127.0.0.1:0", script).await
    }

    /// Serves at this address.
    pub(crate) async fn at(
        address: &str,
        script: impl Fn(&McpRequest, usize) -> Option<Response> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (asked, came) = (Arc::<Mutex<Vec<McpRequest>>>::default(), Arc::<Notify>::default());
        let (kept, bell, script) = (asked.clone(), came.clone(), Arc::new(script));
        let router = Router::new().fallback(move |request: Request| {
            let (kept, bell, script) = (kept.clone(), bell.clone(), script.clone());
            async move { reply(request, &kept, &bell, &*script).await }
        });
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, asked, came, serving }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// The server, as a session is configured with it. `fields` are of its entry.
    pub(crate) fn configured(&self, name: &str, kind: &str, fields: Value) -> ServerConfig {
        configured(name, kind, &self.url(), fields)
    }

    pub(crate) fn asked(&self) -> Vec<McpRequest> {
        self.asked.lock().unwrap().clone()
    }

    /// Waits for a request like this.
    pub(crate) async fn until(&self, is_it: impl Fn(&McpRequest) -> bool) -> McpRequest {
        loop {
            let came = self.came.notified();
            if let Some(found) = self.asked().into_iter().find(&is_it) {
                return found;
            }
            came.await;
        }
    }

    /// What is asked, by the methods of the protocol, or by those of HTTP where there are none.
    pub(crate) fn methods(&self) -> Vec<String> {
        let method = |it: &McpRequest| match it.method() {
            "" => it.verb.to_string(),
            method => method.to_owned(),
        };
        self.asked().iter().map(method).collect()
    }
}

impl Drop for McpHttp {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// A server at an address, as a session is configured with it.
pub(crate) fn configured(name: &str, kind: &str, url: &str, fields: Value) -> ServerConfig {
    let mut entry = json!({"type": kind, "url": url});
    entry.as_object_mut().unwrap().extend(fields.as_object().cloned().unwrap_or_default());
    let text = json!({"mcpServers": {name: entry}}).to_string();
    let environment = |it: &str| (it == "TOKEN").then(|| "t0ken".to_owned());
    let mut read = config::read(&text, &environment).unwrap();
    assert!(read.problems.is_empty(), "{:?}", read.problems);
    read.servers.remove(0)
}

async fn reply(
    request: Request,
    kept: &Mutex<Vec<McpRequest>>,
    bell: &Notify,
    script: &McpScript,
) -> Response {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let message = serde_json::from_slice(&body).unwrap_or_default();
    let asked = McpRequest { verb: head.method, headers: head.headers, message };
    let n_before = {
        let mut kept = kept.lock().unwrap();
        kept.push(asked.clone());
        kept.len() - 1
    };
    bell.notify_waiters();
    match script(&asked, n_before) {
        Some(response) => response,
        None if asked.verb != Method::POST => StatusCode::METHOD_NOT_ALLOWED.into_response(),
        None if asked.message["id"].is_null() || asked.method().is_empty() => accepted(),
        None => json(&asked.usual()),
    }
}

pub(crate) fn accepted() -> Response {
    StatusCode::ACCEPTED.into_response()
}

pub(crate) fn json(message: &Value) -> Response {
    typed("application/json", message.to_string())
}

pub(crate) fn typed(kind: &'static str, body: impl Into<Body>) -> Response {
    ([(header::CONTENT_TYPE, kind)], body.into()).into_response()
}

/// A stream of messages, that ends after them.
pub(crate) fn events(messages: &[Value]) -> Response {
    let event = |it: &Value| format!("event: message\ndata: {it}\n\n");
    typed("text/event-stream", messages.iter().map(event).collect::<String>())
}

/// A stream of these texts.
pub(crate) fn streamed(
    kind: &'static str,
    texts: impl Stream<Item = String> + Send + 'static,
) -> Response {
    typed(kind, Body::from_stream(texts.map(|it| Ok::<_, Infallible>(Bytes::from(it)))))
}

/// The same text without an end.
pub(crate) fn endless(kind: &'static str, begin: &str, text: &str) -> Response {
    let text = text.repeat(1 + (64 << 10) / text.len());
    let begin = begin.to_owned();
    streamed(kind, stream::once(async { begin }).chain(stream::repeat(text)))
}

/// A stream on which nothing comes.
pub(crate) fn silent(kind: &'static str) -> Response {
    streamed(kind, stream::pending())
}
