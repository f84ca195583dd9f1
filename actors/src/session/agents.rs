//! Sub-agents of a session: nested sessions that work for a call of the Agent tool.
//!
//! A sub-agent is a child of its session, so none outlives it. The machine decides which start and
//! what they may use; here are their actors, the calls that wait for them, and the way to the top of
//! the tree.

mod asked;
mod child_setup;
pub(in crate::session) mod children;
mod crashed;
mod messages;
mod meta;
pub(super) mod orphans;
mod report;

use std::num::NonZeroU32;

use ennead_runtime::{
    event::Event,
    ids::{AgentId, EntryId},
    lease::Lease,
    ports::agents::BackgroundAgent,
    run::{
        MESSAGE_ORIGIN, RunRequest,
        agent_types::{AgentType, going_on::can_go_on},
    },
    session::SpawnId,
};
use ractor::{ActorProcessingErr, ActorRef};

use self::children::{Request, RequestReply, RunningAgent};
pub(crate) use self::report::AgentPort;
use super::{
    Prompt, RunError, RunOutcome, Session, SessionMsg, SessionState, message::MessageReply,
};
use crate::groundwork::{mailbox::Mailbox, supervision::spawn};

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
