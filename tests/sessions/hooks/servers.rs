//! Hooks that ask a server over a real socket, and conditions of handlers.

use std::sync::{Arc, Mutex};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode, header::LOCATION},
    response::{IntoResponse, Response},
};
use ennead::{Ennead, Environment, RunEnd};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{Came, answers, came_of, command, decides, hooks, probed};
use crate::support::scripted::{SESSION, TestDirs, alerts, call, says};
use crate::support::settings::SettingsJson as _;

/// A server of hooks that says the same to everybody, and what it was asked.
struct HookServer {
    base: String,
    asked: Arc<Mutex<Vec<(HeaderMap, Value)>>>,
}

#[derive(Clone)]
struct Served {
    status: u16,
    body: Bytes,
    asked: Arc<Mutex<Vec<(HeaderMap, Value)>>>,
}

async fn serve(State(it): State<Served>, headers: HeaderMap, body: Bytes) -> Response {
    it.asked.lock().unwrap().push((headers, serde_json::from_slice(&body).unwrap()));
    let status = StatusCode::from_u16(it.status).unwrap();
    let elsewhere = [(LOCATION, "/elsewhere")];
    if status.is_redirection() {
        (status, elsewhere).into_response()
    } else {
        (status, it.body).into_response()
    }
}

impl HookServer {
    async fn start(status: u16, body: impl Into<Bytes>) -> Self {
        let asked = Arc::default();
        let served = Served { status, body: body.into(), asked: Arc::clone(&asked) };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(serve).with_state(served);
        tokio::spawn(axum::serve(listener, router).into_future());
        Self { base, asked }
    }

    fn handler(&self) -> Value {
        json!({"type": "http", "url": format!("{}/hook?key=in-the-query", self.base)})
    }

    fn inputs(&self) -> Vec<Value> {
        self.asked.lock().unwrap().iter().map(|it| it.1.clone()).collect()
    }
}

async fn under(event: &str, handler: Value) -> Came {
    let place = TestDirs::new();
    let (options, ran) = probed(&place);
    came_of(&place, options.setting("hooks", hooks(event, &[handler])), &ran).await
}

// REQ: HKS-1, HKS-4
#[tokio::test]
async fn answer_of_a_server_decides_as_the_output_of_a_command_does() {
    let server = HookServer::start(200, decides("deny", "not here").to_string()).await;
    let came = under("PreToolUse", server.handler()).await;
    assert!(came.inputs.is_empty() && came.result.contains("not here"), "{}", came.result);
    let [input] = &server.inputs()[..] else { panic!("{:?}", server.inputs()) };
    assert_eq!(input["hook_event_name"], "PreToolUse");
    assert_eq!((&input["tool_name"], &input["tool_input"]), (&json!("probe"), &json!({"n": 1})));
    let headers = server.asked.lock().unwrap()[0].0.clone();
    assert_eq!(headers["content-type"], "application/json");

    let server = HookServer::start(200, r#"{"decision":"block","reason":"look again"}"#).await;
    let came = under("PostToolUse", server.handler()).await;
    assert_eq!(came.inputs.len(), 1);
    assert!(came.result.contains("look again"), "{}", came.result);
}

// REQ: HKS-1, HKS-4
#[tokio::test]
async fn server_without_a_usable_answer_decides_nothing_and_is_told() {
    let cases: [(u16, Vec<u8>, &str); 7] = [
        (403, b"{\"decision\":\"block\",\"reason\":\"x\"}".to_vec(), "status 403"),
        (302, Vec::new(), "status 302"),
        (200, b"plain".to_vec(), "not a JSON object"),
        (200, b"[1]".to_vec(), "not a JSON object"),
        (200, [b"{\"x\":\"", &vec![b'x'; 3 << 20][..], b"\"}"].concat(), "not a JSON object"),
        (200, b"{\"x\":".repeat(100_000), "not a JSON object"),
        (200, b" ".to_vec(), ""),
    ];
    for (status, body, alert) in cases {
        let server = HookServer::start(status, body).await;
        let came = under("PreToolUse", server.handler()).await;
        assert_eq!((came.result.as_str(), came.end), ("probed", RunEnd::NoPendingTools));
        let alerts = alerts(&came.events_seen).join("\n");
        assert_eq!(alerts.is_empty(), alert.is_empty(), "{status}: {alerts}");
        assert!(alerts.contains(alert) && !alerts.contains("in-the-query"), "{alerts}");
        assert_eq!(server.inputs().len(), 1, "no redirection is followed");
    }
    // Nobody listens there any more.
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let handler =
        json!({"type": "http", "url": format!("http://{gone}/in-the-path?key=in-the-query")});
    let came = under("PreToolUse", handler.clone()).await;
    assert_eq!(came.result, "probed");
    let alerts = alerts(&came.events_seen).join("\n");
    assert!(alerts.contains("cannot connect") && !alerts.contains("in-the-"), "{alerts}");
    let closed = json!({"type": "http", "url": handler["url"], "onFailure": "block"});
    let came = under("PreToolUse", closed).await;
    assert!(came.result.contains("its failing denies"), "{}", came.result);
}

// REQ: HKS-2
#[tokio::test]
async fn server_that_is_late_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let came = under("PreToolUse", json!({"type": "http", "url": url, "timeout": 0.05})).await;
    assert_eq!(came.result, "probed");
    let alerts = alerts(&came.events_seen).join("\n");
    assert!(alerts.contains("was stopped after"), "{alerts}");
}

// REQ: HKS-1, SES-8
#[tokio::test]
async fn headers_hold_allowed_variables_and_never_a_key_of_a_provider() {
    let server = HookServer::start(200, "").await;
    let place = TestDirs::new();
    let (options, ran) = probed(&place);
    let mut handler = server.handler();
    handler["headers"] = json!({
        "Authorization": "Bearer $HOOK_TOKEN", "X-Key": "<$ANTHROPIC_API_KEY>", "X-Other": "<$OTHER>",
    });
    handler["allowedEnvVars"] = json!(["HOOK_TOKEN", "ANTHROPIC_API_KEY"]);
    let environment = Environment::empty()
        .with("HOOK_TOKEN", "t-1")
        .with("ANTHROPIC_API_KEY", "key")
        .with("OTHER", "other");
    let model = says(vec![call("t", "probe", json!({"n": 1}))]);
    let ennead = Ennead::start(place.options(&model).environment(environment)).await.unwrap();
    let session =
        ennead.open(options.setting("hooks", hooks("PreToolUse", &[handler]))).await.unwrap();
    session.prompt("go").await.unwrap();
    crate::support::scripted::finish(ennead, session).await;
    assert_eq!(ran.lock().unwrap().len(), 1);
    let headers = server.asked.lock().unwrap()[0].0.clone();
    assert_eq!(headers["authorization"], "Bearer t-1");
    assert_eq!(
        (&headers["x-key"], &headers["x-other"]),
        (&"<>".parse().unwrap(), &"<>".parse().unwrap())
    );
}

// REQ: HKS-1
#[tokio::test]
async fn server_that_is_not_on_the_list_is_never_asked() {
    let server = HookServer::start(200, decides("deny", "no").to_string()).await;
    let place = TestDirs::new();
    let (options, ran) = probed(&place);
    let options = options
        .setting("hooks", hooks("PreToolUse", &[server.handler()]))
        .setting("allowedHttpHookUrls", json!(["https://hooks.example.com/*"]));
    let came = came_of(&place, options, &ran).await;
    assert_eq!((came.result.as_str(), server.inputs().len()), ("probed", 0));
    assert!(alerts(&came.events_seen).join("\n").contains("never runs"));
}

// REQ: HKS-1, TOL-10
#[tokio::test]
async fn sandbox_lets_a_hook_of_the_repository_reach_no_server() {
    let server = HookServer::start(200, decides("deny", "no").to_string()).await;
    for (sandbox, n_asked) in [
        (json!({"enabled": true}), 0),
        (json!({"enabled": true, "network": "open"}), 1),
        (json!({"enabled": false}), 2),
    ] {
        let place = TestDirs::new();
        let (options, ran) = probed(&place);
        let settings = json!({ "hooks": hooks("PreToolUse", &[server.handler()]) });
        place.write("workspace/.claude/settings.json", &settings.to_string());
        let options = options.trust(ennead::permission::Trust::Trusted).reads_settings(true);
        let came = came_of(&place, options.setting("sandbox", sandbox.clone()), &ran).await;
        assert_eq!(server.inputs().len(), n_asked, "{sandbox}: {}", came.result);
    }
}

// REQ: HKS-1, HKS-5
#[tokio::test]
async fn handler_whose_condition_does_not_hold_is_not_run_and_the_record_says_so() {
    let place = TestDirs::new();
    let (options, ran) = probed(&place);
    let conditional = |rule: &str, decision: &str| {
        let mut handler = answers(0, &decides(decision, rule), "");
        handler["if"] = rule.into();
        handler
    };
    let long = "x".repeat(4096);
    let handlers =
        [conditional("other", "deny"), conditional("probe(n:2)", "deny"), command("true")];
    let table = hooks("PreToolUse", &handlers);
    let came = came_of(&place, options.clone().setting("hooks", table), &ran).await;
    assert_eq!(came.result, "probed");
    let started =
        came.events_seen.iter().filter(|it| matches!(it, ennead::Event::HookStarted { .. }));
    assert_eq!(started.count(), 1, "{:?}", came.events_seen);
    let lines = place.lines();
    let ends: Vec<&Value> =
        lines.iter().filter(|it| it["kind"] == "hook").map(|it| &it["ended"]).collect();
    assert_eq!(ends, ["unmet", "unmet", "exited"]);
    let transcript = place.path(&format!("transcripts/{SESSION}.jsonl"));
    ennead::transcript::verify(&transcript).unwrap();

    // One that holds, for a call that is too long to be looked through where sessions wait.
    let place = TestDirs::new();
    let (options, ran) = probed(&place);
    let table = hooks("PreToolUse", &[conditional("probe(n:1)", "deny")]);
    let model = says(vec![call("t", "probe", json!({"n": 1, "more": long}))]);
    let (outcome, seen) = place.run_with_events(&model, options.setting("hooks", table)).await;
    assert!(ran.lock().unwrap().is_empty(), "{:?}", outcome.messages);
    let order: Vec<&str> = seen
        .iter()
        .filter_map(|it| match it {
            ennead::Event::HookStarted { .. } => Some("started"),
            ennead::Event::HookFinished { .. } => Some("finished"),
            _ => None,
        })
        .collect();
    assert_eq!(order, ["started", "finished"]);
}
