//! Servers that are not ready when a session is opened: it works without them, and their tools join.

use std::{fs::File, io::Write, sync::Arc, time::Duration};

use ennead::{
    Event, Placement, SessionHandle,
    data::ActorKind,
    permission::Trust,
    tool::{McpLimits, ServerConfig},
};
use ennead_runtime::{
    mcp::state::ServerState,
    transcript::{entry::RecordKind, replay::replay},
};
use serde_json::json;
use tokio::time::timeout;

use super::{
    alerts, notes, only_result, pauses,
    starts::{LIMIT, pipe, started_by},
};
use crate::support::{
    events::EventLog,
    host::{Host, check_usable, prompt, prompt_to, results},
    mcp_server::{entry, n_starts},
    processes::fifo,
    record,
};

/// A host that waits this long for servers, and the pipe that lets those go which wait for it.
async fn start(wait: Option<Duration>) -> (Host, File) {
    let mut mcp = McpLimits::default();
    mcp.wait = wait.unwrap_or(mcp.wait);
    let timer = Arc::new(pauses());
    let change = |options: ennead::Options| options.timer(timer).mcp(mcp);
    let host = Host::start_with(Placement::Ambient, change).await;
    fifo(&host.path("go"));
    let go = pipe(&host, "go");
    (host, go)
}

/// A server that speaks once it is let go.
fn slow(name: &str) -> ServerConfig {
    started_by(name, "read -r _ < go")
}

fn states(session: &SessionHandle) -> Vec<(String, ServerState)> {
    session.mcp_servers().iter().map(|it| (it.name.to_string(), it.state)).collect()
}

fn state(name: &str, state: ServerState) -> Vec<(String, ServerState)> {
    vec![(name.to_owned(), state)]
}

/// Waits until a server that was starting is ready or has failed.
async fn settled(log: &mut EventLog) -> (String, ServerState, Option<Arc<str>>) {
    let event = timeout(LIMIT, log.until(|it| matches!(it, Event::McpServer { .. }))).await;
    let Event::McpServer { server, state, error } = event.unwrap() else { panic!("another") };
    (server.to_string(), state, error)
}

/// The alerts on record.
fn recorded_alerts(session: &SessionHandle) -> Vec<String> {
    let alert = |it: ennead_runtime::transcript::entry::Record| match it.what {
        RecordKind::Alert { what } => Some(what),
        _ => None,
    };
    record::records(session.transcript()).into_iter().filter_map(alert).collect()
}

/// The transcript verifies, and its turns are walked again.
async fn check_walked(session: &SessionHandle) {
    check_usable(session).await;
    let file = session.transcript().to_owned();
    let checked = tokio::task::spawn_blocking(move || ennead::transcript::verify(&file)).await;
    checked.unwrap().unwrap_or_else(|error| panic!("{error}"));
    let bytes = std::fs::read(session.transcript()).unwrap();
    let beside = session.transcript().with_extension("");
    let stored = |digest| std::fs::read_to_string(beside.join(format!("stored/{digest}.txt"))).ok();
    let walked = replay(&bytes, &stored).unwrap_or_else(|error| panic!("{error}"));
    assert!(1 <= walked.turns, "{walked:?}");
}

// REQ: TOL-11
#[tokio::test]
async fn session_that_waits_without_end_is_opened_with_all_tools() {
    let (host, mut go) = start(Some(Duration::MAX)).await;
    go.write_all(b"\n").unwrap();
    let opening = host.ennead.open(host.options().mcp_server(slow("slow")));
    let session = timeout(LIMIT, opening).await.unwrap().unwrap();
    assert_eq!(states(&session), state("slow", ServerState::Connected));
}

// REQ: TOL-11, SES-4
#[tokio::test]
async fn tools_of_a_slow_server_join_with_the_turn_after_it_has_answered() {
    let (host, mut go) = start(Some(Duration::from_millis(1))).await;
    let options = || host.options().mcp_server(slow("slow"));
    let session = host.ennead.open(options()).await.unwrap();
    assert_eq!(states(&session), state("slow", ServerState::Pending));
    let mut log = EventLog::new(session.events());
    let outcome = session.prompt("use mcp__slow__echo").await.unwrap();
    assert!(only_result(&outcome).0, "no such tool yet: {outcome:?}");
    assert!(!host.model.had_tool("mcp__slow__echo"));
    let not_ready = "MCP server `slow` is not ready after 1 ms (ENNEAD_MCP_WAIT)";
    let alerts = alerts(&mut log);
    assert!(alerts.len() == 1 && alerts[0].starts_with(not_ready), "{alerts:?}");
    assert_eq!(recorded_alerts(&session), alerts);
    go.write_all(b"\n").unwrap();
    assert_eq!(settled(&mut log).await, ("slow".to_owned(), ServerState::Connected, None));
    assert_eq!(states(&session), state("slow", ServerState::Connected));
    let outcome = session.prompt("use mcp__slow__echo").await.unwrap();
    assert_eq!(only_result(&outcome), (false, r#"heard {"name":"0","path":"file"}"#.to_owned()));
    assert!(host.model.had_tool("mcp__slow__echo"));
    let outcome = session.prompt("delegate use mcp__slow__echo").await.unwrap();
    assert!(!only_result(&outcome).0, "a sub-agent has the tools of its parent: {outcome:?}");
    check_walked(&session).await;
    // A session that is opened later finds it running.
    session.close().await;
    let again = host.ennead.open(options().id(session.id().clone())).await.unwrap();
    let outcome = again.prompt("use mcp__slow__echo").await.unwrap();
    assert!(!only_result(&outcome).0, "{outcome:?}");
    check_walked(&again).await;
    assert_eq!(n_starts(host.directory.path()), 1, "it went on starting");
}

// REQ: TOL-11, SES-4
#[tokio::test]
async fn tools_join_between_the_turns_of_a_run() {
    let (host, mut go) = start(Some(Duration::ZERO)).await;
    let session = host.ennead.open(host.options().mcp_server(slow("slow"))).await.unwrap();
    let mut log = EventLog::new(session.events());
    let run = prompt_to(&session, "use wait", &host.workshop.wait).await;
    go.write_all(b"\n").unwrap();
    settled(&mut log).await;
    assert!(!host.model.had_tool("mcp__slow__echo"), "the turn goes on as it began");
    host.open_all();
    run.await.unwrap().unwrap();
    assert!(host.model.had_tool("mcp__slow__echo"));
    check_walked(&session).await;
}

// REQ: TOL-11
#[tokio::test]
async fn servers_that_never_answer_cost_the_opening_the_limit_and_no_more() {
    // More than are started at once.
    const N: usize = 40;
    let (host, _go) = start(None).await;
    let silent = |i| slow(&format!("s{i}"));
    let options = (0..N).fold(host.options(), |options, i| options.mcp_server(silent(i)));
    // Time stands but where nothing else is left to do.
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    let session = host.ennead.open(options).await.unwrap();
    let took = begun.elapsed();
    tokio::time::resume();
    assert!((2_000..2_100).contains(&took.as_millis()), "{took:?}");
    let all = states(&session);
    assert_eq!(all.len(), N);
    assert!(all.iter().all(|it| it.1 == ServerState::Pending), "{all:?}");
    let alerts = notes(&session).await;
    assert_eq!(alerts.len(), N, "{alerts:?}");
    check_usable(&session).await;
    host.ennead.shutdown().await;
}

// REQ: TOL-11, RUN-2
#[tokio::test]
async fn slow_server_that_fails_is_told_and_on_record() {
    for is_running in [false, true] {
        let (host, mut go) = start(Some(Duration::ZERO)).await;
        let server = ServerConfig::stdio("bad", "sh", &["-c", "read -r _ < go; exit 3"]);
        let session = host.ennead.open(host.options().mcp_server(server)).await.unwrap();
        notes(&session).await;
        let mut log = EventLog::new(session.events());
        let run = is_running.then(|| {
            host.workshop.wait.close();
            prompt(&session, "use wait")
        });
        if is_running {
            host.workshop.wait.arrived().await;
        }
        go.write_all(b"\n").unwrap();
        let (server, state, error) = settled(&mut log).await;
        let why = "it ended before it was ready";
        assert_eq!((&*server, state), ("bad", ServerState::Failed));
        assert!(error.as_ref().is_some_and(|it| it.contains(why)), "{error:?}");
        let [status] = &session.mcp_servers()[..] else { panic!("it has one") };
        assert_eq!((status.state, &status.error), (ServerState::Failed, &error));
        host.open_all();
        match run {
            Some(run) => drop(run.await.unwrap().unwrap()),
            None => drop(session.prompt("again").await.unwrap()),
        }
        let alerts = alerts(&mut log);
        let [alert] = &alerts[..] else { panic!("{alerts:?}") };
        assert!(alert.starts_with("MCP server `bad` failed: ") && alert.contains(why), "{alert}");
        assert_eq!(recorded_alerts(&session).last(), Some(alert));
        check_walked(&session).await;
    }
}

// REQ: TOL-11, PRM-1
#[tokio::test]
async fn faster_server_of_a_project_does_not_take_the_names_of_ones_own() {
    let (host, mut go) = start(Some(LIMIT)).await;
    let file = json!({ "mcpServers": { "s_v": entry(), "other": entry() } });
    std::fs::write(host.path(".mcp.json"), file.to_string()).unwrap();
    let first = host.options().trust(Trust::Trusted).reads_mcp_json(true);
    // They run from here on, and answer at once.
    drop(host.ennead.open(first.clone()).await.unwrap());
    tokio::time::pause();
    let session = host.ennead.open(first.mcp_server(slow("s.v"))).await.unwrap();
    tokio::time::resume();
    let mut log = EventLog::new(session.events());
    let outcome = session.prompt("use mcp__other__echo mcp__s_v__echo").await.unwrap();
    let errors: Vec<bool> = results(&outcome).into_iter().map(|it| it.0).collect();
    assert_eq!(errors, [false, true], "{outcome:?}");
    let alerts = alerts(&mut log);
    let taken = |it: &String| it.starts_with("echo of MCP server `s_v` is not offered");
    assert!(alerts.iter().any(taken), "{alerts:?}");
    go.write_all(b"\n").unwrap();
    assert_eq!(settled(&mut log).await, ("s.v".to_owned(), ServerState::Connected, None));
    let outcome = session.prompt("use mcp__s_v__echo").await.unwrap();
    assert!(!only_result(&outcome).0, "{outcome:?}");
    check_walked(&session).await;
}

// REQ: RUN-2
#[tokio::test]
async fn server_whose_wait_crashes_has_failed() {
    let (host, _go) = start(Some(Duration::ZERO)).await;
    let session = host.ennead.open(host.options().mcp_server(slow("slow"))).await.unwrap();
    let mut log = EventLog::new(session.events());
    let waiters = host.live(session.id(), ActorKind::McpWaiter);
    waiters[0].cell.kill_and_wait(None).await.unwrap();
    let (server, state, error) = settled(&mut log).await;
    assert_eq!(
        (&*server, state, error.as_deref()),
        ("slow", ServerState::Failed, Some("the wait for it crashed"))
    );
    check_walked(&session).await;
}
