//! The handle to a process full of agents.
//!
//! [`Ennead::open`] looks at the options (`check.rs`), joins MCP servers, puts together what the session is
//! opened with (`setup.rs`), and has a shard (`shard.rs`) spawn it.

mod approvals;
mod check;
mod inspect;
pub(crate) mod model_variables;
mod option_values;
mod place;
mod setup;

use std::{
    num::NonZeroU32,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use ennead_runtime::{
    catalogue::Catalogue,
    entropy::EntropyStream,
    ids::SessionId,
    step1_settings_resolution::{LayerText, Merged},
};
use tokio::sync::oneshot;

use self::{check::LookResult, option_values::layers};
use ennead_tools::web_search::WebSearch;

use crate::{
    groundwork::{directory::Directory, mailbox::Mailbox},
    handle::SessionHandle,
    options::{Options, SessionOptions},
    ports::{
        errors::{OpenError, StartError},
        events::EventsOfAll,
    },
    services::{
        governor::Governors,
        mcp_server::{self, McpServers, ServersOfSession},
    },
    session::SessionMsg,
    shard::{ShardHandle, ShardMsg},
    storage::redaction::PatternsInUse,
    turn::{approval::pending::Approvals, model_call::learned::Learned},
    world::kept_sources::KeptSources,
};
#[cfg(feature = "simulated")]
use ennead_simulated::Playbook;
use ennead_tools::locked::Locked as _;

/// Hosts sessions. Several may live in one process; they do not know of each other.
///
/// Dropping it ends all sessions at once; [`Ennead::shutdown`] lets what was handed over reach the
/// disk first.
#[derive(Debug)]
pub struct Ennead {
    options: Options,
    stream: EntropyStream,
    shards: Vec<ShardHandle>,
    governors: Governors,
    mcp_servers: McpServers,
    directory: Directory,
    approvals: Approvals,
    /// What is known about models; read once.
    catalogue: Arc<Catalogue>,
    learned: Learned,
    /// The settings of the session opened last: the next one mostly has the same.
    merged: Mutex<Option<Arc<Merged>>>,
    /// The sources of the sessions opened last.
    kept_sources: Arc<KeptSources>,
    patterns: PatternsInUse,
    /// Counts sessions; places them on shards in turn, and makes their ids differ.
    n_opened: AtomicUsize,
    /// Last, so that events sent while the rest ends still arrive.
    events: EndOfAll,
}

/// Ends the stream of the events of all sessions.
#[derive(Debug)]
struct EndOfAll(EventsOfAll);

impl Drop for EndOfAll {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Ennead {
    /// Starts the scheduler threads and the roots of the tree; about a millisecond.
    ///
    /// # Errors
    ///
    /// [`StartError`] when threads, client or actors cannot be made.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        let directory = Directory::default();
        let shards = ShardHandle::start(&options, &directory).await?;
        let stream = EntropyStream::from_seed(options.seed.unwrap_or_else(seed_of_the_system));
        let spawners = shards.iter().map(ShardHandle::governor_spawner).collect();
        let governors = Governors::new(options.governor, stream, spawners);
        let (catalogue, n_opened) = (Arc::new(Catalogue::built_in()), AtomicUsize::new(0));
        let events = EndOfAll(EventsOfAll::new(Arc::clone(&options.clock)));
        let (mcp_servers, merged) = (McpServers::default(), Mutex::default());
        Ok(Self {
            options,
            stream,
            shards,
            governors,
            mcp_servers,
            directory,
            approvals: Approvals::default(),
            catalogue,
            learned: Learned::default(),
            merged,
            kept_sources: Arc::default(),
            patterns: PatternsInUse::default(),
            n_opened,
            events,
        })
    }

    /// Starts on the simulated model with its default playbook: no network, no key, and it says so
    /// in its answers. Another playbook goes through [`Options::simulated`].
    ///
    /// # Errors
    ///
    /// As [`Ennead::start`].
    #[cfg(feature = "simulated")]
    pub async fn simulated() -> Result<Self, StartError> {
        let playbook = Playbook::parse(crate::world::simulated::DEFAULT, "default")
            .map_err(StartError::Playbook)?;
        Self::start(Options::simulated(playbook)).await
    }

    /// Opens a session, or goes on with one of an earlier process. Waits until its transcript is
    /// open and locked, and for its MCP servers as long as [`McpLimits`](crate::tool::McpLimits) says.
    ///
    /// # Errors
    ///
    /// [`OpenError`]; a transcript that another process holds names the holder.
    pub async fn open(&self, mut options: SessionOptions) -> Result<SessionHandle, OpenError> {
        // One for each session, since it counts.
        if let Some(search) = options.web_search.take() {
            options = options.tool(Arc::new(WebSearch::new(search)));
        }
        // Before servers are started for what cannot be opened.
        let mut looked = self.looked_at(&options).await?;
        let number = self.n_opened.fetch_add(1, Ordering::Relaxed);
        let shard = &self.shards[number % self.shards.len()];
        let id = self.session_id(&options, number)?;
        // The run under way keeps its place.
        let capacity = NonZeroU32::MIN.saturating_add(options.max_queued_prompts);
        let mut joined = if mcp_server::wants(&options) {
            // In a box, since few sessions have any and every caller's future would carry it.
            Box::pin(self.join_mcp(&mut options, &looked, shard)).await
        } else {
            ServersOfSession::default()
        };
        joined.notices.extend(looked.notice.take().map(Into::into));
        // After the servers, which may take long. Never closed.
        let _place = shard.opening.acquire().await;
        let redaction = self.redaction(&options, &looked).await;
        joined.notices.extend(redaction.notice().map(Into::into));
        looked.keep_little();
        let setup = self.setup(options, shard, id, joined, looked, redaction)?;
        let servers = setup.session_context.servers.clone();
        let callable = setup.session_context.tools.clone();
        let (session, hub) =
            (setup.session_context.session.clone(), setup.session_context.hub.clone());
        let transcript = setup.open.paths.file.clone();
        let tools =
            setup.session_context.facts.tools.iter().map(|it| it.name.to_string()).collect();
        let (reply, spawned) = oneshot::channel();
        shard.actor.cast(ShardMsg::Open(setup, reply)).map_err(|_| OpenError::Ended)?;
        let actor = spawned.await.ok().flatten().ok_or(OpenError::Ended)?;
        let (reply, ready) = oneshot::channel();
        actor.cast(SessionMsg::Ready(reply)).map_err(|_| OpenError::Ended)?;
        if let Err(error) = ready.await.map_err(|_| OpenError::Ended)? {
            actor.stop(None);
            return Err(error);
        }
        let prompts = Mailbox::new(actor.clone(), capacity, SessionMsg::Prompt);
        let directory = self.directory.clone();
        directory.note_mailbox(actor.get_id(), prompts.gauge());
        let approvals = self.approvals.clone();
        Ok(SessionHandle {
            session,
            transcript,
            actor,
            prompts,
            hub,
            directory,
            approvals,
            tools,
            servers,
            callable,
        })
    }

    /// Gives the session the tools of its MCP servers that are ready in time.
    async fn join_mcp(
        &self,
        options: &mut SessionOptions,
        looked: &LookResult,
        shard: &ShardHandle,
    ) -> ServersOfSession {
        let (layers, place) = (looked.layers.clone(), &looked.dirs);
        let (common, servers) = (&self.options, &self.mcp_servers);
        let home = Arc::new(shard.actor.clone());
        mcp_server::join(options, layers, place, common, servers, home).await
    }

    /// Interrupts what runs, closes every session, and ends once everything is on disk. A run that
    /// does not let go is waited for at most two seconds. MCP servers live until then, whether a
    /// session uses them or not.
    pub async fn shutdown(self) {
        futures::future::join_all(self.shards.iter().map(ShardHandle::shutdown)).await;
    }

    /// What an embedder's layers give before any file is read.
    fn merged(&self, layers: &[LayerText], catalogue: &Arc<Catalogue>) -> Arc<Merged> {
        // A whole value is put in at once, so a panic elsewhere spoils nothing.
        let mut last = self.merged.locked();
        match &*last {
            Some(merged) if merged.matches(layers, catalogue) => Arc::clone(merged),
            _ => {
                let merged = Arc::new(Merged::new(layers.to_vec(), catalogue));
                Arc::clone(last.insert(merged))
            }
        }
    }

    /// Returns the id that the options give, or a new one for the session of this number.
    fn session_id(&self, options: &SessionOptions, number: usize) -> Result<SessionId, OpenError> {
        match &options.id {
            Some(id) if is_uuid(id.as_str()) => Ok(id.clone()),
            Some(id) => Err(OpenError::BadId(id.to_string())),
            None => {
                let now = self.options.clock.now();
                Ok(SessionId::new(self.stream.uuid(now, "session", number as u64)))
            }
        }
    }
}

/// From the operating system's source of randomness, by way of a hasher that is seeded from it.
fn seed_of_the_system() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}

fn is_uuid(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    groups.iter().map(|it| it.len()).eq([8, 4, 4, 4, 12])
        && groups.iter().all(|it| it.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
