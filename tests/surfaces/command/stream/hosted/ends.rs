//! How hosted programs end: by signals, by death, with their host, and unread.

use super::*;

/// A client whose run is under way: its model has a command run that takes long.
fn busy(place: &CommandDirs, server: &Simulation) -> (Child, Value) {
    let mut command =
        attached(place, server, &["--model", "m", "--allowed-tools", "Bash(sleep *)"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let input = prompt("sleep");
    child.stdin.as_mut().unwrap().write_all(input.as_bytes()).unwrap();
    let stdout = child.stdout.as_mut().unwrap();
    let mut lines = BufReader::new(stdout).lines();
    let mut lines = lines.by_ref().map(|it| serde_json::from_str::<Value>(&it.unwrap()).unwrap());
    let call = lines.find(|it| it["type"] == "assistant").unwrap();
    (child, call["session_id"].clone())
}

/// Ends when the run of a session is recorded as ended.
#[track_caller]
fn wait_for_run_end(place: &CommandDirs, session: &Value) {
    let name = format!("{}.jsonl", session.as_str().unwrap());
    let has_ended = || {
        let dirs = fs::read_dir(place.work().join("../config/projects")).unwrap().flatten();
        dirs.map(|it| it.path().join(&name))
            .any(|it| fs::read_to_string(it).is_ok_and(|it| it.contains(r#""run_end""#)))
    };
    let waited = (0..600).any(|_| {
        has_ended() || {
            thread::sleep(Duration::from_millis(50));
            false
        }
    });
    assert!(waited, "the run has not ended");
}

// REQ: SUR-3
#[test]
fn signal_to_a_client_ends_its_run_and_no_other() {
    let (place, server) = (CommandDirs::new(), Simulation::start(&CommandDirs::new()));
    let _host = HostProcess::start(&place, &server);
    let (mut first, session) = busy(&place, &server);
    let (mut second, _) = busy(&place, &server);
    kill_process(Pid::from_child(&first), Signal::TERM).unwrap();
    assert_eq!(first.wait().unwrap().code(), Some(143));
    wait_for_run_end(&place, &session);
    assert!(second.try_wait().unwrap().is_none());
    kill_process(Pid::from_child(&second), Signal::INT).unwrap();
    assert_eq!(second.wait().unwrap().code(), Some(130));
}

// REQ: SUR-3
#[test]
fn run_of_a_client_that_was_killed_ends() {
    let (place, server) = (CommandDirs::new(), Simulation::start(&CommandDirs::new()));
    let _host = HostProcess::start(&place, &server);
    let (mut client, session) = busy(&place, &server);
    client.kill().unwrap();
    client.wait().unwrap();
    wait_for_run_end(&place, &session);
    let ended = with_input(attached(&place, &server, &["--model", "m"]), prompt("one").as_bytes());
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

// REQ: SUR-3
#[test]
fn client_whose_host_is_gone_says_so_and_one_whose_host_ends_is_told() {
    let (place, server) = (CommandDirs::new(), Simulation::start(&CommandDirs::new()));
    let mut host = HostProcess::start(&place, &server);
    let (mut client, session) = busy(&place, &server);
    kill_process(host.pid(), Signal::TERM).unwrap();
    assert_eq!(client.wait().unwrap().code(), Some(143));
    assert_eq!(host.child.wait().unwrap().code(), Some(0));
    wait_for_run_end(&place, &session);
    assert!(!host.socket.exists());
    let host = HostProcess::start(&place, &server);
    let (client, _) = busy(&place, &server);
    drop(host);
    let ended: Ended = client.wait_with_output().unwrap().into();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("the host that served this session is gone"), "{ended:?}");
}

/// Ends when a child has ended, within a limit.
#[track_caller]
fn ended_by(child: &mut Child, signal: Signal) -> Option<i32> {
    kill_process(Pid::from_child(child), signal).unwrap();
    let waited = (0..200).find_map(|_| {
        let ended = child.try_wait().unwrap();
        ended.is_none().then(|| thread::sleep(Duration::from_millis(50)));
        ended
    });
    waited.expect("it has not ended within ten seconds").code()
}

// REQ: SUR-3
#[test]
fn program_that_does_not_read_holds_neither_its_client_nor_the_host_open() {
    let (place, server) = (CommandDirs::new(), Simulation::start(&CommandDirs::new()));
    let mut host = HostProcess::start(&place, &server);
    let unread = || {
        let mut command = attached(&place, &server, &["--model", "m"]);
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let long = "x".repeat(200_000);
        let input: String = (0..20).map(|_| prompt(&long)).collect();
        let mut stdin = child.stdin.take().unwrap();
        // Its pipes are full at some time, and then its run is under way.
        thread::spawn(move || stdin.write_all(input.as_bytes()));
        let mut begun = [0; 1];
        child.stdout.as_mut().unwrap().read_exact(&mut begun).unwrap();
        child
    };
    let mut client = unread();
    assert_eq!(ended_by(&mut client, Signal::TERM), Some(143));
    // Another one is there when the host ends.
    let mut client = unread();
    assert_eq!(ended_by(&mut host.child, Signal::TERM), Some(0));
    client.kill().unwrap();
    client.wait().unwrap();
}

// REQ: SUR-3
#[test]
fn signal_is_not_behind_input_that_nobody_takes() {
    let (place, server) = (CommandDirs::new(), Simulation::start(&CommandDirs::new()));
    let _host = HostProcess::start(&place, &server);
    let more = ["-p", "sleep", "--output-format", "stream-json", "--host", "auto", "--model", "m"];
    let more = [&more[..], &["--verbose", "--allowed-tools", "Bash(sleep *)"]].concat();
    let mut child = here(&place, &server, &more).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = "a line that is not asked for\n".repeat(400_000);
    let writing = thread::spawn(move || stdin.write_all(input.as_bytes()));
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|it| it.unwrap().contains("tool_use")));
    assert_eq!(ended_by(&mut child, Signal::INT), Some(130));
    let _cut = writing.join().unwrap();
}

// REQ: SUR-3
#[test]
fn session_of_a_client_that_is_killed_while_it_opens_can_be_opened_again() {
    let (place, server) = (CommandDirs::new(), Simulation::start(&CommandDirs::new()));
    let _host = HostProcess::start(&place, &server);
    // A server that never answers has the opening wait for a while.
    let slow = json!({ "command": "sh", "args": ["-c", ": > started; exec sleep 600"] });
    place.file("servers.json", &json!({ "mcpServers": { "slow": slow } }).to_string());
    let id = "0b8f3a52-77aa-4c57-8c0e-5d2d8f1f6a91";
    let more = ["--model", "m", "--session-id", id, "--mcp-config", "servers.json", "--trust"];
    let mut command = attached(&place, &server, &more);
    command.env("ENNEAD_MCP_WAIT", "30000");
    let mut client = command.stdin(Stdio::piped()).spawn().unwrap();
    client.stdin.as_mut().unwrap().write_all(initialize().as_bytes()).unwrap();
    let is_opening = || place.work().join("started").exists();
    let waited = (0..600).any(|_| {
        is_opening() || {
            thread::sleep(Duration::from_millis(20));
            false
        }
    });
    assert!(waited, "it does not open");
    client.kill().unwrap();
    client.wait().unwrap();
    let again = || {
        let resumed = ["--model", "m", "--session-id", id];
        with_input(attached(&place, &server, &resumed), prompt("one").as_bytes())
    };
    let opened = (0..60).any(|_| {
        again().code == Some(0) || {
            thread::sleep(Duration::from_millis(500));
            false
        }
    });
    assert!(opened, "{:?}", again());
}
