//! Built under `#[cfg(test)]` only.

use std::sync::Mutex;

use ennead_runtime::{
    mcp::{config::ServerConfig, spec::Listed},
    ports::{Progress, WorkGuard},
};
use tokio::sync::{Notify, oneshot};

use super::*;
use crate::mcp::{Connection, ServerLaunch, connect};

/// Greets, lists one tool, and then does as the script says. The ids are those of requests that are
/// counted from 0.
async fn server(then: &str) -> (Connection, oneshot::Receiver<()>) {
    let tool = serde_json::json!({"name": "t", "inputSchema": {"type": "object"}});
    let (connection, listed, gone) = server_in(&std::env::temp_dir(), &[tool], then).await;
    assert_eq!(listed.len(), 1);
    (connection, gone)
}

/// The same in this directory, with these tools.
async fn server_in(
    directory: &std::path::Path,
    tools: &[Value],
    then: &str,
) -> (Connection, Vec<Listed>, oneshot::Receiver<()>) {
    let response = |id: u8, result: Value| {
        format!(r#"read -r line; echo '{{"jsonrpc":"2.0","id":{id},"result":{result}}}';"#)
    };
    let greeting = serde_json::json!({
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "s", "version": "1"},
    });
    let tools = serde_json::json!({ "tools": tools });
    let script = format!("{}read -r ready;{}{then}", response(0, greeting), response(1, tools));
    let config = ServerConfig::stdio("s", "sh", &["-c", &script]);
    let launch = ServerLaunch {
        config,
        workspace: directory.to_owned(),
        withheld: Vec::new(),
        confine: None,
    };
    let (kept, gone) = oneshot::channel();
    let (connection, listed) = connect(&launch, None, WorkGuard::new(kept)).await.unwrap();
    (connection, listed, gone)
}

/// More than the pipe to a server holds.
fn large() -> Map<String, Value> {
    let text = Value::String("x".repeat(1 << 20));
    [("x".to_owned(), text)].into_iter().collect()
}

/// A server that reads nothing any more is ended with the call.
async fn check_broken(mut connection: Connection, gone: oneshot::Receiver<()>) {
    let why = connection.wait_for_end().await;
    assert!(why.starts_with("it takes no messages any more"), "{why}");
    drop(connection);
    assert!(gone.await.is_err(), "nothing of it is left");
}

// REQ: TOL-4
#[tokio::test]
async fn call_that_is_given_up_ends_also_when_its_server_reads_nothing() {
    let (mut connection, gone) = server("exec sleep 100000").await;
    let caller = connection.caller();
    let call = caller.call("t".into(), large(), None, std::future::ready(()));
    tokio::select! {
        answer = call => assert_eq!(answer, None),
        why = connection.wait_for_end() => panic!("{why}"),
    }
    check_broken(connection, gone).await;
}

// REQ: TOL-4
#[tokio::test]
async fn silent_call_ends_also_when_its_server_reads_nothing() {
    let (mut connection, gone) = server("exec sleep 100000").await;
    let caller = connection.caller();
    tokio::time::pause();
    let call = caller.call("t".into(), large(), None, std::future::pending());
    let minutes = SILENCE.as_secs() / 60;
    tokio::select! {
        answer = call => {
            assert_eq!(answer, Some(Err(CallError::Silent { server: "s".into(), minutes })));
        }
        why = connection.wait_for_end() => panic!("{why}"),
    }
    check_broken(connection, gone).await;
}

/// What was reported, and a sign for each report.
#[derive(Debug, Default)]
struct ProgressLog(Mutex<Vec<Progress>>, Notify);

impl ReportProgress for ProgressLog {
    fn report(&self, progress: Progress) {
        self.0.lock().unwrap().push(progress);
        self.1.notify_one();
    }
}

/// Reports progress when it is called, and again when the pipe `go` is written to.
const STEPS: &str = r#"
read -r call
token=$(printf '%s' "$call" | sed 's/.*"progressToken":\("[^"]*"\|[0-9]*\).*/\1/')
say() {
    echo '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":'"$token"',"progress":'"$1"',"total":4}}'
}
say 1
read -r _ < go
say 2
exec sleep 100000
"#;

// REQ: TOL-4, TOL-11
#[tokio::test]
async fn progress_is_reported_and_begins_the_limit_on_silence_anew() {
    let place = tempfile::tempdir().unwrap();
    let go = place.path().join("go");
    assert!(std::process::Command::new("mkfifo").arg(&go).status().unwrap().success());
    let tool = serde_json::json!({"name": "t", "inputSchema": {"type": "object"}});
    let (mut connection, _, _gone) = server_in(place.path(), &[tool], STEPS).await;
    let reports = Arc::new(ProgressLog::default());
    let listener = Some(Arc::clone(&reports) as Arc<dyn ReportProgress>);
    let caller = connection.caller();
    let mut call = pin!(caller.call("t".into(), Map::new(), listener, std::future::pending()));
    // Nearly the whole limit passes after each sign of progress.
    let nearly = SILENCE - Duration::from_secs(60);
    for step in [1, 2] {
        tokio::select! {
            answer = &mut call => panic!("it ended before step {step}: {answer:?}"),
            why = connection.wait_for_end() => panic!("{why}"),
            () = reports.1.notified() => {}
        }
        tokio::time::pause();
        tokio::select! {
            biased;
            answer = &mut call => panic!("it ended after step {step}: {answer:?}"),
            () = tokio::time::advance(nearly) => {}
        }
        tokio::time::resume();
        if step == 1 {
            let go = go.clone();
            tokio::task::spawn_blocking(move || std::fs::write(go, "\n").unwrap()).await.unwrap();
        }
    }
    tokio::time::pause();
    let silent = CallError::Silent { server: "s".into(), minutes: SILENCE.as_secs() / 60 };
    tokio::select! {
        answer = &mut call => assert_eq!(answer, Some(Err(silent))),
        why = connection.wait_for_end() => panic!("{why}"),
    }
    let reported = reports.0.lock().unwrap().clone();
    let reported: Vec<_> = reported.iter().map(|it| (it.percent, &*it.text)).collect();
    assert_eq!(reported, [(Some(25), "1 of 4"), (Some(50), "2 of 4")]);
}

// REQ: TOL-11
#[tokio::test]
async fn tools_that_run_only_as_tasks_are_listed_as_such() {
    let tool = |name: &str, support: &str| {
        serde_json::json!({
            "name": name, "inputSchema": {"type": "object"}, "execution": {"taskSupport": support},
        })
    };
    let tools = [tool("only", "required"), tool("both", "optional"), tool("never", "forbidden")];
    let (_connection, listed, _gone) =
        server_in(&std::env::temp_dir(), &tools, "exec sleep 100000").await;
    let needs: Vec<_> = listed.iter().map(|it| (it.name.as_str(), it.needs_task)).collect();
    assert_eq!(needs, [("only", true), ("both", false), ("never", false)]);
}

/// Calls the tool; the connection stays meanwhile.
async fn call(connection: &mut Connection) -> Result<CallResult, CallError> {
    let caller = connection.caller();
    let call = caller.call("t".into(), Map::new(), None, std::future::pending());
    tokio::select! {
        answer = call => answer.unwrap(),
        why = connection.wait_for_end() => panic!("{why}"),
    }
}

// REQ: TOL-11
#[tokio::test]
async fn answer_that_cannot_be_read_fails_its_call_and_the_server_goes_on() {
    let good =
        r#"echo '{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"good"}]}}'"#;
    for (bad, why) in [
        (r#"echo '{"jsonrpc":"2.0","id":2,"result":{oops'"#, "what is not JSON"),
        (r#"echo '{"jsonrpc":"2.0","id":2,"outcome":{}}'"#, "not a message of the protocol"),
        (
            r#"printf '{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"\377"}]}}\n'"#,
            "bytes that are not UTF-8",
        ),
        // The end of the line comes with the next call.
        (
            r#"printf '{"jsonrpc":"2.0","id":2,"result":{"content":"'; head -c 17000000 /dev/zero | tr '\0' x"#,
            "a line of more than 16777216 bytes",
        ),
    ] {
        let then = format!("read -r call; {bad}; read -r call; echo; {good}; exec sleep 100000");
        let (mut connection, _gone) = server(&then).await;
        let answer = call(&mut connection).await;
        let Err(CallError::Refused(reported)) = &answer else { panic!("{answer:?}") };
        assert!(
            reported.contains("`s` gave an answer that cannot be read") && reported.contains(why),
            "{reported}"
        );
        let answer = call(&mut connection).await.unwrap();
        assert_eq!(answer.outcome().text, "good");
    }
}

// REQ: TOL-11
#[tokio::test]
async fn line_that_answers_nobody_knows_whom_fails_every_call_and_ends_the_connection() {
    let then = "read -r call; read -r call; echo {no message; exec sleep 100000";
    let (mut connection, gone) = server(then).await;
    let caller = connection.caller();
    let call = || caller.call("t".into(), Map::new(), None, std::future::pending());
    let (one, other, why) = tokio::join!(call(), call(), connection.wait_for_end());
    for answer in [one, other] {
        let Some(Err(CallError::Garbled { server, what })) = answer else { panic!("{answer:?}") };
        assert!(server == "s" && what.starts_with("what is not JSON"), "{what}");
    }
    assert!(why.starts_with("it wrote what is not JSON"), "{why}");
    drop(connection);
    assert!(gone.await.is_err(), "nothing of it is left");
}
