//! Git, run for the worktrees of sub-agents.
//!
//! Git is run as a shell command is, in a session of its own with all that it
//! starts (filters and helpers are the user's programs), until its end, its limit or an interrupt.
//! No process of it is left after that.

use std::{
    any::Any,
    ffi::{OsStr, OsString},
    fs::File,
    io,
    path::Path,
    process::Stdio,
    time::Duration,
};

use ennead_runtime::ports::{ToolContext, WorkGuard};
use thiserror::Error;
use tokio::io::AsyncReadExt;

use crate::process_tree::{ProcessInput, ProcessLaunch, Rest, Started, new_mark};

/// What one command of git may take, a checkout among them: as much as a shell command may ask for
/// at most.
const LIMIT: Duration = Duration::from_secs(600);

/// Bytes that a command may write to each of its outputs.
const MAX_OUTPUT: u64 = 64 << 20;

/// What the repository cannot say otherwise: no program of its own is run, and no file is taken for
/// unchanged without a look at it.
const SETTINGS: [&str; 3] =
    ["core.hooksPath=/dev/null", "core.fsmonitor=false", "core.ignoreStat=false"];

/// What the environment could say about another repository (`git rev-parse --local-env-vars`), and
/// about what names mean. Settings in it hold as those of the user: `safe.directory` may be there.
const ELSEWHERE: [&str; 17] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_PREFIX",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_GRAFT_FILE",
    "GIT_SHALLOW_FILE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_REPLACE_REF_BASE",
    "GIT_LITERAL_PATHSPECS",
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
];

/// Why git did not do what it was asked for. The text is for the model.
#[derive(Debug, Error)]
pub(crate) enum GitError {
    #[error("git cannot be run: {0}")]
    NoGit(#[source] io::Error),
    /// `code` is missing if a signal ended it.
    #[error("git {command}: {printed}")]
    Failed { command: String, code: Option<i32>, printed: String },
    #[error("git {command}: it says more than is read")]
    TooMuchSaid { command: String },
    #[error("git {command}: it was ended after {} seconds", limit.as_secs())]
    TooLong { command: String, limit: Duration },
    #[error("interrupted")]
    Interrupted,
}

/// Runs git for a call.
#[derive(Clone, Debug)]
pub(super) struct Git {
    context: ToolContext,
    limit: Duration,
}

impl Git {
    pub(super) fn new(context: ToolContext) -> Self {
        Self { context, limit: LIMIT }
    }

    /// Returns a git that keeps `token` while a command runs.
    pub(super) fn holding(&self, token: impl Any + Send + Sync) -> Self {
        let mut git = self.clone();
        git.context.guard = WorkGuard::new((git.context.guard, token));
        git
    }

    /// Returns the context of the call that git is run for.
    pub(super) fn context(&self) -> &ToolContext {
        &self.context
    }

    #[cfg(test)]
    pub(super) fn within(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// Runs git and returns its output, without the end of the line. No hook of the repository is run, and nothing that
    /// the environment holds about another repository counts.
    pub(super) async fn run<A: AsRef<OsStr>>(
        &self,
        directory: &Path,
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<String, GitError> {
        self.start(directory, arguments, ProcessInput::Nothing).await
    }

    /// Runs a command of git that reads `input`.
    pub(super) async fn run_on<A: AsRef<OsStr>>(
        &self,
        directory: &Path,
        arguments: impl IntoIterator<Item = A>,
        input: File,
    ) -> Result<String, GitError> {
        self.start(directory, arguments, ProcessInput::File(input)).await
    }

    async fn start<A: AsRef<OsStr>>(
        &self,
        directory: &Path,
        arguments: impl IntoIterator<Item = A>,
        input: ProcessInput,
    ) -> Result<String, GitError> {
        let arguments: Vec<OsString> =
            arguments.into_iter().map(|it| it.as_ref().to_owned()).collect();
        self.start_with(directory, arguments, input).await
    }

    /// Runs a command to its end.
    async fn start_with(
        &self,
        directory: &Path,
        arguments: Vec<OsString>,
        input: ProcessInput,
    ) -> Result<String, GitError> {
        if self.context.cancel.is_cancelled() {
            return Err(GitError::Interrupted);
        }
        let launch = ProcessLaunch {
            program: OsStr::new("git"),
            input,
            rest: Rest::Ends,
            mark: new_mark("git"),
            confine: None,
            guard: self.context.guard.clone(),
        };
        let started = launch.start(|command| {
            command.arg("-C").arg(directory);
            command.args(SETTINGS.iter().flat_map(|it| ["-c", it]));
            command.args(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
            for (name, value) in &*self.context.env {
                match value.as_str() {
                    "" => command.env_remove(name),
                    value => command.env(name, value),
                };
            }
            for name in ELSEWHERE {
                command.env_remove(name);
            }
            command.env("GIT_TERMINAL_PROMPT", "0");
            Ok(())
        });
        let started = started.await.map_err(GitError::NoGit)?;
        let parts = arguments.iter().map(|it| it.to_string_lossy());
        let command = parts.collect::<Vec<_>>().join(" ");
        finish(started, command, &self.context, self.limit).await
    }
}

async fn finish(
    started: Started,
    command: String,
    context: &ToolContext,
    limit: Duration,
) -> Result<String, GitError> {
    let Started { mut tree, stdout: output, stderr: errors, .. } = started;
    let (mut printed, mut complained) = (Vec::new(), Vec::new());
    let reading = async {
        let output = async {
            if let Some(it) = output {
                let _as_far_as_it_goes = it.take(MAX_OUTPUT).read_to_end(&mut printed).await;
            }
        };
        let errors = async {
            if let Some(it) = errors {
                let _as_far_as_it_goes = it.take(MAX_OUTPUT).read_to_end(&mut complained).await;
            }
        };
        tokio::join!(output, errors);
    };
    let mut reading = Box::pin(reading);
    let (mut is_read, mut cancelled) = (false, context.cancel.cancelled());
    let mut timeout = std::pin::pin!(tokio::time::sleep(limit));
    let too_long = |command| GitError::TooLong { command, limit };
    let status = loop {
        tokio::select! {
            biased;
            () = &mut cancelled => {
                tree.end().await;
                return Err(GitError::Interrupted);
            }
            status = tree.wait() => break status,
            () = &mut timeout => {
                tree.end().await;
                return Err(too_long(command));
            }
            () = &mut reading, if !is_read => is_read = true,
        }
    };
    // What git left behind would keep the pipes open.
    tree.end().await;
    if !is_read {
        tokio::select! {
            biased;
            () = &mut reading => {}
            () = &mut timeout => return Err(too_long(command)),
        }
    }
    drop(reading);
    let status = status.map_err(GitError::NoGit)?;
    if !status.success() {
        let printed = String::from_utf8_lossy(&complained).trim().to_owned();
        return Err(GitError::Failed { command, code: status.code(), printed });
    }
    if printed.len() as u64 == MAX_OUTPUT {
        return Err(GitError::TooMuchSaid { command });
    }
    let printed = printed.strip_suffix(b"\n").unwrap_or(&printed);
    Ok(String::from_utf8_lossy(printed).into_owned())
}
