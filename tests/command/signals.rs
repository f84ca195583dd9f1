//! Signals: a run is interrupted and its transcript ended in order; a server stops.

use std::{
    io::{BufRead, BufReader, Read},
    process::Child,
};

use rustix::process::{Pid, Signal, kill_process};

use super::{Place, Server, text};

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

#[track_caller]
fn check(signal: Signal, code: i32) {
    let place = Place::new();
    let server = Server::start(&place);
    let mut child = server.command(&place, &["-p", "busy"]).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    // It is told that the model is asked again; then the run is under way.
    stderr.read_line(&mut line).unwrap();
    assert!(line.contains("rate_limit"), "{line}");
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
    check(Signal::INT, 130);
}

// REQ: SUR-2
#[test]
fn sigterm_interrupts_the_run_and_ends_with_143() {
    check(Signal::TERM, 143);
}

// REQ: MDL-11
#[test]
fn a_simulated_server_stops_on_a_signal() {
    let place = Place::new();
    let mut server = Server::start(&place);
    send(&server.child, Signal::TERM);
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}
