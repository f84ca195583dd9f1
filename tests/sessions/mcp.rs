//! MCP servers of sessions: what their tools are, who shares them, and what their end means.

mod garbled;
mod http;
mod http_stream;
mod late;
mod starts;

use std::{path::Path, sync::Arc, time::Duration};

use ennead::{
    Event, OpenError, Placement, RunEnd, RunOutcome, SessionHandle, SessionOptions,
    data::ActorKind,
    permission::Trust,
    tool::{McpLimits, ServerConfig},
};
use serde_json::json;

use crate::support::{
    barrier::Barrier,
    events::EventLog,
    held_timer::HeldTimer,
    host::{Host, check_usable, interrupted, results},
    mcp_server::{configured, entry, last_pid, n_starts},
    processes::fifo,
};

/// No pause before another start of a server is longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Pauses before another start are over at once; a wait for people never is.
fn pauses() -> HeldTimer {
    HeldTimer::at(&Barrier::default()).up_to(LONGEST_PAUSE)
}

async fn start(pauses: &HeldTimer) -> Host {
    let timer = Arc::new(pauses.clone());
    Host::start_with(Placement::Ambient, |options| options.timer(timer)).await
}

fn with_server(host: &Host) -> SessionOptions {
    host.options().mcp_server(configured("srv"))
}

async fn open(host: &Host) -> SessionHandle {
    host.ennead.open(with_server(host)).await.unwrap()
}

/// The only result of a run that went well.
#[track_caller]
fn only_result(outcome: &RunOutcome) -> (bool, String) {
    assert_eq!(outcome.end, RunEnd::NoPendingTools, "{outcome:?}");
    let mut results = results(outcome);
    assert_eq!(results.len(), 1, "{results:?}");
    results.remove(0)
}

/// What the listeners of a session are told with its first run.
async fn notes(session: &SessionHandle) -> Vec<String> {
    let mut log = EventLog::new(session.events());
    session.prompt("again").await.unwrap();
    alerts(&mut log)
}

fn alerts(log: &mut EventLog) -> Vec<String> {
    let alerts = log.seen().iter().filter_map(|it| match it {
        Event::Alert { what } => Some(what.to_string()),
        _ => None,
    });
    alerts.collect()
}

// REQ: TOL-11
#[tokio::test]
async fn tools_of_a_server_are_tools_of_the_session() {
    let host = start(&pauses()).await;
    let session = open(&host).await;
    let outcome = session.prompt("use mcp__srv__echo").await.unwrap();
    assert_eq!(only_result(&outcome), (false, r#"heard {"name":"0","path":"file"}"#.to_owned()));
    let outcome = session.prompt("use mcp__srv__fail").await.unwrap();
    assert_eq!(only_result(&outcome), (true, "boom".to_owned()));
    let outcome = session.prompt("delegate use mcp__srv__echo").await.unwrap();
    assert!(!only_result(&outcome).0, "a sub-agent has the tools of its parent");
    check_usable(&session).await;
    let notes = std::fs::read_to_string(session.transcript()).unwrap();
    assert!(notes.contains("heard"), "the transcript has the result");
}
#[tokio::test]
async fn result_that_is_too_long_is_kept_in_a_file() {
    let host = start(&pauses()).await;
    let session = open(&host).await;
    let outcome = session.prompt("use mcp__srv__big").await.unwrap();
    let (is_error, text) = only_result(&outcome);
    assert!(!is_error && text.contains("200000 characters") && text.len() < 3000, "{text}");
    check_usable(&session).await;
}

// REQ: PRM-1
#[tokio::test]
async fn tool_of_a_server_passes_the_gate_like_every_other() {
    for (rules, runs) in [
        (with_rules as fn(SessionOptions) -> SessionOptions, false),
        (|it| it.allow("mcp__srv__echo").unwrap(), true),
        (|it| it.allow("mcp__srv").unwrap(), true),
        (|it| it.allow("mcp__srv__*").unwrap().deny("mcp__srv__echo").unwrap(), false),
        (|it| it.allow("mcp__other").unwrap(), false),
    ] {
        let host = start(&pauses()).await;
        let mut options = rules(with_server(&host));
        options.approver = None;

        let session = host.ennead.open(options).await.unwrap();
        let outcome = session.prompt("use mcp__srv__echo").await.unwrap();
        let (is_error, text) = results(&outcome).remove(0);
        assert_eq!(is_error, !runs, "{text}");
        check_usable(&session).await;
        host.ennead.shutdown().await;
    }
}

fn with_rules(options: SessionOptions) -> SessionOptions {
    options
}

/// Ends something of the server during a held call: the call gets an error result, the turn goes on, the
/// server comes back after a pause, and nothing of the first one is left.
async fn check_end(end: impl AsyncFnOnce(&Host, &SessionHandle)) {
    let pauses = pauses();
    let host = start(&pauses).await;
    let session = open(&host).await;
    let (run, reader) = host.prompt_alive(&session, "use mcp__srv__hold").await;
    end(&host, &session).await;
    let outcome = run.await.unwrap().unwrap();
    let (is_error, text) = only_result(&outcome);
    assert!(is_error && text.contains("MCP server `srv` ended during the call"), "{text}");
    assert_eq!(reader.await.unwrap(), "p\n", "nothing has it open any more, nobody was asked");
    let outcome = session.prompt("use mcp__srv__echo").await.unwrap();
    assert!(!only_result(&outcome).0, "{:?}", results(&outcome));
    assert_eq!(n_starts(host.directory.path()), 2);
    assert_eq!(pauses.seconds(), [1]);
    check_usable(&session).await;
    host.ennead.shutdown().await;
}

async fn kill(host: &Host, session: &SessionHandle, kind: ActorKind) {
    let live = host.live(session.id(), kind);
    assert_eq!(live.len(), 1, "{live:?}");
    live[0].cell.kill_and_wait(None).await.unwrap();
}

// REQ: RUN-2, TOL-4
#[tokio::test]
async fn crashed_connection_fails_its_call_and_another_is_made() {
    check_end(async |host, session| kill(host, session, ActorKind::McpConnection).await).await;
}

// REQ: RUN-2, TOL-4
#[tokio::test]
async fn crashed_server_actor_fails_its_call_and_another_is_started() {
    check_end(async |host, session| kill(host, session, ActorKind::McpServer).await).await;
}

// REQ: RUN-2, TOL-4
#[tokio::test]
async fn server_that_dies_fails_its_call_and_is_started_again() {
    check_end(async |host, _| {
        let pid = last_pid(host.directory.path()).to_string();
        let killed = std::process::Command::new("kill").args(["-KILL", &pid]).status();
        assert!(killed.unwrap().success());
    })
    .await;
}

// REQ: TOL-4, TRN-2
#[tokio::test]
async fn interrupt_cancels_the_call_and_leaves_the_server() {
    let host = start(&pauses()).await;
    let session = open(&host).await;
    let (run, reader) = host.prompt_alive(&session, "use mcp__srv__hold").await;
    session.interrupt();
    interrupted(run).await;
    assert_eq!(reader.await.unwrap(), "p\ncancelled\n", "the server was told");
    let outcome = session.prompt("use mcp__srv__echo").await.unwrap();
    assert!(!only_result(&outcome).0);
    assert_eq!(n_starts(host.directory.path()), 1);
    check_usable(&session).await;
}

#[tokio::test]
async fn sessions_with_the_same_configuration_share_a_server() {
    let host = start(&pauses()).await;
    let (one, other) = tokio::join!(open(&host), open(&host));
    assert_eq!(n_starts(host.directory.path()), 1);
    assert_eq!(host.live(one.id(), ActorKind::McpServer).len(), 1);
    for session in [&one, &other] {
        let outcome = session.prompt("use mcp__srv__echo").await.unwrap();
        assert!(!only_result(&outcome).0);
        check_usable(session).await;
    }
    one.close().await;
    let outcome = other.prompt("use mcp__srv__echo").await.unwrap();
    assert!(!only_result(&outcome).0, "it outlives the session that started it");
    let another = host.ennead.open(host.options().mcp_server(configured("tmp"))).await.unwrap();
    assert_eq!(n_starts(host.directory.path()), 2);
    assert_eq!(host.live(another.id(), ActorKind::McpServer).len(), 2);
}

#[tokio::test]
async fn server_is_shared_across_threads_and_moves_when_its_thread_ends() {
    let timer = Arc::new(pauses());
    let threads = Placement::Threads(2);
    let host = Host::start_with(threads, |options| options.timer(timer)).await;
    let (one, other) = (open(&host).await, open(&host).await);
    assert_eq!(n_starts(host.directory.path()), 1);
    let outcome = other.prompt("use mcp__srv__echo").await.unwrap();
    assert!(!only_result(&outcome).0);
    kill(&host, &one, ActorKind::McpConnection).await;
    let outcome = other.prompt("use mcp__srv__echo").await.unwrap();
    assert!(!only_result(&outcome).0, "it is back, after a pause");
    assert_eq!(n_starts(host.directory.path()), 2);
    host.live(one.id(), ActorKind::Shard)[0].cell.kill_and_wait(None).await.unwrap();
    let outcome = other.prompt("use mcp__srv__echo").await.unwrap();
    let (is_error, text) = only_result(&outcome);
    // It comes while its thread ends, or after that.
    assert!(is_error && text.contains("MCP server `srv`"), "{text}");
    // A session of the other thread, since nothing opens on this one any more.
    let again = match host.ennead.open(with_server(&host)).await {
        Ok(again) => again,
        Err(_) => open(&host).await,
    };
    let outcome = again.prompt("use mcp__srv__echo").await.unwrap();
    assert!(!only_result(&outcome).0);
    let outcome = other.prompt("use mcp__srv__echo").await.unwrap();
    assert!(!only_result(&outcome).0, "it is there for the older session, too");
    check_usable(&other).await;
}

#[tokio::test]
async fn session_without_servers_has_none_of_their_actors() {
    let host = start(&pauses()).await;
    let session = host.open().await;
    session.prompt("use echo").await.unwrap();
    for kind in [ActorKind::McpServer, ActorKind::McpConnection] {
        assert_eq!(host.live(session.id(), kind).len(), 0);
    }
}

#[tokio::test]
async fn servers_end_with_what_hosts_the_sessions() {
    let host = start(&pauses()).await;
    let session = open(&host).await;
    let (run, reader) = host.prompt_alive(&session, "use mcp__srv__hold").await;
    host.ennead.shutdown().await;
    // The call is cancelled, or the server is gone before it heard of it.
    assert!(["p\n", "p\ncancelled\n"].contains(&&*reader.await.unwrap()));
    assert_eq!(run.await.unwrap().unwrap().end, RunEnd::Interrupted);
}

// REQ: RUN-2
#[tokio::test]
async fn server_that_cannot_be_had_is_told_and_the_session_goes_on() {
    for (server, why) in [
        (ServerConfig::stdio("srv", "/nowhere/at-all", &[]), "cannot start /nowhere/at-all"),
        (
            ServerConfig::stdio("srv", "sh", &["-c", "echo no licence >&2; exit 3"]),
            "it ended before it was ready; it said: no licence",
        ),
        (ServerConfig::stdio("srv", "cat", &["/dev/null"]), "it ended before it was ready"),
    ] {
        let pauses = pauses();
        let host = start(&pauses).await;
        let options = host.options().mcp_server(server);
        let session = host.ennead.open(options.clone()).await.unwrap();
        let alerts = notes(&session).await;
        assert!(alerts.len() == 1 && alerts[0].contains(why), "{alerts:?}");
        check_usable(&session).await;
        assert!(pauses.seconds().is_empty(), "it is not started again by itself");
        // Who wants it makes it be tried again.
        assert_eq!(notes(&host.ennead.open(options).await.unwrap()).await, alerts);
    }
}

#[tokio::test]
async fn server_that_is_not_ready_in_time_is_given_up_and_ended() {
    let mut mcp = McpLimits::default();
    mcp.start = Duration::ZERO;
    let host = Host::start_with(Placement::Ambient, |options| options.mcp(mcp)).await;
    let session = open(&host).await;
    let alerts = notes(&session).await;
    assert_eq!(alerts, ["MCP server `srv` failed: it was not ready within 0 ms"]);
    check_usable(&session).await;
}

#[tokio::test]
async fn tool_that_cannot_be_offered_is_told_and_the_others_stay() {
    let host = start(&pauses()).await;
    let session = open(&host).await;
    let alerts = notes(&session).await;
    let why = "text of MCP server `srv` is not offered: its input schema cannot be used";
    assert_eq!(alerts, [why]);
}
#[tokio::test]
async fn servers_of_a_project_are_used_as_far_as_it_is_trusted() {
    for (trust, settings, server) in [
        (Trust::Headless, None, true),
        (Trust::Trusted, None, true),
        (Trust::Untrusted, None, false),
        (Trust::Headless, Some(json!({"disabledMcpjsonServers": ["own"]})), false),
        (Trust::Headless, Some(json!({"deniedMcpServers": [{"serverName": "own"}]})), false),
    ] {
        let host = start(&pauses()).await;
        let file = json!({ "mcpServers": { "own": entry(), "remote": { "url": "https://x" } } });
        std::fs::write(host.path(".mcp.json"), file.to_string()).unwrap();
        *host.files.layer.lock().unwrap() = settings.as_ref().map(ToString::to_string);
        let options = host.options().trust(trust).reads_mcp_json(true);
        let session = host.ennead.open(options).await.unwrap();
        let outcome = session.prompt("use mcp__own__echo").await.unwrap();
        let case = format!("{trust:?} {settings:?}");
        assert_eq!(!results(&outcome)[0].0, server, "{case}: {:?}", results(&outcome));
        assert_eq!(n_starts(host.directory.path()), usize::from(server), "{case}");
        check_usable(&session).await;
    }
}

#[tokio::test]
async fn servers_of_a_project_that_are_in_no_file_are_told_and_the_session_goes_on() {
    type Way = (fn(&Path), &'static str);
    let none: [Way; 2] = [
        (fifo, "it is not a regular file"),
        (|path| std::os::unix::fs::symlink("/dev/zero", path).unwrap(), "it is a link that leads"),
    ];
    for (make, why) in none {
        let host = start(&pauses()).await;
        make(&host.path(".mcp.json"));
        let options = host.options().trust(Trust::Trusted).reads_mcp_json(true);
        let session = host.ennead.open(options).await.unwrap();
        let notes = notes(&session).await.join("\n");
        assert!(notes.starts_with(&format!(".mcp.json is not used: {why}")), "{notes}");
        check_usable(&session).await;
    }
}
#[tokio::test]
async fn server_of_the_options_wins_over_one_of_the_project() {
    let host = start(&pauses()).await;
    let file = json!({ "mcpServers": { "srv": { "command": "/nowhere" } } });
    std::fs::write(host.path(".mcp.json"), file.to_string()).unwrap();
    let options = with_server(&host).trust(Trust::Trusted).reads_mcp_json(true);
    let session = host.ennead.open(options).await.unwrap();
    let outcome = session.prompt("use mcp__srv__echo").await.unwrap();
    assert!(!only_result(&outcome).0);
}

#[tokio::test]
async fn tool_of_the_options_wins_over_one_of_the_project_whose_name_becomes_the_same() {
    let host = start(&pauses()).await;
    let file = json!({ "mcpServers": { "a.b": entry() } });
    std::fs::write(host.path(".mcp.json"), file.to_string()).unwrap();
    // By name, the one of the project would come first.
    let options =
        host.options().mcp_server(configured("a_b")).trust(Trust::Trusted).reads_mcp_json(true);
    let session = host.ennead.open(options).await.unwrap();
    let alerts = notes(&session).await;
    let why = "echo of MCP server `a.b` is not offered: there is a tool of that name";
    assert!(alerts.iter().any(|it| it == why), "{alerts:?}");
    assert!(!alerts.iter().any(|it| it.contains("`a_b` is not offered: there is")), "{alerts:?}");
}

#[tokio::test]
async fn session_that_cannot_have_its_id_starts_no_server() {
    let host = start(&pauses()).await;
    let options = with_server(&host).id("no uuid");
    assert!(matches!(host.ennead.open(options).await, Err(OpenError::BadId(_))));
    assert_eq!(n_starts(host.directory.path()), 0);
}
