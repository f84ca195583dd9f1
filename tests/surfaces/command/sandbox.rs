//! The sandbox of commands, against the kernel that this runs on.

mod attempts;
mod held;
mod network;
mod processes;
mod unasked;

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

/// What commands can be confined by, as the variable of the process has it.
const LEVELS: [&str; 2] = ["landlock", "bubblewrap"];

/// A place with a key in the home directory, and directories next to the one that is worked in.
struct Cell {
    place: CommandDirs,
    server: Simulation,
    level: Option<&'static str>,
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
        Self { place, server, level: None }
    }

    /// One whose commands are confined by this and nothing else.
    fn at(level: &'static str) -> Self {
        Self { level: Some(level), ..Self::new() }
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
        let words = [&["-p", prompt, "--model", "m"], flags].concat();
        let mut command = self.server.command(&self.place, &words);
        command.envs(self.level.map(|it| ("ENNEAD_SANDBOX_LEVEL", it)));
        command
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
    doctor_at("")
}

/// The same where commands are confined by this and nothing else.
fn doctor_at(level: &str) -> Value {
    let place = CommandDirs::new();
    let mut doctor = place.command(&["doctor", "--sandbox", "--output-format", "json"]);
    let ended: Ended = doctor.env("ENNEAD_SANDBOX_LEVEL", level).output().unwrap().into();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    serde_json::from_str(&ended.stdout).unwrap()
}

/// Has that shown for each level that commands can be confined by here. Where they cannot by one, there is nothing to
/// show, which is printed.
#[expect(clippy::print_stdout, reason = "what is skipped is worth knowing")]
fn at_each_level(what: &str, show: impl Fn(&'static str)) {
    for level in LEVELS {
        let lacks = doctor_at(level)["lacks"].clone();
        if lacks.is_null() {
            println!("{what}, by {level}");
            show(level);
        } else {
            println!("1 skipped: {what}, by {level}: {lacks}");
        }
    }
}

/// Whether a command was refused to write: by Landlock, or by what is mounted.
fn is_refused(printed: &str) -> bool {
    printed.contains("Permission denied") || printed.contains("Read-only file system")
}

// REQ: TOL-10
#[test]
fn doctor_prints_what_the_kernel_gives_as_text_and_as_json() {
    let printed = doctor();
    let ended = CommandDirs::new().run(&["doctor", "--sandbox"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let can = ended.stdout.starts_with("commands can be confined: by ");
    assert_eq!(can, printed["lacks"].is_null(), "{}", ended.stdout);
    for level in printed["levels"].as_array().unwrap() {
        let name = level["name"].as_str().unwrap();
        let line = ended.stdout.lines().find(|it| it.starts_with(name)).unwrap();
        let is_there = level["is_there"].as_bool().unwrap();
        assert!(line.contains(if is_there { " yes " } else { " no " }), "{line}");
    }
    let line = ended.stdout.lines().find(|it| it.starts_with("bubblewrap ")).unwrap();
    assert_eq!(line.contains(" yes "), printed["bubblewrap"]["lacks"].is_null(), "{line}");
    let version = fs::read_to_string("/sys/kernel/security/lsm").unwrap_or_default();
    if version.contains("landlock") {
        assert!(printed["landlock"].as_i64().unwrap() > 0, "{version}: {printed}");
    }
}

// REQ: TOL-10
#[test]
fn doctor_says_of_bubblewrap_what_a_trial_of_it_shows() {
    let printed = doctor_at("bubblewrap");
    let trial = [
        &["--ro-bind", "/", "/", "--proc", "/proc", "--unshare-pid", "--unshare-net"][..],
        &["--die-with-parent", "true"],
    ];
    let path = "/usr/bin/bwrap";
    let works = Command::new(path).args(trial.concat()).output();
    let works = works.is_ok_and(|it| it.status.success());
    if works {
        assert_eq!(printed["bubblewrap"], json!({"path": path, "lacks": null}));
        assert_eq!(
            (&printed["confinement"], &printed["lacks"]),
            (&json!("bubblewrap"), &json!(null))
        );
        let rows = printed["escapes"].as_array().unwrap();
        assert!(rows.iter().all(|it| it["is_prevented"] == true), "{rows:?}");
    } else {
        assert_eq!(printed["confinement"], json!(null), "{printed}");
        assert!(printed["lacks"].as_str().is_some_and(|it| !it.is_empty()), "{printed}");
    }
}

// REQ: TOL-10
#[test]
fn command_is_not_run_by_what_was_not_chosen() {
    let cell = Cell::at("neither");
    let why = "ENNEAD_SANDBOX_LEVEL is neither `landlock` nor `bubblewrap`";
    let ended = cell.run_confined("touch made");
    assert!(ended.stdout.contains(why), "{ended:?}");
    assert!(!cell.place.work().join("made").exists());
    let settings = cell.settings(&json!({"required": true}));
    let ended = cell.run("touch made", &["--settings", &settings]);
    assert_eq!((ended.code, ended.stderr.contains(why)), (Some(2), true), "{ended:?}");
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
