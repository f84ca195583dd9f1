//! Signals: a run is interrupted and its transcript ended in order; a server stops.

use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Child, Command, Stdio},
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use ennead::{
    Endpoint, Ennead, Options, Placement, SessionOptions,
    tool::{Access, CustomTool},
};
use ennead_command::signals::Signals;
use rustix::{
    io::Errno,
    process::{Pid, Signal, kill_process},
};
use serde_json::json;

use super::{CommandDirs, Simulation, text};
use crate::support::model_server::{ModelServer, Reply};

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// `expected` is what standard error says first. Then the run is under way, and waits.
#[track_caller]
fn check(prompt: &str, expected: &str, signal: Signal, code: i32) {
    let place = CommandDirs::new();
    let server = Simulation::start(&place);
    let mut child = server.command(&place, &["-p", prompt]).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(line.contains(expected), "{line}");
    send(&child, signal);
    assert_eq!(child.wait().unwrap().code(), Some(code));
    let mut printed = String::new();
    child.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    assert!(printed.contains("interrupted"), "{printed}");
    let verified = place.run(&["verify", text(&place.transcript(".transcripts"))]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
}

// REQ: SUR-2
#[test]
fn ctrl_c_interrupts_the_run_and_ends_with_130() {
    check("busy", "rate_limit", Signal::INT, 130);
}

// REQ: SUR-2
#[test]
fn sigterm_interrupts_the_run_and_ends_with_143() {
    check("busy", "rate_limit", Signal::TERM, 143);
}

// REQ: SUR-2, MDL-13
#[test]
fn call_that_waits_for_the_provider_says_so_and_can_be_interrupted() {
    check("limited", "at least, because the provider's rate limit is reached", Signal::INT, 130);
}

// REQ: SUR-2
#[test]
fn a_second_signal_ends_the_command_although_its_thread_is_blocked() {
    let place = CommandDirs::new();
    let server = Simulation::start(&place);
    // A pipe that is full and that nobody reads: the thread that prints the answer is blocked for good.
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(&[b'x'; 65_536]).unwrap();
    let mut command = server.command(&place, &["-p", "hello"]);
    let mut child = command.stdout(writer).stderr(Stdio::null()).spawn().unwrap();
    let pid = Pid::from_child(&child);
    let (sender, ended) = mpsc::channel();
    thread::spawn(move || sender.send(child.wait().unwrap().code()));
    let step = || ended.recv_timeout(Duration::from_millis(100));
    let has_run = || {
        let files =
            std::fs::read_dir(place.work().join(".transcripts")).into_iter().flatten().flatten();
        files.into_iter().any(|it| {
            std::fs::read_to_string(it.path()).is_ok_and(|it| it.contains(r#""run_end""#))
        })
    };
    assert!((0..600).any(|_| has_run() || step().is_ok()), "there is no answer");
    // Signals that come close together count as one, so they are sent until the command has ended.
    let code = (0..STEPS_OF_TWO_SIGNALS).find_map(|_| {
        signal_if_there(pid, Signal::TERM);
        step().ok()
    });
    assert_eq!(code, Some(Some(143)));
    drop(reader);
}

/// Sends a signal to a process that may have ended between two steps.
fn signal_if_there(pid: Pid, signal: Signal) {
    let sent = kill_process(pid, signal);
    assert!(matches!(sent, Ok(()) | Err(Errno::SRCH)), "{sent:?}");
}

/// Steps of a tenth of a second after a first signal: the second one is sent with the next step, and two
/// seconds later the process has ended.
const STEPS_OF_TWO_SIGNALS: usize = 22;

/// What `embedder` writes once its scheduler thread is blocked.
const BLOCKED: &str = "the only scheduler thread is blocked";

/// Not a test: the embedder of the next one, in a process of its own. It takes signals as the command
/// does, and its tool blocks the only scheduler thread for good.
#[test]
#[ignore = "it never ends by itself"]
#[expect(clippy::print_stdout, reason = "its parent waits for it")]
fn embedder() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut signals = Signals::take().await.unwrap();
        let server = ModelServer::start(|_| {
            let call = json!({"type": "tool_use", "id": "t1", "name": "block", "input": {}});
            Reply::message(vec![call], "tool_use")
        })
        .await;
        let place = CommandDirs::new();
        let options = Options::default().placement(Placement::Threads(1));
        let ennead = Ennead::start(options).await.unwrap();
        let tool = CustomTool::raw("block", "Blocks.", r#"{"type":"object"}"#, |_, _| async move {
            println!("{BLOCKED}");
            loop {
                thread::park();
            }
        });
        let endpoint = Endpoint::messages(server.address(), None);
        let options = SessionOptions::new(place.work(), endpoint)
            .isolated()
            .home(place.work())
            .tools(vec![Arc::new(tool.access(Access::Free).build().unwrap())]);
        let session = ennead.open(options).await.unwrap();
        let mut run = std::pin::pin!(session.prompt("go"));
        tokio::select! {
            outcome = &mut run => panic!("{outcome:?}"),
            _ = signals.next() => {}
        }
        session.interrupt();
        let outcome = run.await;
        panic!("{outcome:?}");
    });
}

// REQ: SUR-2
#[test]
fn a_second_signal_ends_the_process_although_a_scheduler_thread_is_blocked() {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["surfaces::command::signals::embedder", "--exact", "--ignored", "--nocapture"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let is_blocked = lines.map_while(Result::ok).any(|it| it.contains(BLOCKED));
    assert!(is_blocked, "{:?}", child.wait());
    let pid = Pid::from_child(&child);
    let (sender, ended) = mpsc::channel();
    thread::spawn(move || sender.send(child.wait().unwrap().code()));
    let step = |signal| {
        signal_if_there(pid, signal);
        ended.recv_timeout(Duration::from_millis(100)).ok()
    };
    // Signals that come close together count as one.
    let code = (0..STEPS_OF_TWO_SIGNALS).find_map(|_| step(Signal::INT));
    assert_eq!(code, Some(Some(130)));
}

// REQ: MDL-11
#[test]
fn a_simulated_server_stops_on_a_signal() {
    let place = CommandDirs::new();
    let mut server = Simulation::start(&place);
    send(&server.child, Signal::TERM);
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}
