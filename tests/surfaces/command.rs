//! The command `ennead`, run as a reader would run it: a process in a directory of its own.

mod bad_input;
mod bench;
mod cases;
mod config;
mod demo;
mod doctor;
mod evaluation;
mod failure;
mod kills;
mod mcp;
mod print;
mod processes;
mod proxy;
mod sandbox;
mod signals;
mod stream;
mod terminal;
mod transcripts;
mod trust;

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use tempfile::TempDir;

/// What the tests ask of the model. Its key is `right`.
const PLAYBOOK: &str = r#"
key = "right"

[[rule]]
name = "loop"
when.prompt.regex = "^loop"
reply = [{ tool = "Glob", input = { pattern = "*" } }]

[[rule]]
name = "busy"
when.prompt.regex = "^busy"
fault = { status = 429, headers = { "retry-after" = "300" } }

[[rule]]
name = "says that its limit is used up"
when.prompt.regex = "^limited"
reply = [{ tool = "Glob", input = { pattern = "*" } }]
fault.headers = { x-ratelimit-remaining-requests = "0", x-ratelimit-reset-requests = "5m0s" }

[[rule]]
name = "full"
when.model.regex = "^full$"
fault = { status = 529 }

[[rule]]
name = "calls a server"
when.prompt.regex = "^mcp"
when.answers = 0
reply = [{ tool = "mcp__srv__echo", input = {} }]

[[rule]]
name = "has called it"
when.prompt.regex = "^mcp"
reply = [{ text = "{{ new_results|join }}" }]

[[rule]]
name = "writes"
when.prompt.regex = "^write"
when.answers = 0
reply = [{ tool = "Write", input = { file_path = "new.txt", content = "hello\n" } }]

[[rule]]
name = "wrote"
when.prompt.regex = "^write"
reply = [{ text = "done" }]

[[rule]]
name = "system"
when.prompt.regex = "^system$"
reply = [{ text = "{{ system }}" }]

[[rule]]
name = "echo"
reply = [{ text = "{{ model }}: {{ prompt }}" }]
"#;

/// A directory to work in, and a home next to it.
struct TestDirs {
    dir: TempDir,
}

impl TestDirs {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["home", "work"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        Self { dir }
    }

    /// The working directory, without links in its path.
    fn work(&self) -> PathBuf {
        self.dir.path().join("work").canonicalize().unwrap()
    }

    fn file(&self, path: &str, text: &str) {
        let path = self.work().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// `ennead` in the working directory, with nothing of ours in its environment.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ennead"));
        for name in ["ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"] {
            command.env_remove(name);
        }
        for name in ["ENNEAD_PROVIDER", "OPENAI_BASE_URL", "OPENAI_API_KEY"] {
            command.env_remove(name);
        }
        command
            .env_remove("CLAUDE_CONFIG_DIR")
            .env_remove("RUST_LOG")
            // Under load servers take longer than the opening of a session waits.
            .env("ENNEAD_MCP_WAIT", "30000")
            .env("HOME", self.dir.path().join("home"))
            .current_dir(self.work())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .args(args);
        command
    }

    fn run(&self, args: &[&str]) -> Ended {
        self.command(args).output().unwrap().into()
    }

    /// The one transcript of a top session in a directory.
    fn transcript(&self, directory: &str) -> PathBuf {
        let entries = fs::read_dir(self.work().join(directory)).unwrap();
        let mut files: Vec<PathBuf> = entries.map(|it| it.unwrap().path()).collect();
        files.retain(|it| it.extension().is_some_and(|it| it == "jsonl"));
        assert_eq!(files.len(), 1, "{files:?}");
        files.remove(0)
    }
}

/// What a command left.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// `ennead simulate`, until it is dropped.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    /// Serves [`PLAYBOOK`].
    fn start(place: &TestDirs) -> Self {
        Self::playing(place, PLAYBOOK)
    }

    /// Serves another playbook, whose key is `right`, too.
    fn playing(place: &TestDirs, playbook: &str) -> Self {
        place.file("../playbook.toml", playbook);
        let mut child = place
            .command(&["simulate", "--playbook", "../playbook.toml", "--port", "0"])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        let address = address.trim().to_owned();
        assert!(address.starts_with("http://127.0.0.1:"), "{address}");
        Self { child, address }
    }

    /// A command that asks this server with the right key.
    fn command(&self, place: &TestDirs, args: &[&str]) -> Command {
        let mut command = place.command(args);
        command.env("ANTHROPIC_BASE_URL", &self.address).env("ANTHROPIC_API_KEY", "right");
        command
    }

    fn run(&self, place: &TestDirs, args: &[&str]) -> Ended {
        self.command(place, args).output().unwrap().into()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

/// Runs a command with something piped in.
fn with_input(mut command: Command, input: &[u8]) -> Ended {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    // A command that has read enough closes its end.
    let _closed = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap().into()
}

/// The text of a path.
fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
