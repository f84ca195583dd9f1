//! Messages for sub-agents: from a call to the session, from there to the agent, and the answer back.
//!
//! An agent that goes on needs its transcript, which the actor that worked for it before may still be closing. So its
//! start waits until that has ended.

use std::{path::Path, sync::Arc};

use ennead_runtime::{
    ids::{AgentId, EntryId},
    ports::{
        AgentOrder, BoxFuture,
        messages::{AgentMessage, Delivered, MessageFate, Undelivered},
    },
    run::agent_types::{NoAgent, agent_type},
    session::{MessageNumber, MessageRequest, SessionInput, SpawnEffect, SpawnId},
};
use ractor::ActorRef;
use tokio::sync::oneshot;

use super::{
    AgentPort,
    children::{Children, Request, RequestReply},
    meta::AgentMeta,
};
use crate::{
    ports::transcript_store::layout,
    session::{
        RunError, SessionMsg, SessionState,
        message::{MessageReply, SendRequest},
        state::Starting,
    },
};

/// Characters of an id that an error repeats.
const MAX_SHOWN: usize = 100;

impl AgentPort {
    /// Sends a message: finds out what is known of the agent, and asks the session.
    pub(super) fn send_message(
        &self,
        message: AgentMessage,
    ) -> BoxFuture<'static, Result<Delivered, Undelivered>> {
        let (session, key, limits) = (self.session.clone(), self.key, self.limits);
        let (layers, context) = (Arc::clone(&self.layers), Arc::clone(&self.session_context));
        Box::pin(async move {
            let to = message.to.chars().take(MAX_SHOWN).collect::<String>();
            let facts = &context.facts;
            let kind = agent_type(Some(&message.to), &facts.agent_types, &facts.tools);
            if !matches!(kind, Err(NoAgent::Unknown { .. })) {
                return Err(Undelivered::IsType { to });
            }
            let agent = AgentId::from(message.to.as_str());
            let is_short = to.len() == message.to.len();
            let file = layout::sidechain(Path::new(&*facts.directory), &agent);
            let Some(file) = file.ok().filter(|_| is_short) else {
                return Err(Undelivered::Unknown { to });
            };
            let store = Arc::clone(&context.world.transcripts);
            let read = move || AgentMeta::read(&*store, &file).known();
            let known = tokio::task::spawn_blocking(read).await.ok().flatten();
            let (reply, sent) = oneshot::channel();
            let request = SendRequest { key, limits, layers, message, known, reply };
            let _gone = session.cast(SessionMsg::SendMessage(Box::new(request)));
            sent.await.unwrap_or(Err(Undelivered::NotHere))
        })
    }
}

impl Children {
    /// Keeps a call that sends a message, and returns what the machine is asked.
    pub(in crate::session) fn message_requested(&mut self, request: SendRequest) -> SessionInput {
        let SendRequest { key, limits, layers, message, known, reply } = request;
        let AgentMessage { tool_use: call, to, text, .. } = message;
        let spawn = self.last_spawn.advance();
        let description = known.as_ref().map(|it| it.description.to_string()).unwrap_or_default();
        let mut order = AgentOrder::new(call.clone(), description, text);
        order.model = known.as_ref().and_then(|it| it.model.clone());
        let agent = AgentId::from(to);
        let (reply, transcript) = (RequestReply::Sent(reply), String::new());
        let request = Request { order, layers, verifies_for: None, reply, transcript };
        self.requests.insert(spawn, request);
        let request = MessageRequest { spawn, key, limits, call, agent, known };
        SessionInput::SendMessage(Box::new(request))
    }

    /// Hands a message to a sub-agent at work. One that is gone drops it, and that is the answer.
    pub(in crate::session) fn deliver(
        &self,
        myself: &ActorRef<SessionMsg>,
        spawn: SpawnId,
        agent: &AgentId,
        id: EntryId,
    ) {
        let reply = MessageReply::new(myself.clone(), spawn);
        if let (Some(child), Some(request)) = (self.running.get(agent), self.requests.get(&spawn)) {
            let text = request.order.prompt.clone();
            let _gone = child.actor.cast(SessionMsg::Message { id, text, reply });
        }
    }

    /// Answers the call that sent a message.
    pub(in crate::session) fn sent(
        &mut self,
        spawn: SpawnId,
        result: Result<Delivered, Undelivered>,
    ) {
        if let Some(Request { reply: RequestReply::Sent(reply), .. }) = self.requests.remove(&spawn)
        {
            let _gone = reply.send(result);
        }
    }

    /// Answers the call that sent a message which an agent has on record now.
    pub(in crate::session) fn delivered(&mut self, spawn: SpawnId, goes_on: bool) {
        let transcript = self.requests.get(&spawn).map(|it| it.transcript.clone());
        let delivered = match goes_on {
            false => Delivered::AtWork,
            true => Delivered::GoesOn { transcript: transcript.unwrap_or_default() },
        };
        self.sent(spawn, Ok(delivered));
    }

    /// Has a start wait while the actor that worked for the agent before has not ended. Returns one that need not.
    pub(in crate::session) fn defer(&mut self, start: SpawnEffect) -> Option<SpawnEffect> {
        match &start {
            SpawnEffect::StartAgent { agent, .. } if self.running.contains_key(agent) => {
                self.deferred.insert(agent.clone(), start);
                None
            }
            _ => Some(start),
        }
    }

    /// Gives up a start that waits. Returns whether there was one.
    pub(super) fn drop_deferred(&mut self, myself: &ActorRef<SessionMsg>, agent: &AgentId) -> bool {
        if self.deferred.remove(agent).is_none() {
            return false;
        }
        let result = Box::new(Err(RunError::Ended));
        let _gone = myself.cast(SessionMsg::AgentEnded { agent: agent.clone(), result });
        true
    }
}

impl SessionState {
    /// Takes a message that the session above sends.
    pub(in crate::session) fn take_message(
        &mut self,
        id: EntryId,
        text: String,
        reply: MessageReply,
    ) -> SessionInput {
        let number = self.last_message.advance();
        self.messages.insert(number, reply.seen());
        SessionInput::Message { number, id, text }
    }

    /// Answers the one that sent a message.
    pub(in crate::session) fn message_taken(&mut self, number: MessageNumber, fate: MessageFate) {
        if let Some(reply) = self.messages.remove(&number) {
            reply.answer(fate);
        }
    }

    /// Starts an agent whose transcript is free now.
    pub(in crate::session) fn start_deferred<'a>(
        &'a mut self,
        myself: &'a ActorRef<SessionMsg>,
        start: SpawnEffect,
    ) -> Starting<'a> {
        Ok(Some(Box::pin(self.carry_out_spawns(myself, start, Default::default()))))
    }
}
