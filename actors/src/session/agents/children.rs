//! The actors of sub-agents, and the calls that wait for them.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use ennead_runtime::{
    ids::AgentId,
    lease::Lease,
    output::OutputSettings,
    permission::PermissionMode,
    ports::{AgentOrder, AgentReport, agents::AgentPlacement},
    run::outcome::{RunError, RunOutcome},
    session::{AgentRequest, SessionInput, SpawnEffect, SpawnId, TreeAnswer, TreeQuestion},
    step1_settings_resolution::LayerText,
};
use ractor::{ActorId, ActorRef};
use tokio::sync::oneshot;

use super::report;
use crate::session::{
    child_end::ChildEnd,
    message::{SendReply, SessionMsg, SpawnRequest},
};

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
pub(in crate::session) struct Children {
    /// The top session of the tree; `None` in that session itself.
    pub(super) top: Option<ActorRef<SessionMsg>>,
    /// Calls whose sub-agent was not started yet.
    pub(super) requests: BTreeMap<SpawnId, Request>,
    pub(super) last_spawn: SpawnId,
    pub(super) running: BTreeMap<AgentId, RunningAgent>,
    /// Agents anywhere in the tree that have asked the top session.
    pub(super) askers: BTreeMap<AgentId, ActorRef<SessionMsg>>,
    /// Starts of agents whose transcripts other actors are closing.
    pub(super) deferred: BTreeMap<AgentId, SpawnEffect>,
}

pub(super) struct Request {
    /// The task; of a message for an agent, what it says.
    pub(super) order: AgentOrder,
    /// Of its parent's settings as they are now: a rule that holds for the parent holds for it.
    pub(super) layers: Arc<[LayerText]>,
    /// How long it may take, where it verifies for a hook handler.
    pub(super) verifies_for: Option<Duration>,
    pub(super) reply: RequestReply,
    /// The path of its transcript, once it was started for a message.
    pub(super) transcript: String,
}

pub(super) enum RequestReply {
    Report(oneshot::Sender<AgentReport>),
    Sent(SendReply),
}

pub(super) struct RunningAgent {
    pub(super) actor: ActorRef<SessionMsg>,
    /// Taken when its end was reported, or its beginning where it works in the background.
    pub(super) reply: Option<oneshot::Sender<AgentReport>>,
    /// Whether its end was reported.
    pub(super) is_over: bool,
    /// Whether a message has it go on after its end.
    pub(super) can_go_on: bool,
    /// Reads what it used, once it has crashed.
    pub(super) reader: Option<ActorId>,
    /// Whether that reader crashed, too: then no end of an actor follows its report.
    pub(super) is_unread: bool,
}

impl Children {
    pub(in crate::session) fn new(top: Option<ActorRef<SessionMsg>>) -> Self {
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
    pub(in crate::session) fn requested(&mut self, request: SpawnRequest) -> SessionInput {
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

    pub(in crate::session) fn refuse(&mut self, spawn: SpawnId, why: String) {
        if let Some(Request { reply: RequestReply::Report(reply), .. }) =
            self.requests.remove(&spawn)
        {
            report::refuse(reply, why);
        }
    }

    /// Forgets a call that is gone, so that an answer would have no reader.
    pub(in crate::session) fn forget(&mut self, spawn: SpawnId) {
        self.requests.remove(&spawn);
    }

    /// Reports to the call that waits for a sub-agent. One that was ended meanwhile reads nothing.
    pub(in crate::session) fn report(
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
    pub(in crate::session) fn close(&mut self, myself: &ActorRef<SessionMsg>, agent: &AgentId) {
        if self.drop_deferred(myself, agent) {
            return;
        }
        if let Some(child) = self.running.get(agent) {
            let (reply, _) = oneshot::channel();
            let _gone = child.actor.cast(SessionMsg::Close(reply));
        }
    }

    /// Has a sub-agent report what it said last. One that is gone drops the question.
    pub(in crate::session) fn ask_last_words(
        &self,
        agent: &AgentId,
        reply: oneshot::Sender<String>,
    ) {
        if let Some(child) = self.running.get(agent) {
            let _gone = child.actor.cast(SessionMsg::LastWords { of: None, reply });
        }
    }

    /// Puts all sub-agents at work into another permission mode.
    pub(in crate::session) fn set_mode(&self, mode: PermissionMode) {
        for child in self.running.values() {
            let (reply, _) = oneshot::channel();
            let _gone = child.actor.cast(SessionMsg::SetMode(mode, reply));
        }
    }

    /// Asks the top session. A tree whose top is gone is going, too.
    pub(in crate::session) fn ask_top(
        &self,
        myself: &ActorRef<SessionMsg>,
        question: TreeQuestion,
    ) {
        if let Some(top) = &self.top {
            let _gone = top.cast(SessionMsg::TreeQuestion { question, from: myself.clone() });
        }
    }

    /// Keeps the way back to an agent that asks.
    pub(in crate::session) fn remember_asker(
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

    pub(in crate::session) fn answer(&self, agent: &AgentId, answer: TreeAnswer) {
        if let Some(asker) = self.askers.get(agent) {
            let _gone = asker.cast(SessionMsg::TreeAnswer(answer));
        }
    }

    /// Returns what follows from the end of a child that may be a sub-agent or a reader.
    pub(in crate::session) fn on_child_end(&mut self, child: ActorId) -> ChildEnd {
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
                ChildEnd::Input(unread(agent))
            }
            (false, Some(_)) => ChildEnd::Noted,
            (true, _) => {
                self.running.remove(&agent);
                self.deferred.remove(&agent).map_or(ChildEnd::Noted, ChildEnd::Start)
            }
        }
    }
}

/// Makes the input for a crashed sub-agent of which nothing can be read.
fn unread(agent: AgentId) -> SessionInput {
    SessionInput::AgentCrashed { agent, used: Vec::new() }
}
