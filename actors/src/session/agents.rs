//! Sub-agents of a session: nested sessions that work for a call of the Agent tool.
//!
//! A sub-agent is a child of its session, so none outlives it. The machine decides which start and
//! what they may use; here are their actors, the calls that wait for them, and the way to the top of
//! the tree.

mod asked;
mod child_setup;
mod crashed;
mod messages;
mod meta;
pub(super) mod orphans;
mod report;

use std::{collections::BTreeMap, num::NonZeroU32, sync::Arc, time::Duration};

use ennead_runtime::{
    event::Event,
    ids::{AgentId, EntryId},
    lease::Lease,
    output::OutputSettings,
    permission::PermissionMode,
    ports::{
        AgentOrder, AgentReport,
        agents::{AgentPlacement, BackgroundAgent},
    },
    run::{
        MESSAGE_ORIGIN, RunRequest,
        agent_types::{AgentType, going_on::can_go_on},
    },
    session::{AgentRequest, SessionInput, SpawnEffect, SpawnId, TreeAnswer, TreeQuestion},
    step1_settings_resolution::LayerText,
};
use ractor::{ActorId, ActorProcessingErr, ActorRef};
use tokio::sync::oneshot;

pub(crate) use self::report::AgentPort;
use super::{
    ChildEnd, Prompt, RunError, RunOutcome, Session, SessionMsg, SessionState, SpawnRequest,
    message::{MessageReply, SendReply},
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
    /// Starts of agents whose transcripts other actors are closing.
    deferred: BTreeMap<AgentId, SpawnEffect>,
}

struct Request {
    /// The task; of a message for an agent, what it says.
    order: AgentOrder,
    /// Of its parent's settings as they are now: a rule that holds for the parent holds for it.
    layers: Arc<[LayerText]>,
    /// How long it may take, where it verifies for a hook handler.
    verifies_for: Option<Duration>,
    reply: RequestReply,
    /// The path of its transcript, once it was started for a message.
    transcript: String,
}

enum RequestReply {
    Report(oneshot::Sender<AgentReport>),
    Sent(SendReply),
}

/// How a sub-agent is started.
pub(super) struct StartPlan<'a> {
    pub(super) agent: &'a AgentId,
    /// The type of the sub-agent: its prompt, tools and model.
    pub(super) kind: AgentType,
    /// What it may hand on.
    pub(super) lease: Lease,
    /// Names the line of the message with which it goes on from its transcript.
    pub(super) again: Option<EntryId>,
}

struct RunningAgent {
    actor: ActorRef<SessionMsg>,
    /// Taken when its end was reported, or its beginning where it works in the background.
    reply: Option<oneshot::Sender<AgentReport>>,
    /// Whether its end was reported.
    is_over: bool,
    /// Whether a message has it go on after its end.
    can_go_on: bool,
    /// Reads what it used, once it has crashed.
    reader: Option<ActorId>,
    /// Whether that reader crashed, too: then no end of an actor follows its report.
    is_unread: bool,
}

impl Children {
    pub(super) fn new(top: Option<ActorRef<SessionMsg>>) -> Self {
        Self {
            top,
            requests: BTreeMap::new(),
            last_spawn: SpawnId::default(),
            running: BTreeMap::new(),
            askers: BTreeMap::new(),
            deferred: BTreeMap::new(),
        }
    }

    /// Keeps a call that wants a sub-agent, and returns what the machine is asked.
    pub(super) fn requested(&mut self, request: SpawnRequest) -> SessionInput {
        let SpawnRequest { key, limits, layers, order, verifies_for, reply } = request;
        let spawn = self.last_spawn.advance();
        let asked = AgentRequest {
            spawn,
            key,
            limits,
            call: order.tool_use.clone(),
            part: order.part,
            agent_type: order.agent_type.as_deref().map(Into::into),
            placement: match (order.in_background, &order.worktree) {
                (Some(false), _) | (_, Some(_)) => AgentPlacement::Foreground,
                (None, None) => AgentPlacement::AsTyped,
                (Some(true), None) => AgentPlacement::Background,
            },
            description: order.description.as_str().into(),
            verifies: verifies_for.is_some(),
        };
        let (reply, transcript) = (RequestReply::Report(reply), String::new());
        let request = Request { order, layers, verifies_for, reply, transcript };
        self.requests.insert(spawn, request);
        SessionInput::SpawnAgent(asked)
    }

    pub(super) fn refuse(&mut self, spawn: SpawnId, why: String) {
        if let Some(Request { reply: RequestReply::Report(reply), .. }) =
            self.requests.remove(&spawn)
        {
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
            let mut report = report::report(agent, result, output);
            report.can_go_on = running.can_go_on;
            let _gone = reply.send(report);
        }
        if running.is_unread {
            self.running.remove(agent);
        }
    }

    /// Makes a sub-agent interrupt its run and end.
    pub(super) fn close(&mut self, myself: &ActorRef<SessionMsg>, agent: &AgentId) {
        if self.drop_deferred(myself, agent) {
            return;
        }
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
        let found = self.running.iter_mut().find(|(_, it)| is_meant(it));
        let Some((agent, running)) = found else {
            return ChildEnd::Noted;
        };
        let agent = agent.clone();
        match (running.is_over, running.reader) {
            (false, None) => ChildEnd::Agent(agent),
            // Its reader crashed: what it used stays unknown.
            (false, Some(reader)) if reader == child => {
                running.is_unread = true;
                ChildEnd::Input(crashed::unread(agent))
            }
            (false, Some(_)) => ChildEnd::Noted,
            (true, _) => {
                self.running.remove(&agent);
                self.deferred.remove(&agent).map_or(ChildEnd::Noted, ChildEnd::Start)
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
        plan: StartPlan<'_>,
        background: Option<&BackgroundAgent>,
    ) -> Result<Result<(), String>, ActorProcessingErr> {
        let (agent, again) = (plan.agent, plan.again.clone());
        let gone = || Ok(Err("the call that wanted it is gone".into()));
        let Some(request) = self.children.requests.get(&id) else {
            return gone();
        };
        let facts = &self.machine.conversation().facts;
        let can_go_on = can_go_on(&plan.kind, facts, request.order.worktree.is_some());
        let Some(setup) = self.child_setup(myself, request, plan) else {
            return Ok(Err("a transcript for it cannot be named".into()));
        };
        let transcript = setup.open.paths.file.display().to_string();
        let actor = spawn(Session, Box::new(setup), myself.get_cell()).await?;
        let Some(request) = self.children.requests.get_mut(&id) else { return gone() };
        request.transcript.clone_from(&transcript);
        let order = &request.order;
        // One that verifies is a part of its handler, whose beginning is an event.
        if request.verifies_for.is_none() {
            self.session_context.hub.publish(Event::AgentStarted {
                agent: agent.clone(),
                call: order.tool_use.clone(),
                description: order.description.as_str().into(),
                in_background: background.is_some(),
            });
        }
        let (back, name) = (myself.clone(), agent.clone());
        // Its own events reach nobody.
        let listens = request.verifies_for.map(|_| self.session_context.hub.clone());
        let ended = Box::new(move |result: Result<RunOutcome, RunError>| {
            if let (Some(hub), Ok(outcome)) = (&listens, &result) {
                hub.publish(Event::TokensUsed { usage: outcome.usage });
            }
            let result = Box::new(result);
            let _gone = back.cast(SessionMsg::AgentEnded { agent: name, result });
        });
        let time_limit = request.verifies_for;
        let mut request = RunRequest::new(order.prompt.clone());
        request.time_limit = time_limit;
        let (request, begun) = match again {
            None if time_limit.is_some() => (request.origin("hook"), None),
            None => (request.origin("agent"), None),
            Some(message) => {
                let begun = MessageReply::new(myself.clone(), id);
                (request.origin(MESSAGE_ORIGIN).message(message), Some(begun))
            }
        };
        let is_awaited = begun.is_some();
        let prompts = Mailbox::new(actor.clone(), NonZeroU32::MIN, SessionMsg::Prompt);
        self.session_context.directory.note_mailbox(actor.get_id(), prompts.gauge());
        // A new session has an empty queue; if it is gone already, its end is the answer.
        let _gone = prompts.try_send(Box::new(Prompt { request, reply: ended, begun }));
        let mut reply = None;
        if let Some(background) = background {
            self.session_context.agents.add(background.clone());
        }
        // A message is answered when it is safe.
        if !is_awaited
            && let Some(Request { reply: RequestReply::Report(waits), .. }) =
                self.children.requests.remove(&id)
        {
            match background {
                Some(_) => report::started(waits, agent, transcript),
                None => reply = Some(waits),
            }
        }
        let (is_over, reader, is_unread) = (false, None, false);
        let child = RunningAgent { actor, reply, is_over, can_go_on, reader, is_unread };
        self.children.running.insert(agent.clone(), child);
        Ok(Ok(()))
    }
}
