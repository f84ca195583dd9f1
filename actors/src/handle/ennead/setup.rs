//! What a session is opened with: its facts, the context of its actors, and where its transcript lies.

use std::{path::Path, sync::Arc};

use ennead_runtime::{
    ids::SessionId,
    permission::PermissionMode,
    run::{
        agent_types::{AgentType, listing},
        conversation::Conversation,
        facts::{REVISION, SessionFacts},
    },
    step5_model_call::wire_format::Provider,
    step7_permission_gate::Handler,
    tool::ToolSpec,
    transcript::entry::LineFrame,
};

use super::{Ennead, check::LookResult, option_values::endpoints, place::layout};
use crate::{
    groundwork::spans,
    options::{Endpoint, SessionOptions, credentials::secret_variables},
    ports::{errors::OpenError, events::EventHub, in_process_hook::Hooks, transcript_store::guard},
    services::mcp_server::{ServersOfSession, SessionServers},
    session::{OpenPlan, SessionContext, SessionSetup, tools::SessionTools},
    shard::ShardHandle,
    storage::redaction::Redaction,
    world::{hook_exports::SessionExports, source_files::SessionDirs, sources::memory_directory},
};

/// Parts of a context that the facts are made of, too, or that had to be waited for.
struct ContextParts {
    facts: Arc<SessionFacts>,
    dirs: SessionDirs,
    endpoints: Arc<[Endpoint]>,
    servers: SessionServers,
    redaction: Redaction,
}

impl Ennead {
    /// Assembles everything that a session is opened with.
    pub(super) fn setup(
        &self,
        mut options: SessionOptions,
        shard: &ShardHandle,
        id: SessionId,
        joined: ServersOfSession,
        looked: LookResult,
        redaction: Redaction,
    ) -> Result<Box<SessionSetup>, OpenError> {
        let LookResult { dirs, mut real_paths, layers, first: first_look, .. } = looked;
        let layout = layout(&self.options.environment, &options, &dirs)?;
        let file = layout.session(&id).map_err(|it| OpenError::BadId(it.id))?;
        if options.id.is_some() && options.transcripts.is_none() {
            guard::check_session(&file).map_err(OpenError::UnsafeTranscripts)?;
        }
        real_paths.follow(&dirs.home);
        real_paths.follow(&dirs.config);
        match &options.id {
            Some(_) => drop(real_paths.follow(&file.directory)),
            None => real_paths.follow_new(&file.directory),
        }
        let endpoints = endpoints(&options);
        let catalogue = self.learned.apply_to(&self.catalogue, &endpoints);
        let merged = self.merged(&layers, &catalogue);
        let durability = merged.resolved.settings.durability;
        let provider = |it: &Endpoint| Provider { name: it.provider.clone(), format: it.format };
        // Who has no home keeps nothing there.
        let has_home = dirs.home != Path::new("/");
        let notes = (options.reads_sources && has_home).then(|| memory_directory(&dirs));
        let plans = has_home.then(|| dirs.config.join("plans"));
        let facts = Arc::new(SessionFacts {
            revision: REVISION,
            session: id.clone(),
            agent: None,
            agent_type: "".into(),
            depth: 0,
            verifies: false,
            workspace: text(&dirs.workspace),
            within: Vec::new(),
            home: text(&dirs.home),
            real: real_paths.real,
            directory: text(&file.directory),
            memory: notes.map(|it| text(&it)),
            note_tools: Vec::new(),
            plans: plans.map(|it| text(&it)),
            transcript: text(&file.file),
            tools: options
                .tools
                .iter()
                .map(|it| offered(it.spec(), &options.agent_types))
                .collect(),
            agents: Arc::default(),
            agent_types: std::mem::take(&mut options.agent_types),
            handler: if options.approver.is_some() || options.answers_by_handle {
                Handler::Approver
            } else {
                Handler::None
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
        let ServersOfSession { notices, servers, starting } = joined;
        let own = ContextParts { facts: Arc::clone(&facts), dirs, endpoints, servers, redaction };
        let session_context = self.context(options, shard, own);
        // In a box, since the future of the one that opens a session would carry it to its end.
        Ok(Box::new(SessionSetup {
            session_context: Arc::new(session_context),
            conversation: Conversation::new(facts, self.stream.child(id.as_str()))
                .with_catalogue(catalogue)
                .with_merged(merged)
                .sharing(Some(self.kept_sources.clone())),
            archive: shard.archive.clone(),
            open: OpenPlan { paths: file, frame, durability, meta: None, first_look },
            parent: None,
            layout,
            notices,
            starting,
        }))
    }

    /// What the actors of a session have in common. That of a sub-agent is made of its parent's, by
    /// [`SessionContext::of_agent`].
    fn context(
        &self,
        options: SessionOptions,
        shard: &ShardHandle,
        own: ContextParts,
    ) -> SessionContext {
        let ContextParts { facts, dirs, endpoints, servers, redaction } = own;
        let id = facts.session.clone();
        SessionContext {
            session: id.clone(),
            facts,
            world: shard.world.clone(),
            dirs,
            guard: None,
            learned: self.learned.clone(),
            limiters: endpoints.iter().map(|it| self.governors.of(it)).collect(),
            endpoints: Arc::clone(&endpoints),
            tenant: options.tenant.unwrap_or_default(),
            tools: SessionTools::new(&options.tools),
            servers,
            shells: Arc::default(),
            agents: Arc::default(),
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
            exports: SessionExports::default(),
            #[cfg(feature = "web")]
            pages: Default::default(),
            secret_variables: secret_variables(&endpoints),
            redaction,
            notes: None,
            reads_sources: options.reads_sources,
            goes_on_from: options.goes_on_from.map(Into::into),
            system_prompt: options.system_prompt,
            append_system_prompt: options.append_system_prompt,
            bare_system_prompt: options.bare_system_prompt,
            static_system_prompt: options.static_system_prompt,
        }
    }
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
