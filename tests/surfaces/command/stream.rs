//! `--output-format stream-json`: JSON lines in both directions, whatever the program at the other end does.

mod ends;
mod hosted;
mod odd_input;
mod verifiers;

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{CommandDirs, Ended, Simulation, processes::LIMIT, with_input};

const DRIVEN: [&str; 5] =
    ["--output-format", "stream-json", "--verbose", "--input-format", "stream-json"];

fn lines(ended: &Ended) -> Vec<Value> {
    ended.stdout.lines().map(|it| serde_json::from_str(it).unwrap()).collect()
}

fn of_type<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|it| it["type"] == kind).collect()
}

fn prompt(text: &str) -> String {
    json!({"type": "user", "message": {"role": "user", "content": text}}).to_string() + "\n"
}

fn initialize() -> String {
    let request = json!({"subtype": "initialize", "hooks": null});
    json!({"type": "control_request", "request_id": "r1", "request": request}).to_string() + "\n"
}

/// The command, with a configuration directory of its own.
fn driven(place: &CommandDirs, server: &Simulation, more: &[&str]) -> Command {
    let mut command = server.command(place, &[&DRIVEN, more].concat());
    command.env("CLAUDE_CONFIG_DIR", place.work().join("../config"));
    command
}

// REQ: SUR-2, SUR-3
#[test]
fn prompts_that_were_written_before_the_end_are_all_answered() {
    let (place, server) = (CommandDirs::new(), Simulation::start(&CommandDirs::new()));
    let input = [initialize(), prompt("one"), prompt("two"), prompt("three")].concat();
    let ended = with_input(driven(&place, &server, &["--model", "m"]), input.as_bytes());
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{ended:?}");
    let lines = lines(&ended);
    let results: Vec<_> = of_type(&lines, "result").iter().map(|it| &it["result"]).collect();
    assert_eq!(results, ["m: one", "m: two", "m: three"]);
    let ids: Vec<_> = of_type(&lines, "result").iter().map(|it| &it["session_id"]).collect();
    assert!(ids.iter().all(|it| *it == ids[0]));
    assert_eq!(lines[0]["response"]["request_id"], "r1");
    assert_eq!(lines.last().unwrap()["type"], "result");
}

// REQ: SUR-3
#[test]
fn lines_that_are_no_requests_are_reported_and_lose_no_prompt() {
    let (place, server) = (CommandDirs::new(), Simulation::start(&CommandDirs::new()));
    let mut input = b"{\n\xff\xfe\n[1]\nnull\n{\"type\":\"later\"}\n\n".to_vec();
    input.extend_from_slice(
        format!("{{\"type\":\"user\",\"x\":\"{}\"}}\n", "y".repeat(5_000_000)).as_bytes(),
    );
    input.extend_from_slice(
        b"{\"type\":\"control_response\",\"response\":{\"request_id\":\"none\"}}\n",
    );
    let odd =
        json!({"type": "control_request", "request_id": "o", "request": {"subtype": "dance"}});
    input.extend_from_slice(odd.to_string().as_bytes());
    input.push(b'\n');
    // The last line has no end.
    input.extend_from_slice(prompt("still here").trim_end().as_bytes());
    let ended = with_input(driven(&place, &server, &["--model", "m"]), &input);
    let lines = lines(&ended);
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{}", ended.stderr);
    let results = of_type(&lines, "result");
    // A prompt without content is answered by an error.
    assert_eq!(
        (&results[0]["is_error"], &results[1]["result"]),
        (&true.into(), &"m: still here".into())
    );
    assert_eq!(lines.iter().filter(|it| it["subtype"] == "informational").count(), 4);
    let answer = of_type(&lines, "control_response");
    assert_eq!(answer[0]["response"]["error"], "Unsupported control request subtype: dance");
}

// REQ: SUR-3
#[test]
fn end_of_input_without_a_prompt_ends_the_command() {
    let (place, server) = (CommandDirs::new(), Simulation::start(&CommandDirs::new()));
    for input in [String::new(), initialize()] {
        let ended = with_input(driven(&place, &server, &[]), input.as_bytes());
        assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{ended:?}");
    }
}

// REQ: SUR-2
#[test]
fn prompt_of_the_command_line_is_shown_as_lines_too() {
    let (place, server) = (CommandDirs::new(), Simulation::start(&CommandDirs::new()));
    let ended = server
        .run(&place, &["-p", "hey", "--model", "m", "--verbose", "--output-format", "stream-json"]);
    let lines = lines(&ended);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let kinds: Vec<_> = lines.iter().map(|it| it["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["system", "assistant", "result"]);
}

// REQ: SUR-3
#[test]
fn session_is_gone_on_with_by_its_id_and_an_unknown_one_is_a_result() {
    let (place, server) = (CommandDirs::new(), Simulation::start(&CommandDirs::new()));
    let first = with_input(driven(&place, &server, &[]), prompt("one").as_bytes());
    let id = lines(&first)[0]["session_id"].as_str().unwrap().to_owned();
    let resume = format!("--resume={id}");
    for more in [&*resume, "--continue"] {
        let again = with_input(driven(&place, &server, &[more]), prompt("two").as_bytes());
        assert_eq!(again.code, Some(0), "{again:?}");
        assert_eq!(lines(&again)[0]["session_id"], id.as_str(), "{more}");
    }
    let taken = with_input(driven(&place, &server, &["--session-id", &id]), b"");
    assert_eq!(taken.code, Some(1), "{taken:?}");
    let unknown = "0b8f3a52-77aa-4c57-8c0e-5d2d8f1f6a90";
    let resume = format!("--resume={unknown}");
    let ended = with_input(driven(&place, &server, &[&resume]), prompt("two").as_bytes());
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let result = &lines(&ended)[0];
    let expected = format!("No conversation found with session ID: {unknown}");
    assert_eq!(
        (&result["is_error"], &result["errors"][0]),
        (&true.into(), &expected.clone().into())
    );
    assert!(ended.stderr.contains(&expected), "{}", ended.stderr);
}

/// A program that drives the command and can leave at any time. A command that is still there after the
/// limit is killed, so that no test waits for it without an end.
struct Driver {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
    /// Dropped with the driver, after which nothing is killed any more.
    _watched: mpsc::Sender<()>,
}

impl Driver {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (_watched, watch) = mpsc::channel();
        let pid = Pid::from_child(&child);
        std::thread::spawn(move || {
            if watch.recv_timeout(LIMIT) == Err(mpsc::RecvTimeoutError::Timeout) {
                // It may have ended meanwhile.
                let _gone = kill_process(pid, Signal::KILL);
            }
        });
        Self { child, output, _watched }
    }

    fn write(&mut self, line: &str) {
        self.child.stdin.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

// REQ: SUR-3
#[test]
fn program_that_does_not_read_holds_no_request_up() {
    let (place, server) = (CommandDirs::new(), Simulation::start(&CommandDirs::new()));
    let mut driver = Driver::start(driven(&place, &server, &["--model", "m"]));
    driver.write(&initialize());
    // Far more than a pipe holds, and nothing of it is read.
    let long = "x".repeat(60_000);
    for _ in 0..20 {
        driver.write(&prompt(&long));
    }
    driver.write(&prompt("last"));
    drop(driver.child.stdin.take());
    // All prompts were taken, so the command waits for nothing but its reader.
    let mut rest = String::new();
    driver.output.read_to_string(&mut rest).unwrap();
    assert!(driver.child.wait().unwrap().success());
    let results = rest.lines().filter(|it| it.contains(r#""type":"result""#)).count();
    assert_eq!(results, 21);
}

// REQ: SUR-3
#[test]
fn program_that_reads_one_line_and_goes_ends_the_command_in_good_order() {
    let (place, server) = (CommandDirs::new(), Simulation::start(&CommandDirs::new()));
    let mut driver = Driver::start(driven(&place, &server, &["--model", "m"]));
    driver.write(&prompt("one"));
    assert_eq!(driver.next()["subtype"], "init");
    let mut stderr = driver.child.stderr.take().unwrap();
    drop(driver.output);
    // Written into a pipe that nobody reads.
    for _ in 0..10 {
        let Some(input) = &mut driver.child.stdin else { break };
        let _closed = input.write_all(prompt("more").as_bytes());
    }
    let status = driver.child.wait().unwrap();
    let mut text = String::new();
    stderr.read_to_string(&mut text).unwrap();
    assert!(status.code().is_some_and(|it| it != 101) && !text.contains("panicked"), "{text}");
}

// REQ: SUR-3, TOL-8
#[test]
fn program_that_dies_leaves_no_process() {
    let playbook = r#"
key = "right"
[[rule]]
name = "runs"
when.answers = 0
reply = [{ tool = "Bash", input = { command = "echo $$ > shell; sleep 600" } }]
[[rule]]
name = "done"
reply = [{ text = "done" }]
"#;
    let place = CommandDirs::new();
    let server = Simulation::playing(&place, playbook);
    let mut driver = Driver::start(driven(&place, &server, &["--allowedTools", "Bash"]));
    driver.write(&prompt("go"));
    let shell = place.work().join("shell");
    // Lines come until the command waits for its shell.
    while driver.next()["type"] != "assistant" {}
    // It is there before its text is.
    let pid_of = || fs::read_to_string(&shell).unwrap_or_default().trim().to_owned();
    while pid_of().is_empty() {
        assert!(driver.child.try_wait().unwrap().is_none(), "it ended without its shell");
        std::thread::yield_now();
    }
    let shell = pid_of();
    // The kernel closes these ends for a program that is killed. No signal is sent to the command.
    drop((driver.child.stdin.take(), driver.output));
    driver.child.wait().unwrap();
    let alive = fs::read_to_string(format!("/proc/{shell}/stat")).unwrap_or_default();
    assert!(alive.is_empty() || alive.contains(") Z "), "{alive}");
}

// REQ: SUR-3
#[test]
fn run_of_a_program_that_is_gone_is_finished_where_that_is_asked_for() {
    let playbook = r#"
key = "right"
[[rule]]
name = "runs"
when.answers = 0
reply = [{ tool = "Bash", input = { command = "read line < go" } }]
[[rule]]
name = "done"
reply = [{ text = "it is done" }]
"#;
    let place = CommandDirs::new();
    let server = Simulation::playing(&place, playbook);
    let go = place.work().join("go");
    let made = std::process::Command::new("mkfifo").arg(&go).status();
    assert!(made.unwrap().success());
    let flags = ["--allowedTools", "Bash", "--on-disconnect", "finish"];
    let mut driver = Driver::start(driven(&place, &server, &flags));
    driver.write(&prompt("go"));
    let session = driver.next()["session_id"].as_str().unwrap().to_owned();
    while driver.next()["type"] != "assistant" {}
    drop((driver.child.stdin.take(), driver.output));
    // Opening it waits until the command reads, which is after the program is gone.
    fs::write(&go, "on\n").unwrap();
    driver.child.wait().unwrap();
    let file = format!("{session}.jsonl");
    let found = find_file(&place.work().join("../config"), &file).unwrap();
    assert!(fs::read_to_string(found).unwrap().contains("it is done"));
}

/// The file of this name in a directory or below it.
fn find_file(directory: &Path, name: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(directory).ok()?.flatten().map(|it| it.path());
    entries.into_iter().find_map(|it| match it.is_dir() {
        true => find_file(&it, name),
        false => (it.file_name()? == name).then_some(it),
    })
}

// REQ: SUR-2
#[test]
fn flags_of_lines_are_announced_or_refused_where_no_lines_are_printed() {
    let (place, server) = (CommandDirs::new(), Simulation::start(&CommandDirs::new()));
    let run =
        |flags: &[&str]| server.run(&place, &[&["-p", "system", "--model", "m"], flags].concat());
    let ended = run(&["--include-hook-events", "--session-mirror", "--max-budget-usd", "5"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for flag in ["--include-hook-events", "--session-mirror"] {
        assert!(ended.stderr.contains(&format!("{flag} has no effect here")), "{ended:?}");
    }
    for flags in ["--permission-prompt-tool stdio", "--host auto"] {
        let ended = run(&flags.split(' ').collect::<Vec<_>>());
        assert_eq!(ended.code, Some(2), "{ended:?}");
        let why = format!("{flags} needs --output-format stream-json");
        assert!(ended.stderr.contains(&why), "{ended:?}");
    }
    let silent = run(&["--output-format", "stream-json"]);
    assert!(silent.code == Some(2) && silent.stderr.contains("needs --verbose"), "{silent:?}");
    // What else it says of the session counts everywhere.
    place.file("own-system", "SYSTEM FROM A FILE");
    let ended = run(&["--system-prompt-file", "own-system", "--tools", ""]);
    assert!(ended.stdout.contains("SYSTEM FROM A FILE"), "{ended:?}");
    assert_eq!(run(&["--max-budget-usd", "-1"]).code, Some(2));
    let ended = run(&["--effort", "loud"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let why = "--effort: `loud` is none of low, medium, high, xhigh, max";
    assert!(ended.stderr.contains(why), "{ended:?}");
    assert_eq!(run(&["--effort", "max"]).code, Some(0));
}

// REQ: TOL-6, SUR-3
#[test]
fn older_tool_is_there_only_where_it_is_named() {
    for (flags, own, older) in [
        (&[][..], true, false),
        (&["--tools", "Read,MultiEdit"], false, true),
        (&["--allowedTools", "MultiEdit"], true, true),
        (&["--allowedTools", "Read,MultiEdit(*)"], true, true),
        (&["--allowedTools", "MultiEdit(src/**)"], true, true),
        (&["--allowedTools", "Edit(MultiEdit)"], true, false),
        (&["--tools", "NotebookEdit", "--allowedTools", "MultiEdit"], true, false),
    ] {
        let place = CommandDirs::new();
        let command = place.command(&[&DRIVEN[..], flags].concat());
        let lines = lines(&with_input(command, prompt("hello").as_bytes()));
        let tools = of_type(&lines, "system")[0]["tools"].as_array().unwrap().clone();
        let has = |name: &str| tools.iter().any(|it| it == name);
        assert_eq!((has("NotebookEdit"), has("MultiEdit")), (own, older), "{flags:?}: {tools:?}");
    }
}

// REQ: SUR-2, SUR-3
#[test]
fn simulated_answers_are_marked_and_what_waits_for_trust_is_listed() {
    let place = CommandDirs::new();
    place.file(".mcp.json", &json!({"mcpServers": {"own": {"command": "true"}}}).to_string());
    let mut command = place.command(&DRIVEN);
    command.env("CLAUDE_CONFIG_DIR", place.work().join("../config"));
    command.env("ENNEAD_UNTRUSTED", "1");
    let ended = with_input(command, prompt("hello").as_bytes());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let lines = lines(&ended);
    let result = of_type(&lines, "result")[0];
    assert_eq!((&result["simulated"], &result["total_cost_usd"]), (&true.into(), &Value::Null));
    let system = of_type(&lines, "system");
    let contents: Vec<&str> = system.iter().filter_map(|it| it["content"].as_str()).collect();
    for expected in ["MCP server `own`", "--trust"] {
        assert!(contents.iter().any(|it| it.contains(expected)), "{expected}: {contents:?}");
    }
    assert_eq!(system[0]["subtype"], "init", "it comes first");
    let ids: Vec<&str> = system.iter().filter_map(|it| it["uuid"].as_str()).collect();
    assert!(ids.iter().all(|it| !it.starts_with("00000000")), "they bear a time: {ids:?}");
}

// REQ: SUR-3
#[test]
fn version_is_one_that_programs_compare_and_ours_is_beside_it() {
    let ended = CommandDirs::new().run(&["-v"]);
    let first = ended.stdout.split(' ').next().unwrap();
    let numbers: Vec<u32> = first.split('.').map(|it| it.parse().unwrap()).collect();
    assert!(vec![2, 1, 248] <= numbers, "{first}");
    assert!(ended.stdout.contains(concat!("(ennead ", env!("CARGO_PKG_VERSION"), ")")));
}
