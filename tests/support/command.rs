//! The command `ennead` as a process in a directory of its own, and a simulated model for it.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use tempfile::TempDir;

/// A directory to work in, and a home next to it.
pub(crate) struct CommandDirs {
    pub(crate) dir: TempDir,
}

impl CommandDirs {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["home", "work"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        Self { dir }
    }

    /// The working directory, without links in its path.
    pub(crate) fn work(&self) -> PathBuf {
        self.dir.path().join("work").canonicalize().unwrap()
    }

    pub(crate) fn file(&self, path: &str, text: &str) {
        let path = self.work().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// `ennead` in the working directory, with nothing of ours in its environment.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.in_place(Command::new(env!("CARGO_BIN_EXE_ennead")));
        command.args(args);
        command
    }

    /// Has another command run in that way.
    pub(crate) fn in_place(&self, mut command: Command) -> Command {
        for name in ["ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"] {
            command.env_remove(name);
        }
        for name in ["ENNEAD_PROVIDER", "OPENAI_BASE_URL", "OPENAI_API_KEY", "AWS_REGION"] {
            command.env_remove(name);
        }
        for name in ["AWS_BEARER_TOKEN_BEDROCK", "AWS_DEFAULT_REGION", "CLOUD_ML_REGION"] {
            command.env_remove(name);
        }
        for cloud in ["BEDROCK", "BEDROCK_MANTLE", "VERTEX"] {
            command.env_remove(format!("ANTHROPIC_{cloud}_BASE_URL"));
        }
        for name in ["BEDROCK", "MANTLE", "VERTEX"] {
            command.env_remove(format!("CLAUDE_CODE_USE_{name}"));
        }
        command.env_remove("ANTHROPIC_VERTEX_PROJECT_ID").env_remove("GOOGLE_OAUTH_ACCESS_TOKEN");
        command
            .env_remove("CLAUDE_CONFIG_DIR")
            .env_remove("RUST_LOG")
            // Under load servers take longer than the opening of a session waits.
            .env("ENNEAD_MCP_WAIT", "30000")
            .env("HOME", self.dir.path().join("home"))
            .current_dir(self.work())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ended {
        self.command(args).output().unwrap().into()
    }

    /// The one transcript of a top session in a directory.
    pub(crate) fn transcript(&self, directory: &str) -> PathBuf {
        let entries = fs::read_dir(self.work().join(directory)).unwrap();
        let mut files: Vec<PathBuf> = entries.map(|it| it.unwrap().path()).collect();
        files.retain(|it| it.extension().is_some_and(|it| it == "jsonl"));
        assert_eq!(files.len(), 1, "{files:?}");
        files.remove(0)
    }
}

/// What a command left.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
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
pub(crate) struct Simulation {
    pub(crate) child: Child,
    pub(crate) address: String,
}

impl Simulation {
    /// Serves another playbook, whose key is `right`, too.
    pub(crate) fn playing(place: &CommandDirs, playbook: &str) -> Self {
        place.file("../playbook.toml", playbook);
        let mut child = place
            .command(&["simulate", "--playbook", "../playbook.toml", "--port", "0"])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let address = first_line(&mut child);
        assert!(address.starts_with("http://127.0.0.1:"), "{address}");
        Self { child, address }
    }

    /// A command that asks this server with the right key.
    pub(crate) fn command(&self, place: &CommandDirs, args: &[&str]) -> Command {
        self.reached_by(place.command(args))
    }

    /// Has another command ask this server.
    pub(crate) fn reached_by(&self, mut command: Command) -> Command {
        command.env("ANTHROPIC_BASE_URL", &self.address).env("ANTHROPIC_API_KEY", "right");
        command
    }

    pub(crate) fn run(&self, place: &CommandDirs, args: &[&str]) -> Ended {
        self.command(place, args).output().unwrap().into()
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

/// Reads the line that a server begins its output with.
pub(crate) fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    line.trim().to_owned()
}

/// Runs a command with something piped in.
pub(crate) fn with_input(mut command: Command, input: &[u8]) -> Ended {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    // A command that has read enough closes its end.
    let _closed = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap().into()
}

/// The text of a path.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
