//! The process of a server: how it is started, and what it writes to its standard error.

use std::{ffi::OsStr, process::Stdio};

use ennead_runtime::{mcp::config::ServerProgram, ports::WorkGuard};
use tokio::{io::AsyncReadExt, process::ChildStderr};

use super::launch::ServerLaunch;
use crate::{
    process_tree::{self, ProcessInput, Rest, Started, new_mark},
    withdrawn_keys,
};

/// Bytes of what the server last wrote to its standard error that are kept.
const MAX_STDERR: usize = 2048;

/// What the server writes to its standard error: a log, of which the end is kept.
pub(super) struct Errors {
    pub(super) pipe: Option<ChildStderr>,
    printed: Vec<u8>,
}

impl Errors {
    pub(super) fn new(pipe: Option<ChildStderr>) -> Self {
        Self { pipe, printed: Vec::new() }
    }

    /// Takes the next piece; waits for ever when there will be none.
    pub(super) async fn read(&mut self) {
        let Some(pipe) = &mut self.pipe else { return std::future::pending().await };
        let mut buffer = [0; 1024];
        match pipe.read(&mut buffer).await {
            Ok(0) | Err(_) => self.pipe = None,
            Ok(n) => {
                self.printed.extend_from_slice(&buffer[..n]);
                let surplus = self.printed.len().saturating_sub(MAX_STDERR);
                self.printed.drain(..surplus);
            }
        }
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.printed).into_owned()
    }
}

/// Starts the program of a server.
pub(super) async fn start(
    program: &ServerProgram,
    launch: &ServerLaunch,
    guard: WorkGuard,
) -> std::io::Result<Started> {
    let server = process_tree::ProcessLaunch {
        program: OsStr::new(&program.command),
        input: ProcessInput::Piped,
        rest: Rest::Ends,
        mark: new_mark("mcp"),
        confine: launch.confine.clone(),
        guard,
    };
    let started = server.start(|command| {
        // What the configuration itself gives to the server comes after it.
        for name in &launch.withheld {
            command.env_remove(name);
        }
        let is_withheld = |name: &OsStr| launch.withheld.iter().any(|it| name == it.as_str());
        command.envs(withdrawn_keys::withdrawn().filter(|(name, _)| !is_withheld(name)));
        command
            .args(&program.args)
            .current_dir(&launch.workspace)
            .env("CLAUDE_PROJECT_DIR", &launch.workspace)
            .envs(&program.env)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Ok(())
    });
    started.await
}
