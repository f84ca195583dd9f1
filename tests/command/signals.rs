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

// REQ: MDL-11
#[test]
fn a_simulated_server_stops_on_a_signal() {
    let place = Place::new();
    let mut server = Server::start(&place);
    send(&server.child, Signal::TERM);
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}
