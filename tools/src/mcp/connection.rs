//! One connection to one server: to a child process that speaks through its input and output, or to
//! an address.
//!
//! It starts no task that outlives it. Dropping it ends the process and all that the process
//! started; [`Connection::close`] asks first.

use std::{pin::pin, sync::Arc, time::Duration};

use ennead_runtime::{
    mcp::{
        config::{Address, ServerProgram, ServerTransport},
        spec::Listed,
    },
    ports::{BoxFuture, Transport, WorkGuard},
};
use rmcp::{
    RoleClient, ServiceExt,
    service::{RunningService, RunningServiceCancellationToken},
};

use super::{
    caller::{Caller, Client, GRACE, SILENCE, STREAM_SILENCE},
    http::{FailureKind, HttpTransport, Link},
    launch::{ConnectError, ServerLaunch, said_at_the_end},
    lines::{Health, Lines},
    pipes::Pipes,
    program::{Errors, start},
    tasks::TaskTools,
    wire::{list, why_not_greeted, why_not_listed},
};
use crate::process_tree::{ProcessTree, Started};

/// A server that answers.
pub struct Connection {
    name: String,
    caller: Caller,
    /// Whether it can still be used, as its calls and its lines find out.
    health: Health,
    /// The loop of the protocol; `None` once it has ended.
    serving: Option<BoxFuture<'static, ()>>,
    stop: RunningServiceCancellationToken,
    peer: Peer,
}

/// What is at the other end.
enum Peer {
    Process { tree: ProcessTree, errors: Errors },
    Address(Arc<Link>),
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Starts a server, or connects to it, greets it and asks for its tools. Has no limit of its own; dropping the future
/// ends the process. `http` reaches addresses. `guard` is let go once nothing of the server is left.
///
/// # Errors
///
/// [`ConnectError`]; nothing of the server is left then.
pub async fn connect(
    launch: &ServerLaunch,
    http: Option<Arc<dyn Transport>>,
    guard: WorkGuard,
) -> Result<(Connection, Vec<Listed>), ConnectError> {
    match &launch.config.reach {
        ServerTransport::Stdio(program) => connect_process(program, launch, guard).await,
        ServerTransport::Http(address) => {
            connect_address(launch, address, false, http, guard).await
        }
        ServerTransport::Sse(address) => connect_address(launch, address, true, http, guard).await,
        _ => Err(ConnectError::Transport),
    }
}

/// The service of a server, and its tools; `None`: there are too many.
type Greeted = (RunningService<RoleClient, Client>, Option<Vec<Listed>>);

/// Opens the protocol and lists the tools.
async fn greet<T, E>(transport: T, tasks: &TaskTools) -> Result<Greeted, String>
where
    T: rmcp::transport::Transport<RoleClient, Error = E> + 'static,
    E: std::error::Error + Send + Sync + 'static,
{
    let service = Client::new().serve(transport).await;
    let service = service.map_err(|error| why_not_greeted(&error))?;
    let tools = list(service.peer()).await.map_err(|error| why_not_listed(&error))?;
    let needs_task = tasks.take();
    let mark = |tool: Listed| Listed { needs_task: needs_task(&tool.name), ..tool };
    let tools = tools.map(|it| it.into_iter().map(mark).collect::<Vec<_>>());
    Ok((service, tools))
}

async fn connect_process(
    program: &ServerProgram,
    launch: &ServerLaunch,
    guard: WorkGuard,
) -> Result<(Connection, Vec<Listed>), ConnectError> {
    let started = start(program, launch, guard)
        .await
        .map_err(|cause| ConnectError::Start { command: program.command.clone(), cause })?;
    let Started { tree, input, stdout, stderr } = started;
    let mut errors = Errors::new(stderr);
    let (Some(output), Some(input)) = (stdout, input) else {
        return Err(ConnectError::Handshake {
            why: "it has no pipes".into(),
            printed: String::new(),
        });
    };
    let (name, health) = (launch.config.name.to_string(), Health::new());
    let greeted = {
        let tasks = TaskTools::looking();
        let output = Lines::new(output, name.clone(), health.clone(), tasks.clone());
        let mut greeting = pin!(greet(Pipes::new(output, input), &tasks));
        loop {
            tokio::select! {
                biased;
                greeted = &mut greeting => break greeted,
                () = errors.read() => {}
            }
        }
    };
    match greeted {
        Ok((service, tools)) => {
            let tools = tools.ok_or(ConnectError::TooManyTools)?;
            let peer = Peer::Process { tree, errors };
            Ok((Connection::new(name, service, health, SILENCE, peer), tools))
        }
        Err(why) => {
            // Its last output may lie in the pipe; once the tree is gone the pipe has an end.
            tree.end().await;
            while errors.pipe.is_some() {
                errors.read().await;
            }
            Err(ConnectError::Handshake { why, printed: errors.text() })
        }
    }
}

async fn connect_address(
    launch: &ServerLaunch,
    address: &Address,
    has_stream: bool,
    http: Option<Arc<dyn Transport>>,
    guard: WorkGuard,
) -> Result<(Connection, Vec<Listed>), ConnectError> {
    let http = http.ok_or(ConnectError::HttpLeftOut)?;
    let tasks = TaskTools::looking();
    let link = Arc::new(Link::new(&launch.config, address, http, tasks.clone()));
    let transport = HttpTransport::new(Arc::clone(&link), has_stream, guard);
    let (service, tools) = greet(transport, &tasks).await.map_err(|why| match link.failure() {
        Some(failure) if failure.kind == FailureKind::NeedsAuth => {
            ConnectError::NeedsAuth { why: failure.why }
        }
        Some(failure) => ConnectError::Http {
            is_transient: matches!(
                failure.kind,
                FailureKind::Unreachable | FailureKind::Unavailable
            ),
            why: failure.why,
        },
        None => ConnectError::Http { why, is_transient: false },
    })?;
    let tools = tools.ok_or(ConnectError::TooManyTools)?;
    let silence = if has_stream { STREAM_SILENCE } else { SILENCE };
    let name = launch.config.name.to_string();
    Ok((Connection::new(name, service, Health::new(), silence, Peer::Address(link)), tools))
}

impl Connection {
    fn new(
        name: String,
        service: RunningService<RoleClient, Client>,
        health: Health,
        silence: Duration,
        peer: Peer,
    ) -> Self {
        let way = service.peer().clone();
        let caller = Caller::new(name.clone(), way, service.service(), health.clone(), silence);
        Self {
            name,
            caller,
            health,
            stop: service.cancellation_token(),
            serving: Some(Box::pin(async move {
                // However it ended, it is over.
                let _over = service.waiting().await;
            })),
            peer,
        }
    }

    /// Returns a caller for calls at the same time.
    pub fn caller(&self) -> Caller {
        self.caller.clone()
    }

    /// Waits until the server is gone or takes nothing any more, and says how it ended; what it
    /// answered before has come then. May be dropped and called again.
    pub async fn wait_for_end(&mut self) -> String {
        match &mut self.peer {
            Peer::Process { tree, errors } => {
                process_end(&mut self.serving, &self.health, tree, errors).await
            }
            Peer::Address(link) => {
                tokio::select! {
                    biased;
                    () = served(&mut self.serving) => {}
                    _ = self.health.broken() => {}
                }
                link.fatal().map_or_else(|| "it takes no messages any more".into(), |it| it.why)
            }
        }
    }

    /// Returns whether the server has ended because it wants a login.
    pub fn needs_auth(&self) -> bool {
        match &self.peer {
            Peer::Process { .. } => false,
            Peer::Address(link) => link.fatal().is_some_and(|it| it.kind == FailureKind::NeedsAuth),
        }
    }

    /// Ends the server: closes its input and waits; asks it to end and waits; has what is left killed.
    /// One that is reached over the network is notified that its session is over.
    pub async fn close(mut self) {
        self.stop.cancel();
        match &mut self.peer {
            Peer::Process { tree, .. } => {
                // With the loop of the protocol goes the pipe to the server's input.
                let gently = async {
                    served(&mut self.serving).await;
                    tree.wait().await
                };
                if tokio::time::timeout(GRACE, gently).await.is_err() {
                    tree.ask_to_end();
                    // It is killed next, whether it has ended or not.
                    let _ended = tokio::time::timeout(GRACE, tree.wait()).await;
                }
            }
            Peer::Address(_) => {
                let _late = tokio::time::timeout(2 * GRACE, served(&mut self.serving)).await;
            }
        }
    }
}

/// Waits for the end of a process, of its output or of its trust, and says which it was.
async fn process_end(
    serving: &mut Option<BoxFuture<'static, ()>>,
    health: &Health,
    tree: &mut ProcessTree,
    errors: &mut Errors,
) -> String {
    let how = loop {
        tokio::select! {
            biased;
            () = served(serving) => break "it closed its output".to_owned(),
            status = tree.wait() => match status {
                Ok(status) => break format!("it ended with {status}"),
                Err(error) => break format!("it cannot be waited for: {error}"),
            },
            garbage = health.broken() => match garbage {
                // Nothing more is read of it.
                Some(what) => return format!("it wrote {what}"),
                None => break "it takes no messages any more".to_owned(),
            },
            () = errors.read() => {}
        }
    };
    // Its last words may still be in the pipes. What it has started may hold these open.
    let _late = tokio::time::timeout(GRACE, async {
        served(serving).await;
        while errors.pipe.is_some() {
            errors.read().await;
        }
    })
    .await;
    format!("{how}{}", said_at_the_end(&errors.text()))
}

/// Waits for the end of the protocol's loop.
async fn served(serving: &mut Option<BoxFuture<'static, ()>>) {
    if let Some(running) = serving {
        running.await;
        *serving = None;
    }
}
