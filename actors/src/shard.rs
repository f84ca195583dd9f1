//! One scheduler thread's part of an `Ennead`: an archive and the sessions placed there.
//!
//! All actors of a session live on one thread, since waking a sleeping one costs more than a small
//! turn. A shard is the root of their tree; shards know nothing of each other. When its archive
//! ends the shard ends: what cannot be recorded is not done.

use std::{collections::BTreeMap, sync::Arc, thread::Builder, time::Duration};

use ennead_runtime::ports::Clock;
use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef, ActorStatus, SupervisionEvent};
use tokio::sync::{Semaphore, oneshot};

#[cfg(feature = "web")]
use crate::world::web_pages::PageClients;
use crate::{
    groundwork::{
        directory::{ActorKind, Directory, Registration},
        scheduler,
        supervision::{ended_child, spawn},
    },
    options::{Options, Placement},
    ports::errors::StartError,
    services::{
        governor::{Governor, GovernorMsg, ProviderLimiter, Spawner},
        mcp_server::{self, McpMsg, McpServer, ServerHome, SharedServer, Tools},
    },
    session::{Session, SessionMsg, SessionSetup},
    storage::archive::{Archive, ArchiveMsg, ArchiveSetup},
    world::{World, clock::Timer, hook_http::HookServers, own_transport},
};

/// What a shard receives.
pub(crate) enum ShardMsg {
    /// Open a session here.
    Open(Box<SessionSetup>, oneshot::Sender<Option<ActorRef<SessionMsg>>>),
    /// Start the actor of this limiter here.
    Govern(ProviderLimiter),
    /// Ask this server, whose actor lives here, for its tools. It is started if it is not there.
    McpTools(Arc<SharedServer>, oneshot::Sender<Tools>),
    /// Close the sessions, then the archive, then end.
    Shutdown(oneshot::Sender<()>),
}

/// A shard from outside.
#[derive(Debug)]
pub(crate) struct ShardHandle {
    pub(crate) actor: ActorRef<ShardMsg>,
    pub(crate) archive: ActorRef<ArchiveMsg>,
    pub(crate) world: World,
    /// Lets this many sessions be opened at once. Others wait in order, so that of a burst the
    /// first ones are at work, and wait for their models, before the last ones are opened.
    pub(crate) opening: Arc<Semaphore>,
}

/// Sessions of a shard that are opened at once: enough to keep it busy while some read long
/// transcripts.
const OPENING: usize = 8;

/// The actor at the root of a shard.
struct Shard;

struct ShardState {
    archive: ActorRef<ArchiveMsg>,
    sessions: BTreeMap<ActorId, ActorRef<SessionMsg>>,
    governors: BTreeMap<ActorId, ActorRef<GovernorMsg>>,
    mcp_servers: BTreeMap<ActorId, (ActorRef<McpMsg>, Arc<SharedServer>)>,
    clock: Arc<dyn Clock>,
    timer: Arc<dyn Timer>,
    directory: Directory,
    _registration: Registration,
    /// Learn that it has ended, by being dropped last; `None` until one is wanted.
    shutdown: Option<Vec<oneshot::Sender<()>>>,
}

impl Actor for Shard {
    type Msg = ShardMsg;
    type State = ShardState;
    type Arguments = (ArchiveSetup, Arc<dyn Timer>);

    async fn pre_start(
        &self,
        myself: ActorRef<ShardMsg>,
        (setup, timer): (ArchiveSetup, Arc<dyn Timer>),
    ) -> Result<ShardState, ActorProcessingErr> {
        let (clock, directory) = (Arc::clone(&setup.clock), setup.directory.clone());
        let registration = directory.enter(ActorKind::Shard, None, myself.get_cell());
        let archive = spawn(Archive, setup, myself.get_cell()).await?;
        Ok(ShardState {
            archive,
            sessions: BTreeMap::new(),
            governors: BTreeMap::new(),
            mcp_servers: BTreeMap::new(),
            clock,
            timer,
            directory,
            shutdown: None,
            _registration: registration,
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<ShardMsg>,
        message: ShardMsg,
        state: &mut ShardState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            ShardMsg::Open(setup, reply) => {
                if state.shutdown.is_some() {
                    // The one that asked learns it from the reply that never comes.
                    return Ok(());
                }
                let actor = spawn(Session, setup, myself.get_cell()).await.ok();
                if let Some(actor) = &actor {
                    state.sessions.insert(actor.get_id(), actor.clone());
                }
                // The one that asked may have given up; the session then has no owner and is
                // cheap.
                let _gone = reply.send(actor);
            }
            ShardMsg::Govern(limiter) => {
                // At the end sessions are interrupted and no call waits at a limiter.
                if state.shutdown.is_none() {
                    let governor = (limiter, state.directory.clone());
                    let governor = spawn(Governor, governor, myself.get_cell()).await?;
                    state.governors.insert(governor.get_id(), governor);
                }
            }
            ShardMsg::McpTools(server, reply) => {
                let actor = mcp_server(&myself, server, state).await?;
                // An actor that is just ending drops the question, and that is the answer.
                let _gone = actor.map(|it| it.cast(McpMsg::Tools(reply)));
            }
            ShardMsg::Shutdown(reply) => {
                state.shutdown.get_or_insert_default().push(reply);
                for session in state.sessions.values() {
                    let (reply, _) = oneshot::channel();
                    // Its end is noticed by supervision.
                    let _gone = session.cast(SessionMsg::Close(reply));
                }
                close_archive_if_last(state)?;
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<ShardMsg>,
        event: SupervisionEvent,
        state: &mut ShardState,
    ) -> Result<(), ActorProcessingErr> {
        match ended_child(&event) {
            Some(child) if child == state.archive.get_id() => {
                myself.stop(Some("the archive has ended".into()));
            }
            Some(child) if state.mcp_servers.contains_key(&child) => {
                let server = state.mcp_servers.remove(&child).map(|(_, server)| server);
                if state.shutdown.is_some() {
                    close_archive_if_last(state)?;
                } else if let Some(server) = server
                    && let Some(pause) = server.note_end(state.clock.elapsed())
                {
                    start_mcp_server(&myself, server, Some(pause), state).await?;
                }
            }
            Some(child)
                if state.sessions.remove(&child).is_some()
                    || state.governors.remove(&child).is_some() =>
            {
                close_archive_if_last(state)?;
            }
            _ => {}
        }
        Ok(())
    }
}

impl ServerHome for ActorRef<ShardMsg> {
    fn ask(&self, server: Arc<SharedServer>, reply: oneshot::Sender<Tools>) -> bool {
        // What could not be sent comes back, the reply in it; kept, it would be waited for for ever.
        self.cast(ShardMsg::McpTools(server, reply)).is_ok()
    }

    fn has_ended(&self) -> bool {
        ActorStatus::Stopping <= self.get_status()
    }
}

/// The actor of a server; a new one, if it has none. `None` when the shard is to end.
async fn mcp_server(
    myself: &ActorRef<ShardMsg>,
    server: Arc<SharedServer>,
    state: &mut ShardState,
) -> Result<Option<ActorRef<McpMsg>>, ActorProcessingErr> {
    if state.shutdown.is_some() {
        return Ok(None);
    }
    let found = state.mcp_servers.values().find(|(_, it)| Arc::ptr_eq(it, &server));
    if let Some((actor, _)) = found {
        return Ok(Some(actor.clone()));
    }
    Ok(Some(start_mcp_server(myself, server, None, state).await?))
}

async fn start_mcp_server(
    myself: &ActorRef<ShardMsg>,
    server: Arc<SharedServer>,
    pause: Option<Duration>,
    state: &mut ShardState,
) -> Result<ActorRef<McpMsg>, ActorProcessingErr> {
    let setup = mcp_server::McpServerSetup {
        server: Arc::clone(&server),
        clock: Arc::clone(&state.clock),
        timer: Arc::clone(&state.timer),
        directory: state.directory.clone(),
        pause,
    };
    let actor = spawn(McpServer, setup, myself.get_cell()).await?;
    state.mcp_servers.insert(actor.get_id(), (actor.clone(), server));
    Ok(actor)
}

/// When the shard is to end and its last session is gone, its governors and MCP servers end, then
/// the archive, and the shard with it.
fn close_archive_if_last(state: &ShardState) -> Result<(), ActorProcessingErr> {
    if state.shutdown.is_none() || !state.sessions.is_empty() {
        return Ok(());
    }
    if !state.governors.is_empty() || !state.mcp_servers.is_empty() {
        state.governors.values().for_each(|it| it.stop(None));
        for (actor, _) in state.mcp_servers.values() {
            // Its end is noticed by supervision.
            let _gone = actor.cast(McpMsg::Close);
        }
    } else {
        state.archive.cast(ArchiveMsg::Shutdown(None))?;
    }
    Ok(())
}

impl ShardHandle {
    /// Starts actors of governors here.
    pub(crate) fn governor_spawner(&self) -> Spawner {
        let shard = self.actor.clone();
        Spawner::new(move |limiter| shard.cast(ShardMsg::Govern(limiter)).is_ok())
    }

    /// Starts the shards that the options ask for.
    pub(crate) async fn start(
        options: &Options,
        directory: &Directory,
    ) -> Result<Vec<Self>, StartError> {
        match options.placement {
            Placement::Ambient => Ok(vec![Self::here(options.clone(), directory.clone()).await?]),
            Placement::Threads(n) => {
                let mut shards = Vec::new();
                for number in 0..n.max(1) {
                    shards.push(Self::on_thread(number, options, directory).await?);
                }
                Ok(shards)
            }
        }
    }

    /// A shard on the runtime of the caller.
    #[expect(clippy::disallowed_methods, reason = "a shard is the root of its tree")]
    async fn here(options: Options, directory: Directory) -> Result<Self, StartError> {
        let (transport, own) = match &options.transport {
            Some(transport) => (Arc::clone(transport), None),
            None => {
                let own = own_transport(&options.environment)?;
                (Arc::clone(&own), Some(own))
            }
        };
        let world = World {
            clock: Arc::clone(&options.clock),
            timer: Arc::clone(&options.timer),
            transport,
            hook_servers: HookServers::new(own, &options.environment),
            #[cfg(feature = "web")]
            page_clients: PageClients::new(&options.environment),
            http: options.http,
            files: Arc::clone(&options.lookup),
            transcripts: Arc::clone(&options.transcript_store),
        };
        let setup = ArchiveSetup {
            clock: Arc::clone(&options.clock),
            store: Arc::clone(&options.transcript_store),
            directory,
        };
        let (actor, _) = Actor::spawn(None, Shard, (setup, Arc::clone(&options.timer)))
            .await
            .map_err(|error| StartError::Actor(error.to_string()))?;
        let archive = actor.get_children().into_iter().next().map(ActorRef::from);
        let archive = archive.ok_or_else(|| StartError::Actor("no archive".into()))?;
        let opening = Arc::new(Semaphore::new(OPENING));
        Ok(Self { actor, archive, world, opening })
    }

    /// A shard on a thread of its own, with a current-thread runtime.
    async fn on_thread(
        number: usize,
        options: &Options,
        directory: &Directory,
    ) -> Result<Self, StartError> {
        let (ready, started) = oneshot::channel();
        let (options, directory) = (options.clone(), directory.clone());
        Builder::new()
            .name(format!("ennead-{number}"))
            .spawn(move || run(options, directory, ready))
            .map_err(StartError::Thread)?;
        let gone = || StartError::Actor("the thread has ended".into());
        started.await.map_err(|_| gone())?
    }

    /// Ends the shard once everything is written.
    pub(crate) async fn shutdown(&self) {
        let (reply, done) = oneshot::channel();
        if self.actor.cast(ShardMsg::Shutdown(reply)).is_ok() {
            // A shard that ends on the way has ended, too.
            let _ended = done.await;
        }
    }
}

impl Drop for ShardHandle {
    fn drop(&mut self) {
        self.actor.stop(None);
        // Its thread ends with it, which is not waited for here, since this may be an async context.
    }
}

type Started = Result<ShardHandle, StartError>;

fn run(options: Options, directory: Directory, ready: oneshot::Sender<Started>) {
    let runtime = match scheduler::runtime_builder().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let _gone = ready.send(Err(StartError::Thread(error)));
            return;
        }
    };
    runtime.block_on(async move {
        let started = ShardHandle::here(options, directory).await;
        let actor = started.as_ref().ok().map(|it| it.actor.clone());
        let _gone = ready.send(started);
        if let Some(actor) = actor {
            // The thread lives as long as its root does.
            let _ended = actor.wait(None).await;
        }
    });
    // Work on the blocking pool whose result is not needed any more does not keep the thread.
    runtime.shutdown_background();
}
