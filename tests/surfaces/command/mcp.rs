//! `--mcp-config`, `--strict-mcp-config` and `.mcp.json`.

use std::{fs::File, io::Read};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::json;

use super::{CommandDirs, Simulation, text};
use crate::support::{
    mcp_server::{entry, last_pid, n_starts},
    processes::fifo,
};

fn configuration() -> String {
    json!({ "mcpServers": { "srv": entry() } }).to_string()
}
#[test]
fn tools_of_servers_are_used_by_rule_and_the_transcript_is_in_order() {
    let inline = configuration();
    for (file, flags, starts) in [
        (None, &["--mcp-config", &*inline][..], 1),
        (Some("servers.json"), &["--mcp-config", "servers.json"], 1),
        (Some(".mcp.json"), &["--trust"], 1),
        (Some(".mcp.json"), &[], 0),
        (Some(".mcp.json"), &["--trust", "--strict-mcp-config"], 0),
        (
            Some(".mcp.json"),
            &["--trust", "--settings", r#"{"disabledMcpjsonServers": ["srv"]}"#],
            0,
        ),
    ] {
        let place = CommandDirs::new();
        let server = Simulation::start(&place);
        if let Some(name) = file {
            place.file(name, &inline);
        }
        let args = [&["-p", "mcp", "--allowedTools", "mcp__srv", "--model", "m"], flags].concat();
        let ended = server.run(&place, &args);
        assert_eq!(ended.code, Some(0), "{flags:?}: {ended:?}");
        assert_eq!(n_starts(&place.work()), starts, "{flags:?}: {ended:?}");
        assert_eq!(ended.stdout.contains("heard {}"), starts == 1, "{flags:?}: {ended:?}");
        let verified = place.run(&["verify", text(&place.transcript(".transcripts"))]);
        assert_eq!(verified.code, Some(0), "{verified:?}");
    }
}
#[test]
fn server_that_fails_or_cannot_be_spoken_to_is_told_on_standard_error() {
    let place = CommandDirs::new();
    let server = Simulation::start(&place);
    let servers = json!({ "mcpServers": {
        "gone": { "command": "/nowhere/at-all" },
        "other": { "type": "ws", "url": "ws://127.0.0.1:1" },
        "remote": { "type": "http", "url": "http://127.0.0.1:1/mcp" },
    } });
    let args = ["-p", "hey", "--model", "m", "--mcp-config", &servers.to_string()];
    let ended = server.run(&place, &args);
    assert_eq!((ended.code, &*ended.stdout), (Some(0), "m: hey\n"), "{ended:?}");
    for expected in [
        "MCP server `gone` failed: cannot start /nowhere/at-all",
        "MCP server `other` is skipped: the type \"ws\" is not supported",
        "MCP server `remote` failed: cannot connect to http://127.0.0.1:1/mcp",
    ] {
        assert!(ended.stderr.contains(expected), "{expected}: {}", ended.stderr);
    }
}

// REQ: SUR-2, TOL-8
#[test]
fn ctrl_c_ends_the_wait_for_a_server_and_the_server() {
    let place = CommandDirs::new();
    let server = Simulation::start(&place);
    fifo(&place.work().join("alive"));
    let script = "exec 3> alive; echo up >&3; exec sleep 100000";
    let servers = json!({ "mcpServers": { "s": { "command": "sh", "args": ["-c", script] } } });
    let args = ["-p", "hey", "--model", "m", "--mcp-config", &servers.to_string()];
    let mut child = server.command(&place, &args).spawn().unwrap();
    let mut alive = File::open(place.work().join("alive")).unwrap();
    alive.read_exact(&mut [0]).unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    // It ends when nobody has it open any more.
    alive.read_to_string(&mut String::new()).unwrap();
}

// REQ: SUR-2, TOL-8
#[test]
fn session_that_cannot_be_opened_leaves_no_server() {
    let place = CommandDirs::new();
    let server = Simulation::start(&place);
    place.file(".transcripts", "where a directory must be");
    let ended =
        server.run(&place, &["-p", "hey", "--model", "m", "--mcp-config", &configuration()]);
    assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{ended:?}");
    assert_eq!(n_starts(&place.work()), 1);
    let pid = Pid::from_raw(last_pid(&place.work()).try_into().unwrap()).unwrap();
    assert!(test_kill_process(pid).is_err(), "it is gone when the command is");
}
