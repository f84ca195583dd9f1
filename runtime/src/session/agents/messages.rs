//! Messages for sub-agents: one at work is handed its message, one that has ended goes on with it in the background.
//!
//! An agent may end while its message is on its way. Then the message comes back, and the agent goes on with it.

use crate::{
    ids::{AgentId, EntryId},
    ports::{
        agents::BackgroundAgent,
        messages::{KnownAgent, MessageFate, Undelivered},
    },
    run::agent_types::agent_type,
    session::{
        ClosePhase, Machine, MessageRequest, Now, SessionEffect,
        agents::{AskedReply, tree::TreeQuestion},
        names::SpawnId,
    },
};

impl Machine {
    /// Sends the message of a tool call.
    pub(in crate::session) fn send_message(&mut self, now: Now, request: MessageRequest) {
        if !self.is_in_flight(request.key) {
            let spawn = request.spawn;
            return self.effects.push(SessionEffect::DropRequest { spawn });
        }
        let MessageRequest { spawn, ref agent, .. } = request;
        let Some(id) = self.message_id(&request) else { return };
        match self.agents.running.get(agent) {
            Some(it) if it.is_one_shot => {
                let agent_type = request.known.map(|it| it.agent_type).unwrap_or_default();
                self.refuse_message(spawn, Undelivered::OneShot { agent_type });
            }
            Some(it) if it.background.is_none() => {
                self.refuse_message(spawn, Undelivered::IsAwaited);
            }
            Some(_) => {
                let agent = agent.clone();
                self.effects.push(SessionEffect::DeliverMessage { spawn, agent, id });
                self.agents.messages.insert(spawn, request);
            }
            None => {
                if let Err(why) = self.go_on_with(now, id, request) {
                    self.refuse_message(spawn, why);
                }
            }
        }
    }

    fn refuse_message(&mut self, spawn: SpawnId, why: Undelivered) {
        self.effects.push(SessionEffect::RefuseMessage { spawn, why });
    }

    /// Names the line of a message. Only the top session sends messages.
    fn message_id(&mut self, request: &MessageRequest) -> Option<EntryId> {
        let run = self.active.as_ref().map(|it| &it.run.id);
        let run = run.filter(|_| self.conversation.facts.agent.is_none());
        let Some(run) = run else {
            self.refuse_message(request.spawn, Undelivered::NotHere);
            return None;
        };
        Some(EntryId::of_message(&request.agent, run, &request.call))
    }

    /// Asks the tree for an agent that has ended and goes on.
    fn go_on_with(
        &mut self,
        now: Now,
        id: EntryId,
        request: MessageRequest,
    ) -> Result<(), Undelivered> {
        if self.closing != ClosePhase::No {
            return Err(Undelivered::NotHere);
        }
        let MessageRequest { spawn, key, limits, call, agent, known } = request;
        let Some(known) = known else {
            return Err(Undelivered::Unknown { to: agent.to_string() });
        };
        self.take_limits(limits);
        let facts = &self.conversation.facts;
        let KnownAgent { agent_type: name, description, .. } = &known;
        let kind = agent_type(Some(name), &facts.agent_types, &facts.tools)
            .map_err(|_| Undelivered::OtherType { agent_type: name.clone() })?;
        known.check(&kind, &facts.agent_types)?;
        let lease = self.agents.lease.child_again(&agent, now.elapsed);
        let lease = lease.map_err(|it| Undelivered::Limit { why: it.to_string() })?;
        let background = Some(BackgroundAgent::running(agent.clone(), call.clone(), description));
        let again = Some(id);
        let asked = AskedReply { spawn, key, call, kind, lease, background, again };
        self.agents.asked.insert(agent.clone(), asked);
        let parent = self.agents.name.clone();
        self.ask_top(now, TreeQuestion::Admit { agent, parent, again: true });
        Ok(())
    }

    /// Takes what became of a message: of one that was handed to an agent at work, or of one with which an agent goes on.
    pub(in crate::session) fn message_answered(
        &mut self,
        now: Now,
        spawn: SpawnId,
        fate: MessageFate,
    ) {
        if let Some(request) = self.agents.messages.remove(&spawn) {
            return match fate {
                MessageFate::Taken => {
                    self.effects.push(SessionEffect::MessageDelivered { spawn, goes_on: false });
                }
                MessageFate::TooMany => self.refuse_message(spawn, Undelivered::TooMany),
                MessageFate::Unclear => self.refuse_message(spawn, Undelivered::Unclear),
                // Its end is on its way.
                MessageFate::NotTaken if self.agents.running.contains_key(&request.agent) => {
                    self.agents.returned.push(request);
                }
                MessageFate::NotTaken => self.send_message(now, request),
            };
        }
        let begun = self.agents.running.values_mut().find(|it| it.spawn == spawn && it.awaits);
        // Of one that has not begun the end says why.
        let Some(begun) = begun.filter(|_| fate == MessageFate::Taken) else { return };
        begun.awaits = false;
        let background = begun.background.clone();
        if let Some(background) = background {
            self.agent_kept(now, &background);
        }
        self.effects.push(SessionEffect::MessageDelivered { spawn, goes_on: true });
    }

    /// Sends again what an agent did not take since it had ended.
    pub(super) fn send_returned(&mut self, now: Now, agent: &AgentId) {
        let is_meant = |it: &mut MessageRequest| it.agent == *agent;
        let returned: Vec<_> = self.agents.returned.extract_if(.., is_meant).collect();
        returned.into_iter().for_each(|it| self.send_message(now, it));
    }
}
