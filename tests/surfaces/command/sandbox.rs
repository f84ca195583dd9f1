//! The sandbox of commands, against the kernel that this runs on.

mod attempts;
mod held;
mod network;
mod processes;

use std::{fs, path::PathBuf, process::Command};

use serde_json::{Value, json};

use super::{CommandDirs, Ended, Simulation, text};

const PLAYBOOK: &str = r#"
key = "right"

[[rule]]
name = "runs a command"
when.prompt.regex = '^run: '
when.answers = 0
let.parts = "prompt|capture('run: (.*)')"
reply = [{ tool = "Bash", input = { command = "{{ parts[1] }}" } }]

[[rule]]
name = "runs a command in the background, and then waits for a file"
when.prompt.regex = '^behind: '
when.answers = 0
let.parts = "prompt|capture('behind: (.*)')"
reply = [
  { tool = "Bash", input = { command = "{{ parts[1] }}", run_in_background = true } },
  { tool = "Bash", input = { command = "while ! [ -e ended ]; do sleep 0.01; done", timeout = 20000 } },
]

[[rule]]
name = "runs a command outside the sandbox"
when.prompt.regex = '^outside: '
when.answers = 0
let.parts = "prompt|capture('outside: (.*)')"
reply = [{ tool = "Bash", input = { command = "{{ parts[1] }}", dangerouslyDisableSandbox = true } }]

[[rule]]
name = "shows what it printed"
reply = [{ text = "{{ new_results|join }}" }]
"#;

/// A place with a key in the home directory, and directories next to the one that is worked in.
struct Cell {
    place: CommandDirs,
    server: Simulation,
}

impl Cell {
    fn new() -> Self {
        let place = CommandDirs::new();
        for (name, content) in [
            ("../home/.ssh/id_test", "ESCAPED with a key\n"),
            ("../outside/kept", "ESCAPED with a file\n"),
            ("../tmp/here", ""),
        ] {
            place.file(name, content);
        }
        let server = Simulation::playing(&place, PLAYBOOK);
        Self { place, server }
    }

    fn dir(&self, name: &str) -> PathBuf {
        self.place.work().parent().unwrap().join(name)
    }

    /// The settings of a sandbox whose temporary directory is not the one in which all of this is.
    fn settings(&self, more: &Value) -> String {
        let mut sandbox = json!({
            "enabled": true,
            "tmpdir": text(&self.dir("tmp")),
            "filesystem": {"denyRead": [text(&self.dir("outside"))]},
        });
        let own = sandbox.as_object_mut().unwrap();
        own.extend(more.as_object().unwrap().clone());
        json!({ "sandbox": sandbox }).to_string()
    }

    fn command(&self, prompt: &str, flags: &[&str]) -> Command {
        self.server.command(&self.place, &[&["-p", prompt, "--model", "m"], flags].concat())
    }

    /// Runs a command with these flags; what it printed is on standard output.
    fn run(&self, command: &str, flags: &[&str]) -> Ended {
        self.command(&format!("run: {command}"), flags).output().unwrap().into()
    }

    /// The same in the sandbox, without a question.
    fn run_confined(&self, command: &str) -> Ended {
        self.run(
            command,
            &["--permission-mode", "bypassPermissions", "--settings", &self.settings(&json!({}))],
        )
    }
}

/// What `doctor --sandbox` says of this kernel.
fn doctor() -> Value {
    let ended = CommandDirs::new().run(&["doctor", "--sandbox", "--output-format", "json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    serde_json::from_str(&ended.stdout).unwrap()
}

/// Whether commands can be confined here. Where they cannot, the test that asks has nothing to show,
/// and says so.
#[expect(clippy::print_stdout, reason = "what is skipped is worth knowing")]
fn can_confine(what: &str) -> bool {
    let lacks = doctor()["lacks"].clone();
    if !lacks.is_null() {
        println!("1 skipped: {what}: {lacks}");
    }
    lacks.is_null()
}

// REQ: TOL-10
#[test]
fn doctor_prints_what_the_kernel_gives_as_text_and_as_json() {
    let printed = doctor();
    let ended = CommandDirs::new().run(&["doctor", "--sandbox"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let can = ended.stdout.starts_with("commands can be confined\n");
    assert_eq!(can, printed["lacks"].is_null(), "{}", ended.stdout);
    for level in printed["levels"].as_array().unwrap() {
        let name = level["name"].as_str().unwrap();
        let line = ended.stdout.lines().find(|it| it.starts_with(name)).unwrap();
        let is_there = level["is_there"].as_bool().unwrap();
        assert!(line.contains(if is_there { " yes " } else { " no " }), "{line}");
    }
    let version = fs::read_to_string("/sys/kernel/security/lsm").unwrap_or_default();
    if version.contains("landlock") {
        assert!(printed["landlock"].as_i64().unwrap() > 0, "{version}: {printed}");
    }
}

// REQ: TOL-10
#[test]
fn sandbox_that_is_not_supported_is_refused_and_never_left_open() {
    let cell = Cell::new();
    for (more, words) in [
        (json!({"network": {"allowUnixSockets": ["/x"]}}), "sandbox.network.allowUnixSockets"),
        (json!({"filesystem": {"denyWrite": ["/x"]}}), "sandbox.filesystem.denyWrite"),
        (json!({"enabled": false, "required": true}), "`sandbox.enabled` is not true"),
    ] {
        let ended = cell.run("echo hey", &["--settings", &cell.settings(&more)]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
        assert_eq!(ended.stdout, "");
    }
}

// REQ: TOL-10
#[test]
fn required_sandbox_starts_exactly_where_the_kernel_can_confine() {
    let cell = Cell::new();
    let settings = cell.settings(&json!({"required": true}));
    let ended = cell.run("echo hey", &["--settings", &settings]);
    match doctor()["lacks"].as_str() {
        None => assert_eq!((ended.code, ended.stdout.contains("hey")), (Some(0), true)),
        Some(why) => {
            assert_eq!(ended.code, Some(2));
            assert!(ended.stderr.contains(why), "{}", ended.stderr);
        }
    }
}
