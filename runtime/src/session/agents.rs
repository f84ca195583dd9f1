//! Sub-agents of a session: nested sessions that work for a call of the Agent tool.
//!
//! Limits are of two kinds: depth, number at once and the end are the session's own [`Lease`];
//! number, rate, turns, tokens, money and time of the whole tree are counted by its top session,
//! which the others ask ([`tree`]).

mod calls;
mod ends;
mod messages;
pub(super) mod tree;

use std::{collections::BTreeMap, time::Duration};

use self::tree::{TreeQuestion, TreeTotals};
use super::{
    Machine, Now, SessionEffect, SpawnEffect,
    input::{AgentRequest, MessageRequest},
    names::{SpawnId, TurnKey},
};
use crate::{
    ids::{AgentId, EntryId, ToolUseId},
    lease::{Lease, LeaseRefused, Tree},
    ports::{
        agents::{AgentPlacement, BackgroundAgent},
        messages::Undelivered,
    },
    run::agent_types::{AgentType, agent_type, verifier},
    step1_settings_resolution::AgentLimits,
};

/// Where a session is in its tree of agents.
#[derive(Clone, Debug)]
pub enum TreePlace {
    /// At the top, where the totals are counted.
    Top,
    /// Below another session, which started it as a sub-agent.
    Below {
        /// Its name in the tree.
        agent: AgentId,
        /// What it may hand on.
        lease: Lease,
    },
}

/// The sub-agents of a session.
#[derive(Debug)]
pub(super) struct Agents {
    /// Its own name in the tree; the top has none.
    name: Option<AgentId>,
    /// The totals of the tree, at its top.
    totals: Option<TreeTotals>,
    lease: Lease,
    /// Sub-agents that the top session has not admitted yet.
    asked: BTreeMap<AgentId, AskedReply>,
    running: BTreeMap<AgentId, Running>,
    /// Messages on their way to agents at work.
    messages: BTreeMap<SpawnId, MessageRequest>,
    /// Messages that an agent did not take since its run was over; its end follows.
    returned: Vec<MessageRequest>,
}

#[derive(Debug)]
struct AskedReply {
    spawn: SpawnId,
    key: TurnKey,
    call: ToolUseId,
    kind: AgentType,
    lease: Lease,
    background: Option<BackgroundAgent>,
    /// Names the line of the message with which it goes on, where it has ended before.
    again: Option<EntryId>,
}

#[derive(Debug)]
struct Running {
    spawn: SpawnId,
    key: TurnKey,
    call: ToolUseId,
    /// How it is reported, where it works in the background and for no turn.
    background: Option<BackgroundAgent>,
    /// Whether it goes on with a message that is not known to be safe yet.
    awaits: bool,
    /// Whether it is sent no message.
    is_one_shot: bool,
}

impl Agents {
    pub(super) fn new(place: TreePlace) -> Self {
        let limits = AgentLimits::default();
        let (name, totals, lease) = match place {
            TreePlace::Top => (None, Some(TreeTotals::new(Tree::new(limits))), Lease::top(limits)),
            TreePlace::Below { agent, lease } => (Some(agent), None, lease),
        };
        let (asked, running, messages) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { name, totals, lease, asked, running, messages, returned: Vec::new() }
    }

    /// Returns the totals of the tree, at its top.
    pub(super) fn tree(&mut self) -> Option<&mut Tree> {
        self.totals.as_mut().map(|it| &mut it.tree)
    }

    /// Returns when the active run is to end, as far as that is known.
    pub(super) fn ends(&self) -> Option<Duration> {
        self.lease.ends()
    }

    /// Begins a run. When one of the top is to end, its first turn sets that by its settings.
    pub(super) fn begin_run(&mut self) {
        if self.totals.is_some() {
            self.lease.set_end(None);
        }
    }

    pub(super) fn n_running(&self) -> usize {
        self.running.len()
    }

    /// Returns how many places of the session's lease are taken.
    #[cfg(test)]
    pub(super) fn n_places_taken(&self) -> usize {
        self.lease.running()
    }

    /// Returns whether a sub-agent of this turn runs.
    pub(super) fn works_for(&self, key: TurnKey) -> bool {
        self.running.values().any(|it| it.key == key && it.background.is_none())
    }

    /// Returns whether this agent works in the background.
    pub(super) fn is_in_background(&self, agent: &AgentId) -> bool {
        self.running.get(agent).is_some_and(|it| it.background.is_some())
    }

    /// Returns whether any agent works in the background.
    pub(super) fn is_any_in_background(&self) -> bool {
        self.running.values().any(|it| it.background.is_some())
    }

    /// Returns whether this agent of the tree can still ask. It is known at the top alone.
    pub(super) fn is_open(&self, agent: &AgentId) -> bool {
        self.totals.as_ref().is_some_and(|it| it.tree.is_open(Some(agent)))
    }
}

impl Machine {
    /// Takes over the limits of a turn's settings for what is asked from now on. Below the top they
    /// are those of the top, whose turn waits for its sub-agents.
    fn take_limits(&mut self, limits: AgentLimits) {
        if let Some(totals) = &mut self.agents.totals {
            self.agents.lease.set_limits(limits);
            totals.tree.set_limits(limits);
            let started = self.active.as_ref().map(|it| it.started);
            let left = totals.tree.time_left();
            self.agents.lease.set_end(started.zip(left).map(|(at, left)| at.saturating_add(left)));
        }
        self.limit_time();
    }

    /// Starts the sub-agent that a tool call wants.
    pub(super) fn spawn_agent(&mut self, now: Now, wanted: AgentRequest) {
        let AgentRequest { spawn, key, limits, call, part, placement, description, .. } = wanted;
        if !self.is_in_flight(key) {
            return self.effects.push(SessionEffect::DropRequest { spawn });
        }
        self.take_limits(limits);
        let facts = &self.conversation.facts;
        let named = wanted.agent_type.as_deref();
        let kind = match agent_type(named, &facts.agent_types, &facts.tools) {
            _ if wanted.verifies => verifier(),
            Ok(kind) => kind,
            Err(why) => return self.refuse(spawn, why.to_string()),
        };
        // A draw of the run, named by the call and the place in it: the same session gives the same names.
        let mut stream = self.conversation.stream;
        if let Some(active) = &self.active {
            stream = stream.child(active.run.id.as_str());
        }
        let draw = stream.child(call.as_str()).draw("agent", part.unwrap_or_default().into());
        let agent = AgentId::new(format!("{:016x}", draw >> 64));
        let lease = match self.agents.lease.child(&agent, now.elapsed) {
            Ok(lease) => lease,
            Err(refused) => return self.refuse(spawn, refused.to_string()),
        };
        let is_background = match placement {
            AgentPlacement::Foreground => false,
            AgentPlacement::AsTyped => kind.in_background,
            AgentPlacement::Background => true,
        };
        // Only the last answer of a sub-agent is read, so it waits for those that it starts.
        let is_background = is_background && self.conversation.facts.agent.is_none();
        let background = is_background
            .then(|| BackgroundAgent::running(agent.clone(), call.clone(), &description));
        let asked = AskedReply { spawn, key, call, kind, lease, background, again: None };
        self.agents.asked.insert(agent.clone(), asked);
        let parent = self.agents.name.clone();
        self.ask_top(now, TreeQuestion::Admit { agent, parent, again: false });
    }

    fn refuse(&mut self, spawn: SpawnId, why: String) {
        self.effects.push(SessionEffect::RefuseAgent { spawn, why });
    }

    fn admitted(&mut self, now: Now, agent: AgentId, result: Result<(), LeaseRefused>) {
        let Some(asked) = self.agents.asked.remove(&agent) else {
            // The call that wanted it is gone meanwhile.
            match result {
                Ok(()) => self.agent_over(now, &agent),
                Err(_) => drop(self.agents.lease.mark_ended(&agent)),
            }
            return;
        };
        let AskedReply { spawn, key, call, kind, lease, background, again } = asked;
        if let Err(refused) = result {
            self.agents.lease.mark_ended(&agent);
            return match again {
                None => self.refuse(spawn, refused.to_string()),
                Some(_) => {
                    let why = Undelivered::Limit { why: refused.to_string() };
                    self.effects.push(SessionEffect::RefuseMessage { spawn, why });
                }
            };
        }
        if !self.is_turning(key) {
            self.agent_over(now, &agent);
            return self.effects.push(SessionEffect::DropRequest { spawn });
        }
        let started = background.clone().map(Box::new);
        let (awaits, is_one_shot) = (again.is_some(), kind.is_one_shot());
        let running = Running { spawn, key, call, background, awaits, is_one_shot };
        self.agents.running.insert(agent.clone(), running);
        let (kind, background) = (Box::new(kind), started);
        let start = SpawnEffect::StartAgent { spawn, agent, kind, lease, background, again };
        self.effects.push(start.into());
    }

    /// Stops the sub-agent whose call is gone.
    pub(super) fn stop_agent(&mut self, call: &ToolUseId) {
        self.close_agents(|it| it.call == *call, |it| it.call == *call);
    }

    /// Ends the sub-agents of a turn. Each closes its own transcript.
    pub(super) fn stop_agents_of(&mut self, key: TurnKey) {
        let is_of = |of: TurnKey, background: &Option<_>| of == key && background.is_none();
        self.close_agents(|it| is_of(it.key, &it.background), |it| it.key == key);
    }

    pub(super) fn stop_all_agents(&mut self) {
        self.close_agents(|_| true, |_| true);
    }

    /// Ends the sub-agents in the background.
    pub(super) fn stop_background_agents(&mut self) {
        self.close_agents(|it| it.background.is_some(), |it| it.background.is_some());
    }

    /// A prompt of an agent that was just started may not run yet, so an interrupt is not enough.
    fn close_agents(
        &mut self,
        is_meant: impl Fn(&Running) -> bool,
        is_asked_meant: impl Fn(&AskedReply) -> bool,
    ) {
        let running = self.agents.running.iter().filter(|(_, it)| is_meant(it));
        self.effects.extend(running.map(|(name, _)| SessionEffect::CloseAgent(name.clone())));
        let asked = self.agents.asked.extract_if(.., |_, it| is_asked_meant(it));
        let dropped = asked.map(|(_, it)| SessionEffect::DropRequest { spawn: it.spawn });
        self.effects.extend(dropped);
    }
}
