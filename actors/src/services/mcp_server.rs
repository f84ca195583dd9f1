//! One per MCP server, configuration and directory: keeps the server at hand.
//!
//! Child of a shard, shared by all sessions that are configured with it. Admits calls, hands them
//! to the connection, and has another connection made when one ends. It never waits: the process,
//! the protocol and the pauses are in a leaf below it, so that the end of either ends the process.
//! When this actor is gone, its shard starts another; what has to outlast it is in [`SharedServer`].

mod connection;
mod join;
mod server;
mod starting;
mod status;
mod withheld_variables;

use std::{sync::Arc, time::Duration};

use ennead_runtime::{
    mcp::{result::CallResult, spec::Listed, state::ServerState},
    ports::{Clock, ReportProgress},
};
use ennead_tools::mcp::CallError;
use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef, SupervisionEvent};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};

pub(crate) use join::{ServersOfSession, join, one_line, wants};
pub(crate) use server::{McpServers, ServerHome, SharedServer};
pub(crate) use starting::{Answered, StartingServers};
pub use status::McpServerStatus;
pub(crate) use status::SessionServers;

use crate::{
    groundwork::{
        directory::{ActorKind, Directory, Registration},
        mailbox::Admitted,
        supervision::{HandlerResult, Job, ended_child, spawn_leaf},
    },
    world::clock::Timer,
};

/// One call of a tool.
pub(crate) struct Order {
    /// The tool, by its name on the server.
    pub(crate) tool: String,
    pub(crate) arguments: Map<String, Value>,
    /// Takes how far the call is.
    pub(crate) progress: Option<Arc<dyn ReportProgress>>,
    /// Closed by the one that waits no longer.
    pub(crate) reply: oneshot::Sender<Result<CallResult, CallError>>,
}

/// The tools of a server, or why there are none.
pub(crate) type Tools = Result<Arc<[Listed]>, ServerFailure>;

/// Why a server cannot be had.
#[derive(Clone, Debug)]
pub(crate) struct ServerFailure {
    pub(crate) why: Arc<str>,
    /// It answers only those who have logged in.
    pub(crate) needs_auth: bool,
}

impl ServerFailure {
    pub(crate) fn new(why: impl Into<Arc<str>>) -> Self {
        Self { why: why.into(), needs_auth: false }
    }

    /// Returns the state of a server that failed so.
    pub(crate) fn state(&self) -> ServerState {
        if self.needs_auth { ServerState::NeedsAuth } else { ServerState::Failed }
    }
}

/// Calls that are on their way to a connection.
pub(crate) type Orders = mpsc::UnboundedSender<Admitted<Box<Order>>>;

/// What the actor of a server receives.
pub(crate) enum McpMsg {
    /// Have this tool called. Holds a slot until the call has ended.
    Call(Admitted<Box<Order>>),
    /// Which tools are there?
    Tools(oneshot::Sender<Tools>),
    /// The connection is open, and the tools are listed.
    Connected { tools: Arc<[Listed]>, orders: Orders },
    /// There is no connection, or none any more. Its leaf ends once nothing of the server is left.
    Ended(ServerFailure),
    /// End the server, and then yourself.
    Close,
    /// A child has ended. Queued after the messages that it sent.
    ChildGone(ActorId),
}

/// What the actor of a server is given.
pub(crate) struct McpServerSetup {
    pub(crate) server: Arc<SharedServer>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) timer: Arc<dyn Timer>,
    pub(crate) directory: Directory,
    /// Before the first attempt; `None`: there was none yet.
    pub(crate) pause: Option<Duration>,
}

/// The actor of one server.
pub(crate) struct McpServer;

pub(crate) struct McpServerState {
    setup: McpServerSetup,
    phase: Phase,
    /// The connection, or what will be one.
    leaf: Option<ActorId>,
    /// Ends an attempt when it is dropped.
    stopper: Option<oneshot::Sender<()>>,
    /// Until the attempt under way has ended.
    calls: Vec<Admitted<Box<Order>>>,
    askers: Vec<oneshot::Sender<Tools>>,
    closing: bool,
    _registration: Registration,
}

enum Phase {
    /// After a pause, or on its way.
    Starting,
    Standing {
        tools: Arc<[Listed]>,
        orders: Orders,
    },
    /// Until nothing is left of the last one.
    Ending,
    /// Until somebody wants it again.
    GivenUp,
}

impl Actor for McpServer {
    type Msg = McpMsg;
    type State = McpServerState;
    type Arguments = McpServerSetup;

    async fn pre_start(
        &self,
        myself: ActorRef<McpMsg>,
        setup: McpServerSetup,
    ) -> Result<McpServerState, ActorProcessingErr> {
        let registration = setup.directory.enter(ActorKind::McpServer, None, myself.get_cell());
        setup.server.has_actor(&myself);
        let pause = setup.pause.unwrap_or_default();
        let mut state = McpServerState {
            setup,
            phase: Phase::Starting,
            leaf: None,
            stopper: None,
            calls: Vec::new(),
            askers: Vec::new(),
            closing: false,
            _registration: registration,
        };
        state.start(&myself, pause).await?;
        Ok(state)
    }

    async fn handle(
        &self,
        myself: ActorRef<McpMsg>,
        message: McpMsg,
        state: &mut McpServerState,
    ) -> HandlerResult {
        match message {
            McpMsg::Call(order) => state.call(&myself, order).await?,
            McpMsg::Tools(reply) => state.reply_with_tools(&myself, reply).await?,
            McpMsg::Connected { tools, orders } => state.on_connected(tools, orders),
            McpMsg::Ended(failure) => state.on_end(&failure),
            McpMsg::Close => state.close(&myself),
            McpMsg::ChildGone(child) => {
                if state.leaf == Some(child) {
                    state.leaf_gone(&myself).await?;
                }
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<McpMsg>,
        event: SupervisionEvent,
        state: &mut McpServerState,
    ) -> HandlerResult {
        if let Some(child) = ended_child(&event)
            && state.leaf == Some(child)
        {
            myself.cast(McpMsg::ChildGone(child))?;
        }
        Ok(())
    }
}

impl McpServerState {
    /// Starts the attempt to connect, after a pause.
    async fn start(&mut self, myself: &ActorRef<McpMsg>, pause: Duration) -> HandlerResult {
        self.phase = Phase::Starting;
        let (stopper, stop) = oneshot::channel();
        self.stopper = Some(stopper);
        let work = Box::pin(connection::run(connection::ConnectionAttempt {
            server: Arc::clone(&self.setup.server),
            timer: Arc::clone(&self.setup.timer),
            pause,
            stop,
            back: myself.clone(),
        }));
        let directory = self.setup.directory.clone();
        let leaf = spawn_leaf(
            Job::new(ActorKind::McpConnection, None, directory, work),
            myself.get_cell(),
        )
        .await?;
        self.leaf = Some(leaf.get_id());
        Ok(())
    }

    async fn call(
        &mut self,
        myself: &ActorRef<McpMsg>,
        order: Admitted<Box<Order>>,
    ) -> HandlerResult {
        match &self.phase {
            Phase::Standing { orders, .. } => {
                // A connection that has crashed just now took nothing on.
                if let Err(back) = orders.send(order) {
                    self.calls.push(back.0);
                }
            }
            Phase::Starting | Phase::Ending => self.calls.push(order),
            Phase::GivenUp => {
                self.calls.push(order);
                self.start_again(myself).await?;
            }
        }
        Ok(())
    }

    async fn reply_with_tools(
        &mut self,
        myself: &ActorRef<McpMsg>,
        reply: oneshot::Sender<Tools>,
    ) -> HandlerResult {
        match &self.phase {
            Phase::Standing { tools, .. } => {
                // Who asked and left needs no answer.
                let _gone = reply.send(Ok(Arc::clone(tools)));
            }
            Phase::Starting | Phase::Ending => self.askers.push(reply),
            Phase::GivenUp => {
                self.askers.push(reply);
                self.start_again(myself).await?;
            }
        }
        Ok(())
    }

    /// Somebody wants a server that was given up.
    async fn start_again(&mut self, myself: &ActorRef<McpMsg>) -> HandlerResult {
        self.setup.server.forget_ends();
        self.start(myself, Duration::ZERO).await
    }

    fn on_connected(&mut self, tools: Arc<[Listed]>, orders: Orders) {
        if self.closing {
            // It was on its way when the end was asked for. Without `orders` its leaf ends, too,
            // and what that says answers those who wait.
            return;
        }
        for asker in self.askers.drain(..) {
            let _gone = asker.send(Ok(Arc::clone(&tools)));
        }
        for order in self.calls.drain(..) {
            let _gone = orders.send(order);
        }
        self.setup.server.came_up(self.setup.clock.elapsed());
        self.phase = Phase::Standing { tools, orders };
    }

    /// The attempt or the connection has ended: those that waited for it get an answer.
    fn on_end(&mut self, failure: &ServerFailure) {
        let (name, why) = (self.setup.server.name(), &*failure.why);
        tracing::warn!(server = name, why, "an MCP server has ended");
        self.phase = Phase::Ending;
        for asker in self.askers.drain(..) {
            let _gone = asker.send(Err(failure.clone()));
        }
        for order in self.calls.drain(..) {
            let (server, why) = (name.to_owned(), why.to_owned());
            let _gone = order.work.reply.send(Err(CallError::NotConnected { server, why }));
        }
    }

    /// Nothing is left of it: the next one may start.
    async fn leaf_gone(&mut self, myself: &ActorRef<McpMsg>) -> HandlerResult {
        self.leaf = None;
        match self.phase {
            // It crashed on the way. Calls that came to a connection were answered by its end, and
            // those that did not may wait for the next one.
            Phase::Starting => self.on_end(&ServerFailure::new("its connection crashed")),
            Phase::Standing { .. } | Phase::Ending | Phase::GivenUp => {}
        }
        let pause = self.setup.server.note_end(self.setup.clock.elapsed());
        if self.closing {
            myself.stop(None);
        } else if let Some(pause) = pause {
            self.start(myself, pause).await?;
        } else if self.calls.is_empty() && self.askers.is_empty() {
            self.phase = Phase::GivenUp;
        } else {
            self.start_again(myself).await?;
        }
        Ok(())
    }

    fn close(&mut self, myself: &ActorRef<McpMsg>) {
        self.closing = true;
        // Without the way for calls a connection ends in order, without its stopper an attempt does,
        // and their leaf with them.
        let phase = std::mem::replace(&mut self.phase, Phase::Ending);
        self.stopper = None;
        if matches!(phase, Phase::GivenUp) {
            myself.stop(None);
        }
    }
}
