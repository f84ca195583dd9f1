//! How the command ends: with its input, or by a signal.

use std::io::BufRead;

use serde_json::json;

use super::{
    super::{CommandDirs, Simulation},
    Driver, driven, initialize, prompt,
};

// REQ: SUR-3, HKS-1
#[test]
fn session_whose_program_has_hooks_ends_with_its_input() {
    let (place, server) = (CommandDirs::new(), Simulation::start(&CommandDirs::new()));
    let mut driver = Driver::start(driven(&place, &server, &[]));
    let hooks = json!({"SessionEnd": [{"matcher": null, "hookCallbackIds": ["hook_0"]}]});
    let request = json!({"subtype": "initialize", "hooks": hooks});
    let request = json!({"type": "control_request", "request_id": "r1", "request": request});
    driver.write(&format!("{request}\n"));
    driver.write(&prompt("one"));
    while driver.next()["type"] != "result" {}
    drop(driver.child.stdin.take());
    assert!(driver.child.wait().unwrap().success());
}

// REQ: SUR-3
#[test]
fn one_signal_ends_a_command_whose_last_lines_nobody_reads() {
    let (place, server) = (CommandDirs::new(), Simulation::start(&CommandDirs::new()));
    let mut driver = Driver::start(driven(&place, &server, &["--model", "m"]));
    driver.write(&initialize());
    // Its answer is longer than what a pipe holds.
    driver.write(&prompt(&"x".repeat(200_000)));
    drop(driver.child.stdin.take());
    while driver.next()["subtype"] != "init" {}
    assert!(!driver.output.fill_buf().unwrap().is_empty(), "the answer is being written");
    let pid = rustix::process::Pid::from_raw(driver.child.id().try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(driver.child.wait().unwrap().code(), Some(143));
}
