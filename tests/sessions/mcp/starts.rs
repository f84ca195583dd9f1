//! How long a session waits for its servers, and what a call under way tells.

use std::{
    fs::File,
    io::{Read, Write},
    time::Duration,
};

use ennead::{Event, tool::ServerConfig};
use ennead_runtime::mcp::{config::ServerTransport, state::ServerState};
use tokio::{sync::oneshot, time::timeout};

use super::{notes, only_result, open, pauses, start};
use crate::support::{
    barrier::Barrier,
    events::EventLog,
    held_timer::HeldTimer,
    host::{Host, check_usable, interrupted, prompt},
    mcp_server::{configured, n_starts},
    processes::fifo,
};

/// More than any of this takes.
pub(super) const LIMIT: Duration = Duration::from_secs(20);

/// A server that first does what this command says.
pub(super) fn started_by(name: &str, command: &str) -> ServerConfig {
    let mut config = configured(name);
    let ServerTransport::Stdio(program) = &mut config.reach else { panic!("it is a process") };
    let run = format!("{command}; exec \"$0\" \"$@\"");
    let this = std::mem::replace(&mut program.command, "sh".into());
    program.args.splice(0..0, ["-c".to_owned(), run, this]);
    config
}

/// A pipe that nobody has to wait for to open.
pub(super) fn pipe(host: &Host, name: &str) -> File {
    File::options().read(true).write(true).open(host.path(name)).unwrap()
}

// REQ: TOL-11
#[tokio::test]
async fn servers_of_a_session_start_at_the_same_time() {
    const N: usize = 7;
    let host = start(&pauses()).await;
    fifo(&host.path("up"));
    fifo(&host.path("go"));
    let (mut up, mut go) = (pipe(&host, "up"), pipe(&host, "go"));
    let (done, all_up) = oneshot::channel();
    std::thread::spawn(move || {
        let mut signs = [0; N];
        up.read_exact(&mut signs).unwrap();
        let _nobody_waits = done.send(());
    });
    let names: Vec<String> = (0..N).map(|i| format!("s{i}")).collect();
    let options = names.iter().fold(host.options(), |options, name| {
        options.mcp_server(started_by(name, "printf x > up; read -r _ < go"))
    });
    let opening = host.ennead.open(options);
    // None is let go before all have started.
    let release = async {
        timeout(LIMIT, all_up).await.expect("all start before one is ready").unwrap();
        go.write_all(&[b'\n'; N]).unwrap();
    };
    let (session, ()) = tokio::join!(opening, release);
    let session = session.unwrap();
    let alerts = notes(&session).await;
    assert!(!alerts.iter().any(|it| it.contains("failed")), "{alerts:?}");
    for name in names {
        let outcome = session.prompt(&format!("use mcp__{name}__echo")).await.unwrap();
        assert!(!only_result(&outcome).0, "{name}");
    }
}

// REQ: TOL-11
#[tokio::test]
async fn progress_of_a_call_is_an_event_of_its_session() {
    let host = start(&pauses()).await;
    let session = open(&host).await;
    let mut log = EventLog::new(session.events());
    let run = prompt(&session, "use mcp__srv__step");
    let notes = log.until(|it| matches!(it, Event::ToolProgress { .. }));
    let Event::ToolProgress { tool, percent, text, .. } = timeout(LIMIT, notes).await.unwrap()
    else {
        panic!("another event")
    };
    assert_eq!((tool.as_str(), percent, &*text), ("mcp__srv__step", Some(25), "half of a half"));
    session.interrupt();
    interrupted(run).await;
    check_usable(&session).await;
}

// REQ: TOL-11
#[tokio::test]
async fn program_that_could_not_start_is_started_again_on_request() {
    let host = start(&pauses()).await;
    let server = started_by("srv", "test -e up || exit 1");
    let session = host.ennead.open(host.options().mcp_server(server)).await.unwrap();
    let again =
        || async { timeout(LIMIT, session.reconnect_server("srv")).await.unwrap().unwrap() };
    let failed = again().await;
    assert_eq!(failed.state, ServerState::Failed, "{failed:?}");
    assert!(failed.tools.is_empty(), "{failed:?}");
    std::fs::write(host.path("up"), "").unwrap();
    assert_eq!(again().await.state, ServerState::Connected);
    let outcome = session.prompt("use mcp__srv__echo").await.unwrap();
    assert!(!only_result(&outcome).0, "{outcome:?}");
    check_usable(&session).await;
}

// REQ: TOL-11
#[tokio::test]
async fn server_that_fell_is_connected_again_on_request_without_its_pause() {
    // No pause is over by itself.
    let timer = HeldTimer::at(&Barrier::default()).up_to(Duration::ZERO);
    let host = start(&timer).await;
    let session = open(&host).await;
    for n_started in 2..4 {
        let outcome = session.prompt("use mcp__srv__garble").await.unwrap();
        assert!(only_result(&outcome).0, "{outcome:?}");
        let again = timeout(LIMIT, session.reconnect_server("srv")).await.unwrap().unwrap();
        assert_eq!(again.state, ServerState::Connected, "{again:?}");
        assert_eq!(n_starts(host.directory.path()), n_started);
    }
    check_usable(&session).await;
}
