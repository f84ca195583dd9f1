//! What the actors of one session have in common. Fixed while the session lives.

use std::sync::Arc;

use ennead_runtime::{
    ids::{AgentId, EntryId, SessionId, TenantId},
    ports::{BoxFuture, WorkGuard},
    run::facts::SessionFacts,
};

#[cfg(feature = "web")]
use crate::world::web_pages::PageCache;
use crate::{
    groundwork::{
        directory::{ActorKind, Directory},
        spans,
        supervision::Job,
    },
    options::{Breakpoints, Endpoint},
    ports::{
        approver::Approver, events::EventHub, in_process_hook::Hooks, policy::PermissionPolicy,
    },
    services::{governor::ProviderLimiter, mcp_server::SessionServers},
    session::{
        background::{SessionAgents, SessionShells},
        tools::SessionTools,
    },
    storage::redaction::Redaction,
    turn::{approval::pending::Approvals, model_call::learned::Learned},
    world::{
        World, agent_memory::AgentNotes, hook_exports::SessionExports, source_files::SessionDirs,
    },
};

/// What the actors of one session have in common.
#[derive(Clone, Debug)]
pub(crate) struct SessionContext {
    /// The session; of a sub-agent the name it has in the directory.
    pub(crate) session: SessionId,
    /// What the rules know of it.
    pub(crate) facts: Arc<SessionFacts>,
    pub(crate) world: World,
    /// Where its files lie.
    pub(crate) dirs: SessionDirs,
    /// Kept until nothing that works for it can touch the world any more.
    pub(crate) guard: Option<WorkGuard>,
    /// The model servers, in the order of the facts.
    pub(crate) endpoints: Arc<[Endpoint]>,
    /// What is in front of each.
    pub(crate) limiters: Arc<[ProviderLimiter]>,
    /// What servers named of their models' limits.
    pub(crate) learned: Learned,
    /// For whom it works.
    pub(crate) tenant: TenantId,
    /// The tools by name, shared with its sub-agents.
    pub(crate) tools: SessionTools,
    /// Its MCP servers; a sub-agent has none of its own.
    pub(crate) servers: SessionServers,
    /// Its commands in the background.
    pub(crate) shells: Arc<SessionShells>,
    /// Its sub-agents in the background.
    pub(crate) agents: Arc<SessionAgents>,
    pub(crate) hub: EventHub,
    /// The span of all that is done for the session.
    pub(crate) span: tracing::Span,
    pub(crate) directory: Directory,
    /// The questions of all sessions that are open.
    pub(crate) approvals: Approvals,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    /// Asked before anybody else.
    pub(crate) policy: Option<Arc<dyn PermissionPolicy>>,
    /// Whether questions may be answered through handles.
    pub(crate) answers_by_handle: bool,
    /// Makes turns stand still.
    pub(crate) breakpoints: Option<Arc<dyn Breakpoints>>,
    /// Hooks that are code of the embedder.
    pub(crate) hooks: Hooks,
    /// Hooks that what opened this session hangs from.
    pub(crate) hook_chain: Arc<[String]>,
    /// What hooks have commands begin with; shared with its sub-agents.
    pub(crate) exports: SessionExports,
    /// Pages that were fetched lately; shared with its sub-agents.
    #[cfg(feature = "web")]
    pub(crate) pages: PageCache,
    /// Variables that hold credentials of the model servers, without a value.
    pub(crate) secret_variables: Arc<[(String, String)]>,
    /// Takes secrets out of what it receives, writes and publishes; shared with its sub-agents.
    pub(crate) redaction: Redaction,
    /// The line that an earlier conversation goes on from, where that is not its last one.
    pub(crate) goes_on_from: Option<EntryId>,
    /// Where it keeps its notes, as a sub-agent of a type that keeps some.
    pub(crate) notes: Option<AgentNotes>,
    /// Whether instruction files, git and memory are read.
    pub(crate) reads_sources: bool,
    /// Replaces the built-in system prompt.
    pub(crate) system_prompt: Option<String>,
    /// Follows the system prompt.
    pub(crate) append_system_prompt: Option<String>,
    /// Whether nothing of our own follows a system prompt that replaces the built-in one.
    pub(crate) bare_system_prompt: bool,
    /// Whether what differs between users goes into the first message and not into the system prompt.
    pub(crate) static_system_prompt: bool,
}

/// What a sub-agent has of its own.
pub(crate) struct AgentContext<'a> {
    pub(crate) agent: &'a AgentId,
    pub(crate) facts: Arc<SessionFacts>,
    pub(crate) dirs: SessionDirs,
    pub(crate) guard: Option<WorkGuard>,
    pub(crate) system_prompt: String,
    pub(crate) notes: Option<AgentNotes>,
}

impl SessionContext {
    /// Makes the context of a sub-agent of this session: the same but for what is its own. It is not opened by an
    /// embedder, so nothing that options give to one session alone is handed on.
    pub(crate) fn of_agent(&self, own: AgentContext<'_>) -> Self {
        let session = SessionId::of_agent(&own.facts.session, own.agent);
        // What works for a hook is none of the conversation: listeners of that would take its words for those of a call.
        let listens = (!own.facts.verifies).then(|| (self.hub.clone(), own.agent.clone()));
        Self {
            hub: EventHub::new(listens),
            span: spans::session(Some(&self.span), &session),
            session,
            facts: own.facts,
            dirs: own.dirs,
            guard: own.guard,
            servers: SessionServers::default(),
            shells: Arc::default(),
            agents: Arc::default(),
            goes_on_from: None,
            notes: own.notes,
            system_prompt: Some(own.system_prompt),
            append_system_prompt: None,
            bare_system_prompt: false,
            ..self.clone()
        }
    }

    /// Makes a leaf that works for this session.
    pub(crate) fn job(&self, kind: ActorKind, work: BoxFuture<'static, ()>) -> Job {
        Job::new(kind, Some(self.session.clone()), self.directory.clone(), work)
    }
}
