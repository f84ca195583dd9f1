//! Signals: a run is interrupted and its transcript ended in order; a server stops.

use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Child, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use super::{Place, Server, text};

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// `told` is what standard error says first. Then the run is under way, and waits.
#[track_caller]
fn check(prompt: &str, told: &str, signal: Signal, code: i32) {
    let place = Place::new();
    let server = Server::start(&place);
    let mut child = server.command(&place, &["-p", prompt]).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(line.contains(told), "{line}");
    send(&child, signal);
    assert_eq!(child.wait().unwrap().code(), Some(code));
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("interrupted"), "{said}");
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
    let place = Place::new();
    let server = Server::start(&place);
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
    // Signals that come close together count as one, so they are sent until the command has ended; where
    // only its blocked thread hears them that is never.
    let code = (0..600).find_map(|_| {
        kill_process(pid, Signal::TERM).unwrap();
        step().ok()
    });
    assert_eq!(code, Some(Some(143)));
    drop(reader);
}

// REQ: MDL-11
#[test]
fn a_simulated_server_stops_on_a_signal() {
    let place = Place::new();
    let mut server = Server::start(&place);
    send(&server.child, Signal::TERM);
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}
