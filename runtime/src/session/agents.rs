//! Sub-agents of a session: nested sessions that work for a call of the Agent tool.
//!
//! Limits are of two kinds: depth, number at once and the end are the session's own [`Lease`];
//! number, rate, turns, tokens, money and time of the whole tree are counted by its top session,
//! which the others ask ([`tree`]).

pub(super) mod tree;

use std::{collections::BTreeMap, mem, time::Duration};

use self::tree::{CallName, Debit, TreeAnswer, TreeQuestion, TreeTotals};
use super::{
    Machine, Now, SessionEffect,
    input::AgentRequest,
    run::{Phase, TurnInFlight},
};
use crate::{
    ids::{AgentId, ToolUseId},
    lease::{Lease, LeaseRefused, MaxCost, Spent, Tree},
    run::{
        RunEnd,
        agent_types::{AgentType, agent_type},
        outcome::{RunError, RunOutcome},
    },
    step1_settings_resolution::AgentLimits,
    transcript::load::UsageTotals,
};

/// Where a session is in its tree of agents.
#[derive(Clone, Debug)]
pub enum TreePlace {
    /// At the top, where the totals are counted.
    Top,
    /// Below another session.
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
}

#[derive(Debug)]
struct AskedReply {
    request: u64,
    key: u64,
    call: ToolUseId,
    kind: AgentType,
    lease: Lease,
}

#[derive(Debug)]
struct Running {
    request: u64,
    key: u64,
    call: ToolUseId,
}

impl Agents {
    pub(super) fn new(place: TreePlace) -> Self {
        let limits = AgentLimits::default();
        let (name, totals, lease) = match place {
            TreePlace::Top => (None, Some(TreeTotals::new(Tree::new(limits))), Lease::top(limits)),
            TreePlace::Below { agent, lease } => (Some(agent), None, lease),
        };
        Self { name, totals, lease, asked: BTreeMap::new(), running: BTreeMap::new() }
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

    /// Returns whether a sub-agent of this turn runs.
    pub(super) fn works_for(&self, key: u64) -> bool {
        self.running.values().any(|it| it.key == key)
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
        let AgentRequest { request, key, limits, call, agent_type: kind } = wanted;
        if !self.is_in_flight(key) {
            return self.effects.push(SessionEffect::DropRequest { request });
        }
        self.take_limits(limits);
        let facts = &self.conversation.facts;
        let kind = match agent_type(kind.as_deref(), &facts.agent_types, &facts.tools) {
            Ok(kind) => kind,
            Err(why) => return self.refuse(request, why.to_string()),
        };
        // A draw of the run, named by the call: the same session gives the same names.
        let mut stream = self.conversation.stream;
        if let Some(active) = &self.active {
            stream = stream.child(active.run.id.as_str());
        }
        let draw = stream.child(call.as_str()).draw("agent", 0);
        let agent = AgentId::new(format!("{:016x}", draw >> 64));
        let lease = match self.agents.lease.child(&agent, now.elapsed) {
            Ok(lease) => lease,
            Err(refused) => return self.refuse(request, refused.to_string()),
        };
        let asked = AskedReply { request, key, call, kind, lease };
        self.agents.asked.insert(agent.clone(), asked);
        let parent = self.agents.name.clone();
        self.ask_top(now, TreeQuestion::Admit { agent, parent });
    }

    fn refuse(&mut self, request: u64, why: String) {
        self.effects.push(SessionEffect::RefuseAgent { request, why });
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
        let AskedReply { request, key, call, kind, lease } = asked;
        if let Err(refused) = result {
            self.agents.lease.mark_ended(&agent);
            return self.refuse(request, refused.to_string());
        }
        if !self.is_turning(key) {
            self.agent_over(now, &agent);
            return self.effects.push(SessionEffect::DropRequest { request });
        }
        self.agents.running.insert(agent.clone(), Running { request, key, call });
        let kind = Box::new(kind);
        self.effects.push(SessionEffect::StartAgent { request, agent, kind, lease });
    }

    /// Refuses a sub-agent that was to be started and cannot be.
    pub(super) fn agent_refused(&mut self, now: Now, agent: &AgentId, why: String) {
        let Some(running) = self.agents.running.remove(agent) else { return };
        self.refuse(running.request, why);
        self.agent_over(now, agent);
        self.leave_turn_if_over();
    }

    /// Ends a sub-agent that has ended its run. Its call gets the report exactly once.
    pub(super) fn agent_ended(
        &mut self,
        now: Now,
        agent: &AgentId,
        result: Box<Result<RunOutcome, RunError>>,
    ) {
        if self.agents.running.remove(agent).is_none() {
            return;
        }
        if let (Some(active), Ok(outcome)) = (&mut self.active, &*result) {
            active.cost.enter(agent.clone(), outcome.cost.clone());
            active.run.usage = active.run.usage + outcome.usage;
            active.questions.add(&outcome.questions);
        }
        self.effects.push(SessionEffect::ReportAgent { agent: agent.clone(), result });
        self.effects.push(SessionEffect::CloseAgent(agent.clone()));
        self.agent_over(now, agent);
        self.leave_turn_if_over();
    }

    /// Counts what a crashed sub-agent used, and those below it.
    pub(super) fn agent_crashed(
        &mut self,
        now: Now,
        agent: &AgentId,
        used: Vec<(AgentId, UsageTotals)>,
    ) {
        if let Some(active) = &mut self.active
            && self.agents.running.contains_key(agent)
        {
            for (who, used) in used {
                active.run.usage = active.run.usage + used.usage;
                active.cost.enter(who, used.ledger());
            }
        }
        let crashed = RunError::Failed("the sub-agent crashed".into());
        self.agent_ended(now, agent, Box::new(Err(crashed)));
    }

    fn agent_over(&mut self, now: Now, agent: &AgentId) {
        self.agents.lease.mark_ended(agent);
        self.ask_top(now, TreeQuestion::Close { agent: agent.clone() });
    }

    /// Stops the sub-agent whose call is gone.
    pub(super) fn stop_agent(&mut self, call: &ToolUseId) {
        self.close_agents(|_, of| of == call);
    }

    /// Ends the sub-agents of a turn. Each closes its own transcript.
    pub(super) fn stop_agents_of(&mut self, key: u64) {
        self.close_agents(|of, _| of == key);
    }

    pub(super) fn stop_all_agents(&mut self) {
        self.close_agents(|_, _| true);
    }

    /// A prompt of an agent that was just started may not run yet, so an interrupt is not enough.
    fn close_agents(&mut self, is_meant: impl Fn(u64, &ToolUseId) -> bool) {
        let running = self.agents.running.iter().filter(|(_, it)| is_meant(it.key, &it.call));
        self.effects.extend(running.map(|(name, _)| SessionEffect::CloseAgent(name.clone())));
        let asked = self.agents.asked.extract_if(.., |_, it| is_meant(it.key, &it.call));
        let dropped = asked.map(|(_, it)| SessionEffect::DropRequest { request: it.request });
        self.effects.extend(dropped);
    }

    /// Asks the top of the tree for what a model call of the active turn may use. What earlier calls used was counted
    /// with their records.
    pub(super) fn call_waits(
        &mut self,
        now: Now,
        name: CallName,
        limits: AgentLimits,
        max_cost: MaxCost,
    ) {
        let Some(active) = &mut self.active else { return };
        let Phase::Turning(turn) = &mut active.phase else { return };
        if turn.key != name.0 {
            return;
        }
        turn.waiting_call = Some((name, max_cost.clone()));
        let is_first = active.settled.turns < u64::from(active.run.turns);
        self.take_limits(limits);
        let agent = self.agents.name.clone();
        let debit = Debit { agent, call: name, is_first, max_cost };
        self.ask_top(now, TreeQuestion::Debit(Box::new(debit)));
    }

    fn debited(&mut self, name: CallName, result: Result<(), LeaseRefused>) {
        let Some(active) = &mut self.active else { return };
        let Phase::Turning(turn) = &mut active.phase else { return };
        // A call that was given up, and its turn with it, waits for nothing.
        let Some((_, max_cost)) = turn.waiting_call.take_if(|it| it.0 == name) else { return };
        match result {
            Ok(()) => {
                turn.under_way = Some(max_cost.into());
                self.effects.push(SessionEffect::LetCallGo(name));
            }
            Err(refused) => {
                active.error = Some(refused.to_string());
                self.end_turn(RunEnd::TreeLimit);
            }
        }
    }

    /// Counts what the run used since this was last done, and gives back what was set aside for it.
    /// Done with the record of each model call, and at the end of the run.
    pub(super) fn settle(&mut self, now: Now) {
        let Some(active) = self.active.as_mut() else { return };
        let calls =
            Spent { turns: active.run.turns.into(), ..active.cost.own_accounts().total().into() };
        let sum = calls + active.in_doubt;
        let used = sum.since(mem::replace(&mut active.settled, sum));
        let agent = self.agents.name.clone();
        self.ask_top(now, TreeQuestion::Settle { agent, used });
    }

    /// Ends the calls of a run that is over, and with it a call that was sent and has no record.
    pub(super) fn calls_over(&mut self, now: Now, left: Option<(&TurnInFlight, bool, RunEnd)>) {
        let Some(active) = &mut self.active else { return };
        match left {
            Some((TurnInFlight { under_way: Some(max_cost), .. }, true, _)) => {
                active.in_doubt = active.in_doubt + (*max_cost).into();
            }
            // A turn that the tree ended before a call of it was sent is none.
            Some((_, _, RunEnd::TreeLimit)) => active.settled.turns = active.run.turns.into(),
            _ => {}
        }
        self.settle(now);
    }

    /// Asks the top session, which may be this one.
    fn ask_top(&mut self, now: Now, question: TreeQuestion) {
        match &self.agents.totals {
            Some(_) => self.tree_question(now, question),
            None => self.effects.push(SessionEffect::AskTop(question)),
        }
    }

    /// Answers an agent of the tree, at its top.
    pub(super) fn tree_question(&mut self, now: Now, question: TreeQuestion) {
        let Some(totals) = &mut self.agents.totals else { return };
        for (to, answer) in totals.answer(question, now.elapsed) {
            match to {
                Some(agent) => self.effects.push(SessionEffect::AnswerAgent { agent, answer }),
                // Taken when the input that caused it has been handled.
                None => self.own_answers.push_back(answer),
            }
        }
    }

    /// Takes an answer of the top session.
    pub(super) fn tree_answer(&mut self, now: Now, answer: TreeAnswer) {
        match answer {
            TreeAnswer::Admitted { agent, result } => self.admitted(now, agent, result),
            TreeAnswer::Debited { call, result } => self.debited(call, result),
        }
    }
}
