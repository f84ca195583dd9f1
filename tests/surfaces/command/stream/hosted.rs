//! `--host auto`: one process serves the sessions of many programs, which read what they would read without it.

mod ends;

use std::{os::unix::fs::MetadataExt as _, path::PathBuf, thread, time::Duration};

use super::*;

/// `ennead host` for programs that ask this server, until it is dropped.
struct HostProcess {
    child: Child,
    socket: PathBuf,
}

/// A command in the environment that the host of these tests has.
fn here(place: &CommandDirs, server: &Simulation, args: &[&str]) -> Command {
    let mut command = server.command(place, args);
    command.env("CLAUDE_CONFIG_DIR", place.work().join("../config"));
    command.env("XDG_RUNTIME_DIR", place.work().join("../run"));
    command
}

fn attached(place: &CommandDirs, server: &Simulation, more: &[&str]) -> Command {
    here(place, server, &[&DRIVEN[..], &["--host", "auto"], more].concat())
}

impl HostProcess {
    fn start(place: &CommandDirs, server: &Simulation) -> Self {
        Self::of(place, here(place, server, &["host"]))
    }

    fn of(place: &CommandDirs, mut command: Command) -> Self {
        fs::create_dir_all(place.work().join("../run")).unwrap();
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        let socket = PathBuf::from(crate::support::command::first_line(&mut child));
        assert_eq!(fs::metadata(&socket).unwrap().mode() & 0o777, 0o600);
        Self { child, socket }
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for HostProcess {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

/// The process that writes a transcript, as its lock says.
fn writer_of(place: &CommandDirs, session: &Value) -> String {
    let projects = place.work().join("../config/projects");
    let dirs = fs::read_dir(projects).into_iter().flatten().flatten();
    let locks = dirs.map(|it| it.path().join(format!("{}.lock", session.as_str().unwrap())));
    let found: Vec<String> = locks.filter_map(|it| fs::read_to_string(it).ok()).collect();
    found.concat()
}

/// What is the same of two processes: without ids, times and costs.
fn comparable(lines: &[Value]) -> Vec<String> {
    let mut lines = lines.to_vec();
    for line in &mut lines {
        strip(line);
    }
    lines.iter().map(Value::to_string).collect()
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !name.ends_with("_ms") && !name.ends_with("uuid"));
            for name in ["session_id", "id", "durationMs", "timestamp", "user_message_id", "pid"] {
                fields.remove(name);
            }
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

// REQ: SUR-3
#[test]
fn program_reads_the_same_lines_from_a_host_as_from_its_own_process() {
    let (place, server) = (CommandDirs::new(), Simulation::start(&CommandDirs::new()));
    place.file("settings.json", r#"{"permissions":{"deny":["Write"]}}"#);
    let more = ["--model", "m", "--settings", "settings.json"];
    let input = [initialize(), prompt("one"), prompt("write"), prompt("loop"), prompt("x\u{1b}y")];
    let input = input.concat();
    let alone = with_input(attached(&place, &server, &more), input.as_bytes());
    let host = HostProcess::start(&place, &server);
    let hosted = with_input(attached(&place, &server, &more), input.as_bytes());
    assert_eq!((alone.code, &*alone.stderr), (Some(0), ""), "{alone:?}");
    assert_eq!((hosted.code, &*hosted.stderr), (Some(0), ""), "{hosted:?}");
    let (alone, hosted) = (lines(&alone), lines(&hosted));
    assert_eq!(comparable(&hosted), comparable(&alone));
    assert_eq!(of_type(&hosted, "result").len(), 4);
    let id = &of_type(&hosted, "result")[0]["session_id"];
    assert_ne!(id, &of_type(&alone, "result")[0]["session_id"]);
    // A session of the host goes on in a process of its own, and the other way round.
    drop(host);
    let resume = format!("--resume={}", id.as_str().unwrap());
    let again = with_input(attached(&place, &server, &[&resume]), prompt("two").as_bytes());
    assert_eq!(again.code, Some(0), "{again:?}");
    let _host = HostProcess::start(&place, &server);
    let again = with_input(attached(&place, &server, &[&resume]), prompt("three").as_bytes());
    assert_eq!((again.code, &lines(&again)[0]["session_id"]), (Some(0), id));
}

// REQ: SUR-3
#[test]
fn bad_input_is_told_by_the_client_as_by_a_process_of_its_own() {
    let (place, server) = (CommandDirs::new(), Simulation::start(&CommandDirs::new()));
    let bad: [&[&str]; 4] = [
        &["--settings", "none.json"],
        &["--permission-mode", "odd"],
        &["--add-dir", "nowhere"],
        &["--resume=0b8f3a52-77aa-4c57-8c0e-5d2d8f1f6a90"],
    ];
    let ends = || bad.map(|more| with_input(attached(&place, &server, more), b""));
    let alone = ends();
    let _host = HostProcess::start(&place, &server);
    for (alone, hosted) in alone.iter().zip(ends()) {
        assert_eq!(hosted.code, alone.code, "{hosted:?}");
        assert_eq!(comparable(&lines(&hosted)), comparable(&lines(alone)));
        // Names of files are whole there.
        let work = format!("{}/", place.work().display());
        assert_eq!(hosted.stderr.replace(&work, ""), alone.stderr.replace(&work, ""));
    }
}

// REQ: SUR-3
#[test]
fn hundred_programs_share_one_process() {
    let (place, server) = (CommandDirs::new(), Simulation::start(&CommandDirs::new()));
    let host = HostProcess::start(&place, &server);
    let mut clients: Vec<Child> = (0..100)
        .map(|_| {
            let mut command = attached(&place, &server, &["--model", "m"]);
            command.stdin(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let mut outputs: Vec<_> =
        clients.iter_mut().map(|it| BufReader::new(it.stdout.take().unwrap()).lines()).collect();
    let mut ask = |round: &str| -> Vec<Value> {
        for (n, client) in clients.iter_mut().enumerate() {
            let prompt = prompt(&format!("{round} {n}"));
            client.stdin.as_mut().unwrap().write_all(prompt.as_bytes()).unwrap();
        }
        let results = outputs.iter_mut().enumerate().map(|(n, lines)| {
            let mut read = lines.map(|it| serde_json::from_str::<Value>(&it.unwrap()).unwrap());
            let result = read.find(|it| it["type"] == "result").unwrap();
            assert_eq!(result["result"], format!("m: {round} {n}"));
            result["session_id"].clone()
        });
        results.collect()
    };
    let first = ask("one");
    // All are at work at the same time, and keep their sessions.
    assert_eq!(ask("two"), first);
    let distinct: std::collections::BTreeSet<&str> =
        first.iter().map(|it| it.as_str().unwrap()).collect();
    assert_eq!(distinct.len(), 100);
    let writer = writer_of(&place, &first[99]);
    assert!(writer.contains(&host.child.id().to_string()), "{writer}");
    for mut client in clients {
        drop(client.stdin.take());
        assert_eq!(client.wait().unwrap().code(), Some(0));
    }
}

// REQ: SUR-3
#[test]
fn program_of_another_environment_serves_itself_and_says_why() {
    let (place, server) = (CommandDirs::new(), Simulation::start(&CommandDirs::new()));
    let _host = HostProcess::start(&place, &server);
    let mut other = attached(&place, &server, &["--model", "m"]);
    other.env("ANTHROPIC_API_KEY", "wrong").env("OTHER", "1");
    let ended = with_input(other, prompt("one").as_bytes());
    let why = "does not serve this: its environment has another ANTHROPIC_API_KEY, OTHER";
    assert!(ended.stderr.contains(why), "{ended:?}");
    assert!(!ended.stderr.contains("wrong"));
    // It asks with its own key, which the server refuses.
    let result = lines(&ended);
    assert_eq!(of_type(&result, "result")[0]["is_error"], true, "{result:?}");
}

// REQ: SUR-3, MDL-11
#[test]
fn program_whose_settings_name_a_server_is_not_answered_by_a_simulated_host() {
    let (place, server) = (CommandDirs::new(), Simulation::start(&CommandDirs::new()));
    let without_server = |mut command: Command| {
        command.env_remove("ANTHROPIC_BASE_URL").env_remove("ANTHROPIC_API_KEY");
        command
    };
    let _host = HostProcess::of(&place, without_server(here(&place, &server, &["host"])));
    let config = place.work().join("../config");
    fs::create_dir_all(&config).unwrap();
    let env = json!({"ANTHROPIC_BASE_URL": server.address, "ANTHROPIC_API_KEY": "right"});
    fs::write(config.join("settings.json"), json!({"env": env}).to_string()).unwrap();
    let client = without_server(attached(&place, &server, &["--model", "m"]));
    let ended = with_input(client, prompt("one").as_bytes());
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let why =
        "the host asks the simulated model, and the settings of this program name a model server";
    assert!(ended.stderr.contains(why), "{ended:?}");
}

// REQ: SUR-3
#[test]
fn program_chooses_by_variables_of_its_own_how_it_is_served() {
    let (place, server) = (CommandDirs::new(), Simulation::start(&CommandDirs::new()));
    let _host = HostProcess::start(&place, &server);
    for model in ["m-1", "m-2"] {
        let mut client = attached(&place, &server, &[]);
        client.env("ANTHROPIC_MODEL", model);
        let ended = with_input(client, prompt("one").as_bytes());
        assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{ended:?}");
        let expected = format!("{model}: one");
        assert_eq!(of_type(&lines(&ended), "result")[0]["result"], expected);
    }
}

// REQ: SUR-3
#[test]
fn flag_of_the_log_has_no_effect_in_a_host_which_the_program_reads() {
    let (place, server) = (CommandDirs::new(), Simulation::start(&CommandDirs::new()));
    let _host = HostProcess::start(&place, &server);
    let ended = with_input(attached(&place, &server, &["--debug"]), prompt("one").as_bytes());
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{ended:?}");
    let lines = lines(&ended);
    let mut told = of_type(&lines, "system").into_iter().filter_map(|it| it["content"].as_str());
    assert!(told.any(|it| it == "--debug has no effect in a host"), "{ended:?}");
}

// REQ: SUR-3
#[test]
fn second_host_is_refused_and_a_socket_that_was_left_behind_is_not() {
    let (place, server) = (CommandDirs::new(), Simulation::start(&CommandDirs::new()));
    let host = HostProcess::start(&place, &server);
    let second: Ended = here(&place, &server, &["host"]).output().unwrap().into();
    assert_eq!(second.code, Some(5), "{second:?}");
    assert!(second.stderr.contains("is listening"), "{second:?}");
    kill_process(host.pid(), Signal::KILL).unwrap();
    let socket = host.socket.clone();
    drop(host);
    assert!(socket.exists());
    let ended = with_input(attached(&place, &server, &["--model", "m"]), prompt("one").as_bytes());
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{ended:?}");
    let next = HostProcess::start(&place, &server);
    assert_eq!(next.socket, socket);
}

// REQ: SUR-3
#[test]
fn what_is_no_client_holds_nothing_up() {
    use std::os::unix::net::UnixStream;
    let (place, server) = (CommandDirs::new(), Simulation::start(&CommandDirs::new()));
    let host = HostProcess::start(&place, &server);
    let silent = UnixStream::connect(&host.socket).unwrap();
    let mut odd = UnixStream::connect(&host.socket).unwrap();
    odd.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut left = Vec::new();
    // Closed, with or without a reset.
    let _reset = odd.read_to_end(&mut left);
    assert_eq!(left, b"");
    let ended = with_input(attached(&place, &server, &["--model", "m"]), prompt("one").as_bytes());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    drop(silent);
}
