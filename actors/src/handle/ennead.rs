//! The handle to a process full of agents.

mod approvals;
mod check;
mod given;
mod inspect;
mod place;

use std::{
    num::NonZeroU32,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use ennead_runtime::{
    catalogue::Catalogue,
    entropy::EntropyStream,
    ids::SessionId,
    permission::PermissionMode,
    run::{
        agent_types::{AgentType, listing},
        conversation::Conversation,
        facts::{REVISION, SessionFacts},
    },
    step1_settings_resolution::{LayerText, Merged},
    step5_model_call::wire_format::Provider,
    step7_permission_gate::Handler,
    tool::ToolSpec,
    transcript::entry::LineFrame,
};
use tokio::sync::oneshot;

use self::{
    check::Looked,
    given::{endpoints, layers},
    place::layout,
};
use crate::{
    groundwork::{
        directory::Directory,
        mailbox::Mailbox,
        redaction::{PatternsInUse, Redaction},
        spans,
    },
    options::{Endpoint, Options, SessionOptions, credentials::secret_variables},
    ports::{
        errors::{OpenError, StartError},
        events::{EventHub, EventsOfAll},
        in_process_hook::Hooks,
    },
    services::{
        approval::pending::Approvals,
        governor::Governors,
        mcp_server::{self, Joined, McpServers},
    },
    session::{
        OpenPlan, SessionContext, SessionHandle, SessionMsg, SessionSetup,
        background::SessionShells, tools::SessionTools,
    },
    shard::{ShardHandle, ShardMsg},
    storage::archive::guard,
    turn::model_call::learned::Learned,
    world::sources::memory_directory,
};
#[cfg(feature = "simulated")]
use ennead_simulated::Playbook;

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
        // Before servers are started for what cannot be opened.
        let mut looked = self.looked_at(&options).await?;
        let number = self.n_opened.fetch_add(1, Ordering::Relaxed);
        let shard = &self.shards[number % self.shards.len()];
        let id = self.session_id(&options, number)?;
        // The run under way keeps its place.
        let capacity = NonZeroU32::MIN.saturating_add(options.max_queued_prompts);
        let mut joined = match mcp_server::wants(&options) {
            // In a box, since few sessions have any and every caller's future would carry it.
            true => Box::pin(self.join_mcp(&mut options, &looked, shard)).await,
            false => Joined::default(),
        };
        joined.notices.extend(looked.notice.take().map(Into::into));
        // Behind the servers, which may take long. Never closed.
        let _place = shard.opening.acquire().await;
        let redaction = self.redaction(&options, &looked).await;
        let setup = self.setup(options, shard, id, joined, looked, redaction)?;
        let servers = setup.shared.servers.clone();
        let (session, hub) = (setup.shared.session.clone(), setup.shared.hub.clone());
        let transcript = setup.open.place.file.clone();
        let tools = setup.shared.facts.tools.iter().map(|it| it.name.to_string()).collect();
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
        })
    }

    /// Gives the session the tools of its MCP servers that are ready in time.
    async fn join_mcp(
        &self,
        options: &mut SessionOptions,
        looked: &Looked,
        shard: &ShardHandle,
    ) -> Joined {
        let (layers, place) = (looked.layers.clone(), &looked.place);
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
        let mut last = self.merged.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some(merged) if merged.matches(layers, catalogue) => Arc::clone(merged),
            _ => {
                let merged = Arc::new(Merged::new(layers.to_vec(), catalogue));
                Arc::clone(last.insert(merged))
            }
        }
    }

    /// The one that is given, or a new one for the session of this number.
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

    fn setup(
        &self,
        options: SessionOptions,
        shard: &ShardHandle,
        id: SessionId,
        joined: Joined,
        looked: Looked,
        redaction: Redaction,
    ) -> Result<Box<SessionSetup>, OpenError> {
        let Looked { place, mut real_paths, layers, first: first_look, .. } = looked;
        let layout = layout(&self.options.environment, &options, &place)?;
        let file = layout.session(&id).map_err(|it| OpenError::BadId(it.id))?;
        if options.id.is_some() && options.transcripts.is_none() {
            guard::check_session(&file).map_err(OpenError::UnsafeTranscripts)?;
        }
        real_paths.follow(&place.home);
        match &options.id {
            Some(_) => drop(real_paths.follow(&file.beside)),
            None => real_paths.follow_new(&file.beside),
        }
        let endpoints = endpoints(&options);
        let catalogue = self.learned.over(&self.catalogue, &endpoints);
        let merged = self.merged(&layers, &catalogue);
        let durability = merged.resolved.settings.durability;
        let provider = |it: &Endpoint| Provider { name: it.provider.clone(), format: it.format };
        // Who has no home keeps nothing there.
        let keeps_notes = options.reads_sources && place.home != Path::new("/");
        let notes = keeps_notes.then(|| memory_directory(&place));
        let facts = Arc::new(SessionFacts {
            revision: REVISION,
            session: id.clone(),
            agent: None,
            agent_type: "".into(),
            depth: 0,
            workspace: text(&place.workspace),
            within: Vec::new(),
            home: text(&place.home),
            real: real_paths.real,
            directory: text(&file.beside),
            memory: notes.map(|it| text(&it)),
            transcript: text(&file.file),
            tools: options
                .tools
                .iter()
                .map(|it| offered(it.spec(), &options.agent_types))
                .collect(),
            agents: Arc::default(),
            agent_types: options.agent_types,
            handler: match options.approver.is_some() || options.answers_by_handle {
                true => Handler::Approver,
                false => Handler::None,
            },
            has_policy: options.policy.is_some(),
            may_bypass: options.may_bypass
                || merged.resolved.settings.permissions.mode == PermissionMode::BypassPermissions,
            shows_secrets: !redaction.is_for_model(),
            layers,
            reads_settings: options.reads_settings,
            streams: options.streams,
            providers: endpoints.iter().map(provider).collect(),
        });
        let frame = LineFrame {
            session: id.clone(),
            agent: None,
            cwd: Arc::clone(&facts.workspace),
            git_branch: None,
            version: env!("CARGO_PKG_VERSION"),
        };
        let Joined { notices, servers, starting } = joined;
        let shared = SessionContext {
            session: id.clone(),
            facts: Arc::clone(&facts),
            world: shard.world.clone(),
            place,
            guard: None,
            learned: self.learned.clone(),
            limiters: endpoints.iter().map(|it| self.governors.of(it)).collect(),
            endpoints: Arc::clone(&endpoints),
            tenant: options.tenant.unwrap_or_default(),
            tools: SessionTools::new(&options.tools),
            servers,
            shells: SessionShells::default(),
            hub: EventHub::of_session(
                id.clone(),
                self.events.0.clone(),
                redaction.redactor().clone(),
            ),
            span: spans::session(None, &id),
            directory: self.directory.clone(),
            approvals: self.approvals.clone(),
            approver: options.approver,
            policy: options.policy,
            answers_by_handle: options.answers_by_handle,
            breakpoints: self.options.breakpoints.clone(),
            hooks: Hooks::new(options.hooks),
            hook_chain: match &self.options.hook_chain {
                Some(chain) => chain.clone().into(),
                None => self.options.environment.hook_chain().into(),
            },
            secret_variables: secret_variables(&endpoints),
            redaction,
            reads_sources: options.reads_sources,
            goes_on_from: options.goes_on_from.map(Into::into),
            system_prompt: options.system_prompt,
            append_system_prompt: options.append_system_prompt,
            bare_system_prompt: options.bare_system_prompt,
            static_system_prompt: options.static_system_prompt,
        };
        // In a box, since the future of the one that opens a session would carry it to its end.
        Ok(Box::new(SessionSetup {
            shared: Arc::new(shared),
            conversation: Conversation::new(facts, self.stream.child(id.as_str()))
                .with_catalogue(catalogue)
                .with_merged(merged),
            archive: shard.archive.clone(),
            open: OpenPlan { place: file, frame, durability, meta: None, first_look },
            parent: None,
            layout,
            notices,
            starting,
        }))
    }
}

/// From the operating system's source of randomness, by way of a hasher that is seeded from it.
fn seed_of_the_system() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}

/// The description of a tool as models read it: the tool that starts agents lists those of the session.
fn offered(spec: &ToolSpec, agent_types: &[AgentType]) -> Arc<ToolSpec> {
    let mut spec = spec.clone();
    if let Some(listing) = listing(agent_types).filter(|_| spec.name.as_str() == "Agent") {
        spec.description = format!("{}{listing}", spec.description).into();
    }
    Arc::new(spec)
}

fn text(path: &Path) -> Arc<str> {
    path.to_string_lossy().as_ref().into()
}

fn is_uuid(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    groups.iter().map(|it| it.len()).eq([8, 4, 4, 4, 12])
        && groups.iter().all(|it| it.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
