//! One connection to one server: a child process that speaks through its input and output.
//!
//! It starts no task that outlives it. Dropping it ends the process and all that the process
//! started; [`Connection::close`] asks first.

use std::{ffi::OsStr, pin::pin, process::Stdio, time::Duration};

use ennead_runtime::{
    mcp::{
        config::{ServerProgram, ServerTransport},
        spec::Listed,
    },
    ports::{BoxFuture, WorkGuard},
};
use rmcp::{ServiceExt, service::RunningServiceCancellationToken};
use tokio::{io::AsyncReadExt, process::ChildStderr};

use super::{
    caller::{Caller, Client},
    launch::{ConnectError, ServerLaunch, said_at_the_end},
    lines::{Health, Lines},
    pipes::Pipes,
    tasks::TaskTools,
    wire::{list, why_not_greeted, why_not_listed},
};
use crate::{
    process_tree::{self, ProcessInput, ProcessTree, Rest, Started, new_mark},
    withdrawn_keys,
};

/// Bytes of what the server last wrote to its standard error that are kept.
const MAX_SAID: usize = 2048;

/// A server that is asked to end, or sent the end of a call, has this long before each sterner way.
pub(super) const GRACE: Duration = Duration::from_millis(500);

/// A server that answers.
pub struct Connection {
    name: String,
    caller: Caller,
    /// Whether it can still be used, as its calls and its lines find out.
    health: Health,
    /// The loop of the protocol; `None` once it has ended.
    serving: Option<BoxFuture<'static, ()>>,
    stop: RunningServiceCancellationToken,
    tree: ProcessTree,
    errors: Errors,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Starts a server, greets it and asks for its tools. Has no limit of its own; dropping the future
/// ends the process. `guard` is let go once nothing of the server is left.
///
/// # Errors
///
/// [`ConnectError`]; nothing of the server is left then.
pub async fn connect(
    launch: &ServerLaunch,
    guard: WorkGuard,
) -> Result<(Connection, Vec<Listed>), ConnectError> {
    let ServerTransport::Stdio(program) = &launch.config.reach else {
        return Err(ConnectError::Http);
    };
    let started = start(program, launch, guard)
        .await
        .map_err(|cause| ConnectError::Start { command: program.command.clone(), cause })?;
    let Started { tree, input, stdout, stderr } = started;
    let mut errors = Errors { pipe: stderr, printed: Vec::new() };
    let (Some(output), Some(input)) = (stdout, input) else {
        return Err(ConnectError::Handshake {
            why: "it has no pipes".into(),
            printed: String::new(),
        });
    };
    let (name, health) = (launch.config.name.to_string(), Health::new());
    let greeted = {
        let mut greeting = pin!(async {
            let tasks = TaskTools::looking();
            let output = Lines::new(output, name.clone(), health.clone(), tasks.clone());
            let service = Client::new().serve(Pipes::new(output, input)).await;
            let service = service.map_err(|error| why_not_greeted(&error))?;
            let tools = list(service.peer()).await.map_err(|error| why_not_listed(&error))?;
            let needs_task = tasks.take();
            let mark = |tool: Listed| Listed { needs_task: needs_task(&tool.name), ..tool };
            let tools = tools.map(|it| it.into_iter().map(mark).collect::<Vec<_>>());
            Ok::<_, String>((service, tools))
        });
        loop {
            tokio::select! {
                biased;
                greeted = &mut greeting => break greeted,
                () = errors.read() => {}
            }
        }
    };
    let (service, tools) = match greeted {
        Ok(greeted) => greeted,
        Err(why) => {
            // Its last output may lie in the pipe; once the tree is gone the pipe has an end.
            tree.end().await;
            while errors.pipe.is_some() {
                errors.read().await;
            }
            return Err(ConnectError::Handshake { why, printed: errors.text() });
        }
    };
    let tools = tools.ok_or(ConnectError::TooManyTools)?;
    let peer = service.peer().clone();
    let connection = Connection {
        caller: Caller::new(name.clone(), peer, service.service(), health.clone()),
        name,
        health,
        stop: service.cancellation_token(),
        serving: Some(Box::pin(async move {
            // However it ended, it is over.
            let _over = service.waiting().await;
        })),
        tree,
        errors,
    };
    Ok((connection, tools))
}

impl Connection {
    /// Returns a caller for calls at the same time.
    pub fn caller(&self) -> Caller {
        self.caller.clone()
    }

    /// Waits until the server is gone or takes nothing any more, and says how it ended; what it
    /// answered before has come then. May be dropped and called again.
    pub async fn wait_for_end(&mut self) -> String {
        let how = loop {
            tokio::select! {
                biased;
                () = served(&mut self.serving) => break "it closed its output".to_owned(),
                status = self.tree.wait() => match status {
                    Ok(status) => break format!("it ended with {status}"),
                    Err(error) => break format!("it cannot be waited for: {error}"),
                },
                garbage = self.health.broken() => match garbage {
                    // Nothing more is read of it.
                    Some(what) => return format!("it wrote {what}"),
                    None => break "it takes no messages any more".to_owned(),
                },
                () = self.errors.read() => {}
            }
        };
        // Its last words may still be in the pipes. What it has started may hold these open.
        let _late = tokio::time::timeout(GRACE, async {
            served(&mut self.serving).await;
            while self.errors.pipe.is_some() {
                self.errors.read().await;
            }
        })
        .await;
        format!("{how}{}", said_at_the_end(&self.errors.text()))
    }

    /// Ends the server: closes its input and waits; asks it to end and waits; has what is left killed.
    pub async fn close(mut self) {
        self.stop.cancel();
        // With the loop of the protocol goes the pipe to the server's input.
        let gently = async {
            served(&mut self.serving).await;
            self.tree.wait().await
        };
        if tokio::time::timeout(GRACE, gently).await.is_err() {
            self.tree.ask_to_end();
            // It is killed next, whether it has ended or not.
            let _ended = tokio::time::timeout(GRACE, self.tree.wait()).await;
        }
    }
}

/// Waits for the end of the protocol's loop.
async fn served(serving: &mut Option<BoxFuture<'static, ()>>) {
    if let Some(running) = serving {
        running.await;
        *serving = None;
    }
}

/// What the server writes to its standard error: a log, of which the end is kept.
struct Errors {
    pipe: Option<ChildStderr>,
    printed: Vec<u8>,
}

impl Errors {
    /// Takes the next piece; waits for ever when there will be none.
    async fn read(&mut self) {
        let Some(pipe) = &mut self.pipe else { return std::future::pending().await };
        let mut buffer = [0; 1024];
        match pipe.read(&mut buffer).await {
            Ok(0) | Err(_) => self.pipe = None,
            Ok(n) => {
                self.printed.extend_from_slice(&buffer[..n]);
                let surplus = self.printed.len().saturating_sub(MAX_SAID);
                self.printed.drain(..surplus);
            }
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.printed).into_owned()
    }
}

async fn start(
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
