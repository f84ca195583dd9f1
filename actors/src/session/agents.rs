//! Sub-agents of a session: nested sessions that work for a call of the Agent tool.
//!
//! A sub-agent is a child of its session, so none outlives it. The machine decides which start and
//! what they may use; here are their actors, the calls that wait for them, and the way to the top of
//! the tree.

mod asked;
mod crashed;
pub(super) mod orphans;
mod report;

use std::{collections::BTreeMap, num::NonZeroU32, sync::Arc};

use ennead_runtime::{
    event::Event,
    ids::AgentId,
    lease::Lease,
    output::OutputSettings,
    permission::{PermissionMode, Scope},
    ports::{
        AgentOrder, AgentReport,
        agents::{AgentPlacement, BackgroundAgent},
    },
    run::{RunRequest, agent_types::AgentType, conversation::Conversation},
    session::{AgentRequest, SpawnId, TreeAnswer, TreeQuestion},
    step1_settings_resolution::{LayerText, merge},
    transcript::entry::LineFrame,
};
use ractor::{ActorId, ActorProcessingErr, ActorRef};
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

pub(crate) use self::report::AgentPort;
use super::{
    ChildEnd, OpenPlan, Prompt, RunError, RunOutcome, Session, SessionMsg, SessionSetup,
    SessionState, SpawnRequest, context::AgentContext,
};
use crate::groundwork::{mailbox::Mailbox, supervision::spawn};

/// Where a sub-agent is in its tree.
#[derive(Clone, Debug)]
pub(crate) struct Parent {
    /// The top session of its tree.
    pub(crate) top: ActorRef<SessionMsg>,
    /// Its name in the tree.
    pub(crate) agent: AgentId,
    /// What it may hand on.
    pub(crate) lease: Lease,
}

/// The actors of sub-agents, and who waits for them.
pub(super) struct Children {
    /// The top session of the tree; `None` in that session itself.
    top: Option<ActorRef<SessionMsg>>,
    /// Calls whose sub-agent was not started yet.
    requests: BTreeMap<SpawnId, Request>,
    last_spawn: SpawnId,
    running: BTreeMap<AgentId, RunningAgent>,
    /// Agents anywhere in the tree that have asked the top session.
    askers: BTreeMap<AgentId, ActorRef<SessionMsg>>,
}

struct Request {
    order: AgentOrder,
    /// Of its parent's settings as they are now: a rule that holds for the parent holds for it.
    layers: Arc<[LayerText]>,
    reply: oneshot::Sender<AgentReport>,
}

struct RunningAgent {
    actor: ActorRef<SessionMsg>,
    /// Taken when its end was reported, or its beginning where it works in the background.
    reply: Option<oneshot::Sender<AgentReport>>,
    /// Whether its end was reported.
    is_over: bool,
    /// Reads what it used, once it has crashed.
    reader: Option<ActorId>,
}

impl Children {
    pub(super) fn new(top: Option<ActorRef<SessionMsg>>) -> Self {
        Self {
            top,
            requests: BTreeMap::new(),
            last_spawn: SpawnId::default(),
            running: BTreeMap::new(),
            askers: BTreeMap::new(),
        }
    }

    /// Keeps a call that wants a sub-agent, and returns what the machine is asked.
    pub(super) fn requested(&mut self, request: SpawnRequest) -> AgentRequest {
        let SpawnRequest { key, limits, layers, order, reply } = request;
        let spawn = self.last_spawn.advance();
        let asked = AgentRequest {
            spawn,
            key,
            limits,
            call: order.tool_use.clone(),
            agent_type: order.agent_type.as_deref().map(Into::into),
            placement: match (order.in_background, &order.worktree) {
                (Some(false), _) | (_, Some(_)) => AgentPlacement::Foreground,
                (None, None) => AgentPlacement::AsTyped,
                (Some(true), None) => AgentPlacement::Background,
            },
            description: order.description.as_str().into(),
        };
        self.requests.insert(spawn, Request { order, layers, reply });
        asked
    }

    pub(super) fn refuse(&mut self, spawn: SpawnId, why: String) {
        if let Some(Request { reply, .. }) = self.requests.remove(&spawn) {
            report::refuse(reply, why);
        }
    }

    /// Forgets a call that is gone, so that an answer would have no reader.
    pub(super) fn forget(&mut self, spawn: SpawnId) {
        self.requests.remove(&spawn);
    }

    /// Reports to the call that waits for a sub-agent. One that was ended meanwhile reads nothing.
    pub(super) fn report(
        &mut self,
        agent: &AgentId,
        result: Result<RunOutcome, RunError>,
        output: &OutputSettings,
    ) {
        let Some(running) = self.running.get_mut(agent) else { return };
        running.is_over = true;
        let reply = running.reply.take();
        if let Some(reply) = reply {
            let _gone = reply.send(report::report(agent, result, output));
        }
    }

    /// Makes a sub-agent interrupt its run and end.
    pub(super) fn close(&self, agent: &AgentId) {
        if let Some(child) = self.running.get(agent) {
            let (reply, _) = oneshot::channel();
            let _gone = child.actor.cast(SessionMsg::Close(reply));
        }
    }

    /// Has a sub-agent report what it said last. One that is gone drops the question.
    pub(super) fn ask_last_words(&self, agent: &AgentId, reply: oneshot::Sender<String>) {
        if let Some(child) = self.running.get(agent) {
            let _gone = child.actor.cast(SessionMsg::LastWords { of: None, reply });
        }
    }

    /// Puts all sub-agents at work into another permission mode.
    pub(super) fn set_mode(&self, mode: PermissionMode) {
        for child in self.running.values() {
            let (reply, _) = oneshot::channel();
            let _gone = child.actor.cast(SessionMsg::SetMode(mode, reply));
        }
    }

    /// Asks the top session. A tree whose top is gone is going, too.
    pub(super) fn ask_top(&self, myself: &ActorRef<SessionMsg>, question: TreeQuestion) {
        if let Some(top) = &self.top {
            let _gone = top.cast(SessionMsg::TreeQuestion { question, from: myself.clone() });
        }
    }

    /// Keeps the way back to an agent that asks.
    pub(super) fn remember_asker(
        &mut self,
        question: &TreeQuestion,
        from: ActorRef<SessionMsg>,
        is_open: impl Fn(&AgentId) -> bool,
    ) {
        let asker = match question {
            TreeQuestion::Admit { parent, .. } => parent.clone(),
            TreeQuestion::Debit(debit) => debit.agent.clone(),
            TreeQuestion::Settle { .. } => None,
            TreeQuestion::Close { agent } => {
                // Those below an agent that crashed never say that they are over.
                self.askers.retain(|it, _| it != agent && is_open(it));
                None
            }
        };
        if let Some(asker) = asker {
            self.askers.insert(asker, from);
        }
    }

    pub(super) fn answer(&self, agent: &AgentId, answer: TreeAnswer) {
        if let Some(asker) = self.askers.get(agent) {
            let _gone = asker.cast(SessionMsg::TreeAnswer(answer));
        }
    }

    /// Returns what follows from the end of a child that may be a sub-agent or a reader.
    pub(super) fn on_child_end(&mut self, child: ActorId) -> ChildEnd {
        let is_meant = |it: &RunningAgent| it.actor.get_id() == child || it.reader == Some(child);
        let found = self.running.iter().find(|(_, it)| is_meant(it));
        let Some((agent, RunningAgent { is_over, reader, .. })) = found else {
            return ChildEnd::Noted;
        };
        let agent = agent.clone();
        match (is_over, reader) {
            (false, None) => ChildEnd::Agent(agent),
            // Its reader crashed: what it used stays unknown.
            (false, Some(reader)) if *reader == child => ChildEnd::Input(crashed::unread(agent)),
            (false, Some(_)) => ChildEnd::Noted,
            (true, _) => {
                self.running.remove(&agent);
                ChildEnd::Noted
            }
        }
    }
}

impl SessionState {
    /// Starts a sub-agent with its prompt. The inner error says in words why it cannot be.
    pub(super) async fn start_agent(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        id: SpawnId,
        agent: &AgentId,
        kind: AgentType,
        lease: Lease,
        background: Option<&BackgroundAgent>,
    ) -> Result<Result<(), String>, ActorProcessingErr> {
        let Some(Request { order, layers, .. }) = self.children.requests.get(&id) else {
            return Ok(Err("the call that wanted it is gone".into()));
        };
        let Some(setup) = self.child_setup(myself, agent, order, layers, kind, lease) else {
            return Ok(Err("a transcript for it cannot be named".into()));
        };
        let transcript = setup.open.paths.file.display().to_string();
        let actor = spawn(Session, Box::new(setup), myself.get_cell()).await?;
        let Some(Request { order, reply, .. }) = self.children.requests.remove(&id) else {
            return Ok(Err("the call that wanted it is gone".into()));
        };
        self.session_context.hub.publish(Event::AgentStarted {
            agent: agent.clone(),
            call: order.tool_use,
            description: order.description.as_str().into(),
            in_background: background.is_some(),
        });
        let (back, name) = (myself.clone(), agent.clone());
        let ended = Box::new(move |result| {
            let result = Box::new(result);
            let _gone = back.cast(SessionMsg::AgentEnded { agent: name, result });
        });
        let request = RunRequest::new(order.prompt).origin("agent");
        let prompts = Mailbox::new(actor.clone(), NonZeroU32::MIN, SessionMsg::Prompt);
        self.session_context.directory.note_mailbox(actor.get_id(), prompts.gauge());
        // A new session has an empty queue; if it is gone already, its end is the answer.
        let _gone = prompts.try_send(Box::new(Prompt { request, reply: ended }));
        let mut reply = Some(reply);
        if let (Some(background), Some(reply)) =
            (background, reply.take_if(|_| background.is_some()))
        {
            self.session_context.agents.add(background.clone());
            report::started(reply, agent, transcript);
        }
        let child = RunningAgent { actor, reply, is_over: false, reader: None };
        self.children.running.insert(agent.clone(), child);
        Ok(Ok(()))
    }

    /// A child session: its parent's settings, rules and approver, its parent's tools narrowed, a
    /// transcript and subscribers of its own.
    fn child_setup(
        &self,
        myself: &ActorRef<SessionMsg>,
        agent: &AgentId,
        order: &AgentOrder,
        layers: &[LayerText],
        kind: AgentType,
        lease: Lease,
    ) -> Option<SessionSetup> {
        let parent = &self.session_context;
        let paths = self.layout.sidechain(&parent.facts.session, agent).ok()?;
        let nests = lease.allows_nesting();
        // Those of the session itself do not have the tools that have joined.
        let mut facts = (*self.machine.conversation().facts).clone();
        facts.agent = Some(agent.clone());
        facts.memory = None;
        facts.plans = None;
        facts.agents = facts.agents.iter().chain([agent]).cloned().collect();
        facts.agent_type = Arc::clone(&kind.name);
        facts.depth += 1;
        facts.transcript = paths.file.display().to_string().into();
        facts.directory = paths.directory.display().to_string().into();
        facts.tools.retain(|it| kind.may_use(it) && (nests || it.name.as_str() != "Agent"));
        facts.layers = layers.to_vec();
        let mut files = parent.dirs.clone();
        let mut guard = parent.guard.clone();
        if let Some(worktree) = &order.worktree {
            files.worktree = Some((&worktree.directory).into());
            facts.works_in(&worktree.directory);
            guard = Some(worktree.guard.clone());
        }
        facts.reads_settings = false;
        if let Some(settings) = own_settings(&kind, order, layers) {
            let (text, source) = (settings.to_string(), "Agent".to_owned());
            // The last one of a scope holds.
            facts.layers.push(LayerText::new(Scope::CliArg, source, text));
        }
        let facts = Arc::new(facts);
        let session_context = parent.of_agent(AgentContext {
            agent,
            facts: Arc::clone(&facts),
            dirs: files,
            guard,
            system_prompt: kind.system_prompt.to_string(),
        });
        let mut meta = serde_json::json!({
            "agentType": &*kind.name,
            "toolUseId": order.tool_use,
            "description": order.description,
        });
        if let Some(above) = &parent.facts.agent {
            meta["parentAgentId"] = above.as_str().into();
        }
        let open = OpenPlan {
            paths,
            frame: LineFrame {
                agent: Some(agent.clone()),
                cwd: Arc::clone(&facts.workspace),
                ..self.open.frame.clone()
            },
            durability: self.open.durability,
            meta: Some(meta.to_string().into()),
            first_look: None,
        };
        let stream = self.machine.conversation().stream.child(order.tool_use.as_str());
        let link = Parent {
            top: self.children.top.clone().unwrap_or_else(|| myself.clone()),
            agent: agent.clone(),
            lease,
        };
        Some(SessionSetup {
            conversation: Conversation::new(facts, stream)
                .with_catalogue(Arc::clone(&self.machine.conversation().memory.catalogue))
                .sharing(self.machine.conversation().memory.kept_sources.clone()),
            session_context: Arc::new(session_context),
            archive: self.archive.clone(),
            open,
            parent: Some(link),
            layout: self.layout.clone(),
            notices: Vec::new(),
            starting: None,
        })
    }
}

/// What is set for a sub-agent over the settings of its parent; `None` when nothing is.
fn own_settings(kind: &AgentType, order: &AgentOrder, layers: &[LayerText]) -> Option<Value> {
    let mut own = json!({});
    if let Some(model) = kind.model.as_deref().or(order.model.as_deref()) {
        own["model"] = model.into();
    }
    if let Some(max_turns) = kind.max_turns {
        own["ennead"] = json!({ "maxTurns": max_turns });
    }
    if let Some(effort) = &kind.effort {
        own["effortLevel"] = (&**effort).into();
    }
    let of_parent = kind.mode.map(|_| merge(layers).settings.permissions.mode);
    if let (Some(mode), Some(of_parent)) = (kind.mode, of_parent)
        && !matches!(
            of_parent,
            PermissionMode::BypassPermissions | PermissionMode::AcceptEdits | PermissionMode::Auto
        )
    {
        own["permissions"] = json!({ "defaultMode": mode });
    }
    let is_empty = own.as_object().is_none_or(Map::is_empty);
    (!is_empty).then_some(own)
}
