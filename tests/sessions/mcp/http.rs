//! Servers that are reached over HTTP.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    http::{Method, StatusCode, header},
    response::IntoResponse,
};
use ennead::{SessionHandle, permission::Trust, tool::ServerConfig};
use ennead_runtime::mcp::state::ServerState;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{only_result, pauses, start, starts::LIMIT};
use crate::support::{
    host::{Host, check_usable},
    mcp_http::{McpHttp, McpRequest, accepted, configured, endless, events, json, silent, typed},
};

const HEARD: &str = r#"heard {"name":"0","path":"file"}"#;

async fn open(host: &Host, server: ServerConfig) -> SessionHandle {
    timeout(LIMIT, host.ennead.open(host.options().mcp_server(server))).await.unwrap().unwrap()
}

/// A host, and a session with this server, which is called `srv`.
async fn with(server: &McpHttp, kind: &str) -> (Host, SessionHandle) {
    let host = start(&pauses()).await;
    let session = open(&host, server.configured("srv", kind, json!({}))).await;
    (host, session)
}

async fn echo(session: &SessionHandle) -> (bool, String) {
    let run = timeout(LIMIT, session.prompt("use mcp__srv__echo")).await;
    only_result(&run.unwrap().unwrap())
}

fn state(session: &SessionHandle) -> (ServerState, String) {
    let server = session.mcp_servers().remove(0);
    (server.state, server.error.unwrap_or_default().to_string())
}

async fn reconnected(session: &SessionHandle) -> ServerState {
    timeout(LIMIT, session.reconnect_server("srv")).await.unwrap().unwrap().state
}

/// The session of a request at a server that has sessions.
fn with_session(mut response: axum::response::Response, id: &str) -> axum::response::Response {
    response.headers_mut().insert("mcp-session-id", id.parse().unwrap());
    response
}

// REQ: TOL-11
#[tokio::test]
async fn tools_over_http_are_called_in_one_session_which_is_ended() {
    let server = McpHttp::start(|asked, _| match asked.method() {
        "initialize" => Some(with_session(json(&asked.usual()), "s1")),
        _ => None,
    })
    .await;
    let host = start(&pauses()).await;
    let headers = json!({"headers": {
        "Authorization": "Bearer ${TOKEN}", "Accept": "text/html", "Mcp-Session-Id": "mine",
    }});
    let session = open(&host, server.configured("srv", "streamable-http", headers)).await;
    assert_eq!(state(&session), (ServerState::Connected, String::new()));
    assert_eq!(*session.mcp_servers()[0].tools, ["mcp__srv__echo", "mcp__srv__slow"]);
    assert_eq!(echo(&session).await, (false, HEARD.to_owned()));
    check_usable(&session).await;
    host.ennead.shutdown().await;
    timeout(LIMIT, server.until(|it| it.verb == Method::DELETE)).await.unwrap();
    let methods = ["initialize", "notifications/initialized", "tools/list", "tools/call", "DELETE"];
    assert_eq!(server.methods(), methods);
    for asked in server.asked() {
        let is_first = asked.method() == "initialize";
        assert_eq!(asked.header("authorization"), Some("Bearer t0ken"));
        assert_eq!(asked.header("mcp-session-id"), (!is_first).then_some("s1"));
        assert_eq!(asked.header("mcp-protocol-version").is_some(), !is_first);
        if asked.verb == Method::POST {
            assert_eq!(asked.header("accept"), Some("application/json, text/event-stream"));
        }
    }
}

// REQ: TOL-11
#[tokio::test]
async fn answers_may_be_events_with_progress_and_questions_before_them() {
    let server = McpHttp::start(|asked, _| match asked.method() {
        "" | "notifications/initialized" => None,
        "tools/call" => {
            let token = &asked.message["params"]["_meta"]["progressToken"];
            let progress = |n: u32| {
                json!({"jsonrpc": "2.0", "method": "notifications/progress",
                    "params": {"progressToken": token, "progress": n}})
            };
            let ping = json!({"jsonrpc": "2.0", "id": "p", "method": "ping"});
            let odd = json!({"jsonrpc": "2.0", "id": 99, "result": 1});
            Some(events(&[progress(1), progress(2), ping, odd, asked.usual()]))
        }
        _ => Some(events(&[asked.usual()])),
    })
    .await;
    let (_host, session) = with(&server, "http").await;
    assert_eq!(echo(&session).await, (false, HEARD.to_owned()));
    let is_answer = |it: &McpRequest| it.message["id"] == "p" && it.message["result"].is_object();
    timeout(LIMIT, server.until(is_answer)).await.unwrap();
    check_usable(&session).await;
}

// REQ: TOL-11
#[tokio::test]
async fn session_that_the_server_forgot_is_opened_again_once_and_the_call_repeated() {
    for forgets_always in [false, true] {
        let n_opened = Arc::new(AtomicUsize::new(0));
        let opened = n_opened.clone();
        let server = McpHttp::start(move |asked, _| match asked.method() {
            "initialize" => {
                let id = format!("s{}", opened.fetch_add(1, Ordering::SeqCst) + 1);
                Some(with_session(json(&asked.usual()), &id))
            }
            "tools/call" if forgets_always || asked.header("mcp-session-id") == Some("s1") => {
                Some(StatusCode::NOT_FOUND.into_response())
            }
            _ => None,
        })
        .await;
        let (_host, session) = with(&server, "http").await;
        let (is_error, text) = echo(&session).await;
        let calls = server.asked().into_iter().filter(|it| it.method() == "tools/call");
        let calls: Vec<_> =
            calls.map(|it| it.header("mcp-session-id").map(str::to_owned)).collect();
        assert_eq!(calls, [Some("s1".to_owned()), Some("s2".to_owned())]);
        if forgets_always {
            assert!(is_error && text.contains("HTTP status 404"), "{text}");
        } else {
            assert_eq!((is_error, text), (false, HEARD.to_owned()));
            assert_eq!(n_opened.load(Ordering::SeqCst), 2);
        }
    }
}

// REQ: TOL-11
#[tokio::test]
async fn server_that_wants_a_login_is_named_so_unless_its_configuration_has_one() {
    let server = McpHttp::start(|_, _| Some(StatusCode::UNAUTHORIZED.into_response())).await;
    let (host, session) = with(&server, "http").await;
    let (state_found, why) = state(&session);
    assert_eq!((state_found, state_found.code()), (ServerState::NeedsAuth, "needs-auth"));
    assert!(why.contains("login"), "{why}");
    assert_eq!(server.methods(), ["initialize"], "a login is not a matter of another attempt");
    let headers = json!({"headers": {"authorization": "Bearer wrong"}});
    let session = open(&host, server.configured("srv", "http", headers)).await;
    let (state_found, why) = state(&session);
    assert_eq!(state_found, ServerState::Failed);
    assert!(!why.contains("wrong"), "{why}");
    check_usable(&session).await;
}

// REQ: TOL-11
#[tokio::test]
async fn redirects_are_not_followed_so_headers_stay_with_the_server() {
    let other = McpHttp::usual().await;
    let to = other.url();
    let server = McpHttp::start(move |_, _| {
        Some((StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, to.clone())]).into_response())
    })
    .await;
    let (_host, session) = with(&server, "http").await;
    let (state, why) = state(&session);
    assert!(state == ServerState::Failed && why.contains("redirects"), "{why}");
    assert!(other.asked().is_empty());
}

/// What a call gets of a server that answers it so.
async fn call_of(answer: fn(&McpRequest) -> axum::response::Response) -> (bool, String) {
    let server =
        McpHttp::start(move |asked, _| (asked.method() == "tools/call").then(|| answer(asked)))
            .await;
    let (_host, session) = with(&server, "http").await;
    let result = echo(&session).await;
    // The call alone has failed; the server stays connected.
    assert_eq!(state(&session).0, ServerState::Connected);
    check_usable(&session).await;
    result
}

// REQ: TOL-11
#[tokio::test]
async fn hostile_answers_fail_their_call_and_nothing_else() {
    type OddAnswer = fn(&McpRequest) -> axum::response::Response;
    let cases: [(OddAnswer, &str); 11] = [
        (|_| endless("application/json", "{\"a\":\"", "x"), "more than 16777216 bytes"),
        (|_| endless("text/event-stream", "data: ", "x"), "longer than 16777216 bytes"),
        (|_| endless("text/event-stream", "", ": x\n"), "too long"),
        (|_| endless("text/event-stream", "", "data: {\n"), "too long"),
        (|it| typed("text/html", it.usual().to_string()), "of the type \"text/html\""),
        (|_| typed("application/json", "\u{1f}\u{8b}\u{8}"), "cannot be read"),
        (|_| typed("application/json", "[".repeat(1 << 20)), "cannot be read"),
        (|_| events(&[]), "ended before the answer"),
        (|_| accepted(), "gives no answer"),
        (|_| json(&json!({"jsonrpc": "2.0", "id": 99, "result": {}})), "another request"),
        (|_| StatusCode::INTERNAL_SERVER_ERROR.into_response(), "HTTP status 500"),
    ];
    for (answer, why) in cases {
        let (is_error, text) = call_of(answer).await;
        assert!(is_error && text.contains(why) && text.len() < 1000, "{why}: {text}");
    }
}

// REQ: TOL-11
#[tokio::test]
async fn server_that_asks_without_end_is_answered_now_and_then_and_has_its_call() {
    let ping = |n: usize| json!({"jsonrpc": "2.0", "id": n, "method": "ping"});
    let server = McpHttp::start(move |asked, _| {
        let pings = (0..5000).map(|n| ping(n + 100));
        let messages: Vec<Value> = pings.chain([asked.usual_call()?]).collect();
        Some(events(&messages))
    })
    .await;
    let (_host, session) = with(&server, "http").await;
    assert_eq!(echo(&session).await, (false, HEARD.to_owned()));
}

// REQ: TOL-11
#[tokio::test]
async fn server_that_never_answers_has_failed_once_its_time_is_over() {
    let server = McpHttp::start(|_, _| Some(silent("text/event-stream"))).await;
    let mut mcp = ennead::tool::McpLimits::default();
    (mcp.start, mcp.wait) = (Duration::from_millis(200), LIMIT);
    let change = |options: ennead::Options| options.mcp(mcp);
    let host = Host::start_with(ennead::Placement::Ambient, change).await;
    let session = open(&host, server.configured("srv", "http", json!({}))).await;
    assert_eq!(state(&session), (ServerState::Failed, "it was not ready within 200 ms".to_owned()));
}

// REQ: TOL-11
#[tokio::test]
async fn addresses_of_a_repository_wait_for_trust_and_lists_by_address_hold() {
    let server = McpHttp::usual().await;
    let entry = json!({"mcpServers": {"srv": {"type": "http", "url": server.url()}}});
    let host_of = server.address.ip().to_string();
    for (trust, settings, connects) in [
        (Trust::Untrusted, json!({}), false),
        (Trust::Trusted, json!({}), true),
        (Trust::Trusted, json!({"disabledMcpjsonServers": ["srv"]}), false),
        (Trust::Trusted, json!({"deniedMcpServers": [{"serverUrl": "http://127.*"}]}), false),
        (Trust::Trusted, json!({"allowedMcpServers": [{"serverUrl": "https://*"}]}), false),
        (
            Trust::Trusted,
            json!({"allowedMcpServers": [{"serverUrl": format!("http://{host_of}:*/mcp")}]}),
            true,
        ),
    ] {
        let host = start(&pauses()).await;
        std::fs::write(host.path(".mcp.json"), entry.to_string()).unwrap();
        *host.files.layer.lock().unwrap() = Some(settings.to_string());
        let n_before = server.asked().len();
        let options = host.options().reads_mcp_json(true).trust(trust);
        let session = host.ennead.open(options).await.unwrap();
        assert_eq!(server.asked().len() != n_before, connects, "{trust:?} {settings}");
        let names: Vec<_> = session.mcp_servers().iter().map(|it| it.state).collect();
        assert_eq!(names, if connects { vec![ServerState::Connected] } else { vec![] });
        host.ennead.shutdown().await;
    }
}

// REQ: TOL-11
#[tokio::test]
async fn server_that_is_down_is_connected_to_again_on_request_also_during_a_run() {
    let placeholder = McpHttp::usual().await;
    let address = placeholder.address;
    drop(placeholder);
    let host = start(&pauses()).await;
    let url = format!("http://{address}/mcp");
    let session = open(&host, configured("srv", "http", &url, json!({}))).await;
    let (found, why) = state(&session);
    assert!(found == ServerState::Failed && why.contains("cannot connect"), "{found:?} {why}");
    assert!(session.reconnect_server("other").await.is_none());
    assert_eq!(reconnected(&session).await, ServerState::Failed);
    let server = McpHttp::at(&address.to_string(), |_, _| None).await;
    host.workshop.wait.close();
    let run = tokio::spawn({
        let session = session.clone();
        async move { session.prompt("use wait mcp__srv__echo").await }
    });
    timeout(LIMIT, host.workshop.wait.arrived()).await.unwrap();
    assert_eq!(reconnected(&session).await, ServerState::Connected);
    assert_eq!(state(&session), (ServerState::Connected, String::new()));
    host.workshop.wait.open();
    timeout(LIMIT, run).await.unwrap().unwrap().unwrap();
    assert_eq!(echo(&session).await, (false, HEARD.to_owned()));
    assert_eq!(reconnected(&session).await, ServerState::Connected);
    assert_eq!(server.methods().iter().filter(|it| *it == "initialize").count(), 1);
    check_usable(&session).await;
}

// REQ: TOL-11
#[tokio::test]
async fn dropped_server_is_connected_to_again_by_itself() {
    let is_down = Arc::new(AtomicBool::new(false));
    let server = McpHttp::start({
        let is_down = is_down.clone();
        move |_, _| {
            let is_down = is_down.swap(false, Ordering::SeqCst);
            is_down.then(|| StatusCode::UNAUTHORIZED.into_response())
        }
    })
    .await;
    let (_host, session) = with(&server, "http").await;
    is_down.store(true, Ordering::SeqCst);
    let (is_error, text) = echo(&session).await;
    assert!(is_error && text.contains("wants a login"), "{text}");
    assert_eq!(echo(&session).await, (false, HEARD.to_owned()));
    assert_eq!(server.methods().iter().filter(|it| *it == "initialize").count(), 2);
}
