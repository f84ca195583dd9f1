//! A server that writes what nobody can read.

use super::{only_result, open, pauses, start};
use crate::support::{
    host::{check_usable, prompt, results},
    mcp_server::n_starts,
    processes::{fifo, read_to_end},
};

// REQ: RUN-2, TOL-11
#[tokio::test]
async fn server_that_writes_what_is_no_message_fails_its_calls_and_is_started_again() {
    let pauses = pauses();
    let host = start(&pauses).await;
    let (session, other) = (open(&host).await, open(&host).await);
    fifo(&host.path("alive"));
    let (up, reader) = read_to_end(&host.path("alive"));
    let held = prompt(&other, "use mcp__srv__hold");
    up.pass().await;
    let outcome = session.prompt("use mcp__srv__garble").await.unwrap();
    for outcome in [&outcome, &held.await.unwrap().unwrap()] {
        let (is_error, text) = only_result(outcome);
        let why = "MCP server `srv` wrote what is not JSON";
        assert!(is_error && text.contains(why) && text.contains("it was ended"), "{text}");
    }
    assert_eq!(reader.await.unwrap(), "p\n", "nothing of the first one is left");
    let outcome = session.prompt("use mcp__srv__echo").await.unwrap();
    assert!(!only_result(&outcome).0, "{:?}", results(&outcome));
    assert_eq!(n_starts(host.directory.path()), 2);
    assert_eq!(pauses.seconds(), [1]);
    check_usable(&session).await;
    let recorded = std::fs::read_to_string(session.transcript()).unwrap();
    assert!(recorded.contains("wrote what is not JSON"), "the transcript says so");
}
