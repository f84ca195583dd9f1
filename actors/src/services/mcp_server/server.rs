//! A server from outside its actor: what sessions hold, and what outlasts the actor.

use std::{
    collections::BTreeMap,
    fmt,
    num::NonZeroU32,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use ennead_runtime::{
    mcp::{config::ServerConfig, restart::Restarts, result::CallResult},
    ports::{BoxFuture, ReportProgress, Transport},
};
use ennead_tools::mcp::{CallError, ConnectError, ServerLaunch};
use ractor::ActorRef;
use serde_json::{Map, Value};
use tokio::sync::{oneshot, watch};

use super::{McpMsg, Order, ServerFailure, Tools};
use crate::{
    groundwork::mailbox::{Mailbox, Refused},
    world::{environment::Environment, server_transport},
};
use ennead_tools::locked::Locked as _;

/// Calls of a server at once; further ones wait for a slot.
const WINDOW: NonZeroU32 = NonZeroU32::MIN.saturating_add(31);

/// Where the actors of servers live. Starts the actor of a server that has none.
pub(crate) trait ServerHome: Send + Sync {
    /// Asks a server for its tools. Returns false and drops `reply` once the home has ended.
    fn ask(&self, server: Arc<SharedServer>, reply: oneshot::Sender<Tools>) -> bool;

    /// Returns whether it starts no more actors.
    fn has_ended(&self) -> bool;
}

/// One server. The same for all sessions that are configured with it.
pub(crate) struct SharedServer {
    launch: ServerLaunch,
    start_limit: Duration,
    /// What an HTTP client for it is made of.
    environment: Environment,
    /// How often somebody wanted the server at once.
    hurry: watch::Sender<u64>,
    /// The way to its actor; `None` until it lives for the first time.
    mailbox: watch::Sender<Option<Mailbox<Box<Order>, McpMsg>>>,
    inner: Mutex<ServerRecord>,
}

struct ServerRecord {
    /// Where its actor lives.
    home: Arc<dyn ServerHome>,
    restarts: Restarts,
    /// The count of those who wanted it at once when it was last tried.
    hurry_when_tried: u64,
    /// It was connected to at least once.
    has_stood: bool,
    /// When it was connected to, if it is open.
    since: Option<Duration>,
}

impl SharedServer {
    /// Returns the name of the server.
    pub(crate) fn name(&self) -> &str {
        &self.launch.config.name
    }

    pub(super) fn config(&self) -> &ServerConfig {
        &self.launch.config
    }

    pub(super) fn launch(&self) -> &ServerLaunch {
        &self.launch
    }

    pub(super) fn start_limit(&self) -> Duration {
        self.start_limit
    }

    /// Returns its tools, once it answers. Starts it, if that is not done yet.
    pub(super) async fn tools(self: Arc<Self>) -> Tools {
        let (reply, answer) = oneshot::channel();
        let home = Arc::clone(&self.lock().home);
        if !home.ask(self, reply) {
            return Err(ServerFailure::new("its thread has ended"));
        }
        let crashed = |_| Err(ServerFailure::new("it crashed when it was started"));
        answer.await.unwrap_or_else(crashed)
    }

    /// Has a pause before another start end now.
    pub(super) fn hurry(&self) {
        self.hurry.send_modify(|it| *it += 1);
    }

    /// Waits until somebody has wanted the server at once since it was last tried.
    pub(super) async fn hurried(&self) {
        let tried = self.lock().hurry_when_tried;
        // The sender lives as long as this.
        let mut hurry = self.hurry.subscribe();
        let _hurried = hurry.wait_for(|it| *it != tried).await;
    }

    /// Notes that the server is tried now.
    pub(super) fn is_tried(&self) {
        self.lock().hurry_when_tried = *self.hurry.borrow();
    }

    /// Returns the way to its address; `None` for a program, or in a build without HTTP.
    pub(super) async fn transport(&self) -> Result<Option<Arc<dyn Transport>>, ConnectError> {
        let Some(address) = self.config().reach.address() else { return Ok(None) };
        let (environment, url) = (self.environment.clone(), address.url.clone());
        let made = tokio::task::spawn_blocking(move || server_transport(&environment, &url)).await;
        let made = made.unwrap_or_else(|_| Err("it crashed".into()));
        made.map_err(|why| ConnectError::HttpSetup { why })
    }

    /// Records the actor that holds the connection from now on.
    pub(super) fn has_actor(&self, actor: &ActorRef<McpMsg>) {
        self.mailbox.send_replace(Some(Mailbox::new(actor.clone(), WINDOW, McpMsg::Call)));
    }

    /// Notes that it was connected to at this time of the clock.
    pub(super) fn came_up(&self, at: Duration) {
        let mut inner = self.lock();
        inner.has_stood = true;
        inner.since = Some(at);
    }

    pub(super) fn forget_ends(&self) {
        self.lock().restarts.forget();
    }

    /// Notes that the server, or its actor, has ended at this time. Returns the pause before it is started again;
    /// `None`: it is not, until it is wanted again.
    pub(crate) fn note_end(&self, at: Duration) -> Option<Duration> {
        let mut inner = self.lock();
        let stood = inner.since.take().map_or(Duration::ZERO, |since| at.saturating_sub(since));
        // One that was never ready would only fail again; those that wanted it have its error.
        if inner.has_stood { inner.restarts.note_end(stood) } else { None }
    }

    fn lock(&self) -> MutexGuard<'_, ServerRecord> {
        // Nothing in here can be left half done.
        self.inner.locked()
    }
}

impl ennead_tools::mcp::Server for SharedServer {
    fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        progress: Option<Arc<dyn ReportProgress>>,
    ) -> BoxFuture<'static, Result<CallResult, CallError>> {
        let (mut mailbox, server) = (self.mailbox.subscribe(), self.name().to_owned());
        let (reply, answer) = oneshot::channel();
        let mut order = Some(Box::new(Order { tool: tool.to_owned(), arguments, progress, reply }));
        let (patience, home) = (self.start_limit, Arc::clone(&self.lock().home));
        Box::pin(async move {
            while let Some(work) = order.take() {
                let actor = mailbox.borrow_and_update().clone();
                let refused = match actor {
                    Some(actor) => actor.send(work).await.err(),
                    None => Some(Refused::Stopped(Some(work))),
                };
                // Its shard is about to start another actor.
                if let Some(Refused::Full(work) | Refused::Stopped(Some(work))) = refused {
                    let has_home = !home.has_ended();
                    let changed = tokio::time::timeout(patience, mailbox.changed());
                    if !(has_home && matches!(changed.await, Ok(Ok(())))) {
                        let why = "it has ended".to_owned();
                        return Err(CallError::NotConnected { server, why });
                    }
                    order = Some(work);
                }
            }
            answer.await.unwrap_or(Err(CallError::Gone { server }))
        })
    }
}

impl fmt::Debug for SharedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("name", &self.name()).finish_non_exhaustive()
    }
}

/// The servers of one `Ennead`. Kept as long as it lives, so that a session which is opened after
/// another one finds them running.
#[derive(Debug, Default)]
pub(crate) struct McpServers(Mutex<BTreeMap<ServerLaunch, Arc<SharedServer>>>);

impl McpServers {
    /// Returns the server of this configuration. One that is new here, or whose shard is gone, will live on `home`.
    pub(super) fn of(
        &self,
        launch: ServerLaunch,
        start_limit: Duration,
        environment: &Environment,
        home: &Arc<dyn ServerHome>,
    ) -> Arc<SharedServer> {
        let mut servers = self.0.locked();
        let server = servers.entry(launch).or_insert_with_key(|launch| {
            let inner = ServerRecord {
                home: Arc::clone(home),
                restarts: Restarts::default(),
                hurry_when_tried: 0,
                has_stood: false,
                since: None,
            };
            let mailbox = watch::Sender::new(None);
            Arc::new(SharedServer {
                launch: launch.clone(),
                start_limit,
                environment: environment.clone(),
                hurry: watch::Sender::new(0),
                mailbox,
                inner: Mutex::new(inner),
            })
        });
        let mut inner = server.lock();
        if inner.home.has_ended() {
            inner.home = Arc::clone(home);
        }
        drop(inner);
        Arc::clone(server)
    }
}
