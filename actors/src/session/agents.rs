//! Sub-agents of a session: nested sessions that work for a call of the Agent tool.
//!
//! A sub-agent is a child of its session, so none outlives it. Limits are of two kinds: depth,
//! number at once and the end are the session's own lease; number, rate, turns, tokens, money and
//! time of the whole tree are counted by the top session, which the others ask by message. Nobody
//! waits in a handler.

mod crashed;
pub(super) mod orphans;
mod report;
mod tree;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use ennead_runtime::{
    event::Event,
    ids::{AgentId, SessionId, ToolUseId},
    lease::{Lease, LeaseRefused, Tree},
    permission::Scope,
    ports::{AgentOrder, AgentReport},
    run::{
        RunRequest,
        agent_types::{AgentType, agent_type},
        conversation::Conversation,
    },
    step1_settings_resolution::{AgentLimits, LayerText},
    transcript::entry::LineFrame,
};
use ractor::{ActorId, ActorProcessingErr, ActorRef};
use tokio::sync::oneshot;

pub(crate) use self::{
    report::{AgentPort, SpawnRequest},
    tree::{TreeMsg, WaitingCall},
};
use self::{
    report::{refuse, report},
    tree::TreeAccount,
};
use super::{
    Prompt, RunError, RunOutcome, Session, SessionMsg, SessionSetup, SessionState,
    context::SessionContext, runs::OpenPlan, shells::SessionShells,
};
use crate::{
    events::EventHub,
    mailbox::Mailbox,
    supervision::{HandlerResult, spawn},
};

/// Where a sub-agent hangs.
#[derive(Clone, Debug)]
pub(crate) struct Parent {
    /// The top session of its tree.
    pub(crate) top: ActorRef<SessionMsg>,
    /// Its name in the tree.
    pub(crate) agent: AgentId,
    /// What it may hand on.
    pub(crate) lease: Lease,
}

/// The sub-agents of a session.
pub(super) struct Agents {
    in_tree: InTree,
    lease: Lease,
    /// Those that wait for the top session's word.
    asked: BTreeMap<AgentId, Order>,
    running: BTreeMap<AgentId, Running>,
}

/// The place of a session in its tree.
enum InTree {
    /// At the top, with the sums.
    Top(TreeAccount),
    Below(Parent),
}

struct Order {
    key: u64,
    order: AgentOrder,
    kind: AgentType,
    lease: Lease,
    /// Of its parent's settings as they are now: a rule that holds for the parent holds for it.
    layers: Arc<[LayerText]>,
    reply: oneshot::Sender<AgentReport>,
}

struct Running {
    key: u64,
    call: ToolUseId,
    actor: ActorRef<SessionMsg>,
    reply: Option<oneshot::Sender<AgentReport>>,
    /// Reads what it used, once it has crashed.
    reader: Option<ActorId>,
}

impl Running {
    /// Has it interrupt its run and end. Its prompt may not have begun to run, so an interrupt would
    /// not be enough.
    fn end(&self) {
        let (reply, _) = oneshot::channel();
        let _gone = self.actor.cast(SessionMsg::Close(reply));
    }
}

impl Agents {
    pub(super) fn new(parent: Option<Parent>) -> Self {
        let limits = AgentLimits::default();
        let (lease, in_tree) = match parent {
            None => (Lease::top(limits), InTree::Top(TreeAccount::new(Tree::new(limits)))),
            Some(parent) => (parent.lease.clone(), InTree::Below(parent)),
        };
        Self { in_tree, lease, asked: BTreeMap::new(), running: BTreeMap::new() }
    }

    /// The sums of the tree, at its top.
    pub(super) fn tree(&mut self) -> Option<&mut Tree> {
        match &mut self.in_tree {
            InTree::Top(sums) => Some(&mut sums.tree),
            InTree::Below(_) => None,
        }
    }

    /// When the run under way is to end, as far as that is known.
    pub(super) fn ends(&self) -> Option<Duration> {
        self.lease.ends()
    }

    /// A run begins. When one of the top is to end, the settings of its first turn will say.
    pub(super) fn begin_run(&mut self) {
        if let InTree::Top(_) = &self.in_tree {
            self.lease.set_end(None);
        }
    }

    /// The name of the session in its tree; the top has none.
    fn name(&self) -> Option<AgentId> {
        match &self.in_tree {
            InTree::Top(_) => None,
            InTree::Below(parent) => Some(parent.agent.clone()),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.running.len()
    }

    /// Whether a sub-agent of this turn lives.
    pub(super) fn works_for(&self, key: u64) -> bool {
        self.running.values().any(|it| it.key == key)
    }
}

impl SessionState {
    /// Takes over the limits of a turn's settings; they hold for what is asked from now on. Below
    /// the top they are those of the top, whose turn waits for its sub-agents.
    fn take_limits(&mut self, myself: &ActorRef<SessionMsg>, limits: AgentLimits) {
        if let InTree::Top(sums) = &mut self.agents.in_tree {
            self.agents.lease.set_limits(limits);
            sums.tree.set_limits(limits);
            let started = self.active.as_ref().map(|it| it.started);
            let left = sums.tree.time_left();
            self.agents.lease.set_end(started.zip(left).map(|(at, left)| at.saturating_add(left)));
        }
        self.limit_time(myself);
    }

    /// A tool wants a sub-agent.
    pub(super) fn spawn_agent(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        request: SpawnRequest,
    ) -> HandlerResult {
        let SpawnRequest { key, limits, layers, order, reply } = request;
        let is_present = self.active.as_ref().and_then(|it| it.phase.in_flight());
        if is_present.is_none_or(|it| it.key != key) {
            return Ok(());
        }
        self.take_limits(myself, limits);
        let kind = match agent_type(order.agent_type.as_deref()) {
            Ok(kind) => kind,
            Err(why) => return refuse(reply, why.to_string()),
        };
        // A draw of the run, named by the call: the same session gives the same names.
        let run = self.active.as_ref().map(|it| it.run.id.clone());
        let stream =
            run.map_or(self.conversation.stream, |it| self.conversation.stream.child(it.as_str()));
        let draw = stream.child(order.tool_use.as_str()).draw("agent", 0);
        let agent = AgentId::new(format!("{:016x}", draw >> 64));
        let now = self.shared.world.clock.elapsed();
        let lease = match self.agents.lease.child(&agent, now) {
            Ok(lease) => lease,
            Err(refused) => return refuse(reply, refused.to_string()),
        };
        self.agents.asked.insert(agent.clone(), Order { key, order, kind, lease, layers, reply });
        let parent = self.agents.name();
        self.tell_top(TreeMsg::Admit { agent, parent, from: myself.clone() });
        Ok(())
    }

    async fn admitted(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        agent: AgentId,
        result: Result<(), LeaseRefused>,
    ) -> HandlerResult {
        let Some(order) = self.agents.asked.remove(&agent) else {
            // The one that wanted it is gone meanwhile.
            if result.is_ok() {
                self.agent_over(&agent);
                return Ok(());
            }
            self.agents.lease.ended(&agent);
            return Ok(());
        };
        if let Err(refused) = result {
            self.agents.lease.ended(&agent);
            return refuse(order.reply, refused.to_string());
        }
        let is_present = self.active.as_ref().and_then(|it| it.phase.in_flight());
        if is_present.is_none_or(|it| it.key != order.key || it.scope.cancel.is_cancelled()) {
            self.agent_over(&agent);
            return Ok(());
        }
        let setup = self.child_setup(myself, &agent, &order)?;
        let Some(setup) = setup else {
            self.agent_over(&agent);
            return refuse(order.reply, "a transcript for it cannot be named".into());
        };
        self.shared.hub.publish(Event::AgentStarted {
            agent: agent.clone(),
            call: order.order.tool_use.clone(),
            description: order.order.description.as_str().into(),
        });
        let actor = spawn(Session, Box::new(setup), myself.get_cell()).await?;
        let (back, name) = (myself.clone(), agent.clone());
        let reply = Box::new(move |result| {
            let result = Box::new(result);
            let _gone = back.cast(SessionMsg::AgentEnded { agent: name, result });
        });
        let prompt = order.order.prompt.clone();
        let request = RunRequest::new(prompt).origin("agent");
        let prompts = Mailbox::new(actor.clone(), std::num::NonZeroU32::MIN, SessionMsg::Prompt);
        // A new session has an empty queue; if it is gone already, its end is the answer.
        let _gone = prompts.try_send(Box::new(Prompt { request, reply }));
        let (key, call, reply) = (order.key, order.order.tool_use, Some(order.reply));
        self.agents.running.insert(agent, Running { key, call, actor, reply, reader: None });
        Ok(())
    }

    /// A child session: its parent's settings, rules and approver, its parent's tools narrowed, a
    /// transcript and listeners of its own.
    fn child_setup(
        &self,
        myself: &ActorRef<SessionMsg>,
        agent: &AgentId,
        order: &Order,
    ) -> Result<Option<SessionSetup>, ActorProcessingErr> {
        let parent = &self.shared;
        let Ok(place) = self.layout.sidechain(&parent.facts.session, agent) else {
            return Ok(None);
        };
        let nests = order.lease.allows_nesting();
        let mut facts = (*parent.facts).clone();
        facts.agent = Some(agent.clone());
        facts.agent_type = order.kind.name.into();
        facts.depth += 1;
        facts.transcript = place.file.display().to_string().into();
        facts.directory = place.beside.display().to_string().into();
        facts.tools.retain(|it| order.kind.may_use(it) && (nests || it.name.as_str() != "Agent"));
        facts.layers = order.layers.to_vec();
        let mut files = parent.place.clone();
        let mut guard = parent.guard.clone();
        if let Some(worktree) = &order.order.worktree {
            files.worktree = Some((&worktree.directory).into());
            facts.works_in(&worktree.directory);
            guard = Some(worktree.hold.clone());
        }
        facts.reads_settings = false;
        if let Some(model) = &order.order.model {
            let text = serde_json::json!({ "model": model }).to_string();
            let source = "Agent".to_owned();
            // The last one of a scope holds.
            facts.layers.push(LayerText { scope: Scope::CliArg, source, text });
        }
        let facts = Arc::new(facts);
        let shared = SessionContext {
            session: SessionId::of_agent(&facts.session, agent),
            facts: Arc::clone(&facts),
            world: parent.world.clone(),
            place: files,
            guard,
            endpoints: parent.endpoints.clone(),
            limiters: Arc::clone(&parent.limiters),
            learned: parent.learned.clone(),
            tenant: parent.tenant.clone(),
            tools: parent.tools.clone(),
            shells: SessionShells::default(),
            hub: EventHub::new(Some((parent.hub.clone(), agent.clone()))),
            directory: parent.directory.clone(),
            approver: parent.approver.clone(),
            breakpoints: parent.breakpoints.clone(),
            hook_chain: Arc::clone(&parent.hook_chain),
            secret_variables: Arc::clone(&parent.secret_variables),
            reads_sources: parent.reads_sources,
            system_prompt: Some(order.kind.system_prompt.into()),
            append_system_prompt: None,
        };
        let mut meta = serde_json::json!({
            "agentType": order.kind.name,
            "toolUseId": order.order.tool_use,
            "description": order.order.description,
        });
        if let Some(above) = &parent.facts.agent {
            meta["parentAgentId"] = above.as_str().into();
        }
        let open = OpenPlan {
            place,
            frame: LineFrame {
                agent: Some(agent.clone()),
                cwd: Arc::clone(&facts.workspace),
                ..self.open.frame.clone()
            },
            durability: self.open.durability,
            meta: Some(meta.to_string().into()),
        };
        let stream = self.conversation.stream.child(order.order.tool_use.as_str());
        let link = Parent {
            top: match &self.agents.in_tree {
                InTree::Top(_) => myself.clone(),
                InTree::Below(parent) => parent.top.clone(),
            },
            agent: agent.clone(),
            lease: order.lease.clone(),
        };
        Ok(Some(SessionSetup {
            conversation: Conversation::new(facts, stream)
                .with_catalogue(Arc::clone(&self.conversation.memory.catalogue)),
            shared: Arc::new(shared),
            archive: self.archive.clone(),
            open,
            parent: Some(link),
            layout: self.layout.clone(),
            told: Vec::new(),
        }))
    }

    /// A sub-agent has ended its run: its parent hears of it exactly once.
    pub(super) fn agent_ended(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        agent: &AgentId,
        result: Result<RunOutcome, RunError>,
    ) -> HandlerResult {
        let Some(mut running) = self.agents.running.remove(agent) else { return Ok(()) };
        if let (Some(active), Ok(outcome)) = (&mut self.active, &result) {
            active.cost.enter(agent.clone(), outcome.cost.clone());
        }
        let report = report(agent, result, &self.shared.hub.output());
        if let Some(active) = &mut self.active {
            active.run.usage = active.run.usage + report.usage;
        }
        if let Some(reply) = running.reply.take() {
            // The one that waited may have been ended meanwhile.
            let _gone = reply.send(report);
        }
        running.end();
        self.agent_over(agent);
        self.close_turn_if_over(myself)
    }

    fn agent_over(&mut self, agent: &AgentId) {
        self.agents.lease.ended(agent);
        self.tell_top(TreeMsg::Close { agent: agent.clone() });
    }

    /// The one that waited for the sub-agent of this call is gone.
    pub(super) fn stop_agent(&mut self, call: &ToolUseId) {
        self.agents.running.values().filter(|it| it.call == *call).for_each(Running::end);
        self.agents.asked.retain(|_, it| it.order.tool_use != *call);
    }

    /// Ends the sub-agents of a turn; each closes its own transcript.
    pub(super) fn stop_agents_of(&mut self, key: u64) {
        self.agents.running.values().filter(|it| it.key == key).for_each(Running::end);
        self.agents.asked.retain(|_, it| it.key != key);
    }

    pub(super) fn stop_all_agents(&mut self) {
        self.agents.running.values().for_each(Running::end);
        self.agents.asked.clear();
    }
}
