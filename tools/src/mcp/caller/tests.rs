//! Built under `#[cfg(test)]` only.

use ennead_runtime::{mcp::config::ServerConfig, ports::Hold};
use tokio::sync::oneshot;

use super::*;
use crate::mcp::{Connection, Launch, connect};

/// Greets, lists one tool, and then does as the script says. The ids are those of requests that are
/// counted from 0.
async fn server(then: &str) -> (Connection, oneshot::Receiver<()>) {
    let said = |id: u8, result: Value| {
        format!(r#"read -r line; echo '{{"jsonrpc":"2.0","id":{id},"result":{result}}}';"#)
    };
    let greeting = serde_json::json!({
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "s", "version": "1"},
    });
    let tools = serde_json::json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]});
    let script = format!("{}read -r ready;{}{then}", said(0, greeting), said(1, tools));
    let config = ServerConfig::stdio("s", "sh", &["-c", &script]);
    let launch = Launch { config, workspace: std::env::temp_dir(), withheld: Vec::new() };
    let (kept, gone) = oneshot::channel();
    let (connection, listed) = connect(&launch, Hold::new(kept)).await.unwrap();
    assert_eq!(listed.len(), 1);
    (connection, gone)
}

/// More than the pipe to a server holds.
fn large() -> Map<String, Value> {
    let text = Value::String("x".repeat(1 << 20));
    [("x".to_owned(), text)].into_iter().collect()
}

/// A server that reads nothing any more is ended with the call.
async fn check_broken(mut connection: Connection, gone: oneshot::Receiver<()>) {
    let why = connection.ended().await;
    assert!(why.starts_with("it takes no messages any more"), "{why}");
    drop(connection);
    assert!(gone.await.is_err(), "nothing of it is left");
}

// REQ: TOL-4
#[tokio::test]
async fn call_that_is_given_up_ends_also_when_its_server_reads_nothing() {
    let (mut connection, gone) = server("exec sleep 100000").await;
    let caller = connection.caller();
    let call = caller.call("t".into(), large(), std::future::ready(()));
    tokio::select! {
        answer = call => assert_eq!(answer, None),
        why = connection.ended() => panic!("{why}"),
    }
    check_broken(connection, gone).await;
}

// REQ: TOL-4
#[tokio::test]
async fn silent_call_ends_also_when_its_server_reads_nothing() {
    let (mut connection, gone) = server("exec sleep 100000").await;
    let caller = connection.caller();
    tokio::time::pause();
    let call = caller.call("t".into(), large(), std::future::pending());
    let minutes = SILENCE.as_secs() / 60;
    tokio::select! {
        answer = call => {
            assert_eq!(answer, Some(Err(CallError::Silent { server: "s".into(), minutes })));
        }
        why = connection.ended() => panic!("{why}"),
    }
    check_broken(connection, gone).await;
}
