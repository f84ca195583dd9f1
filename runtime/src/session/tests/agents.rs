//! The sub-agents of the world: they are started, sent messages and end, and ask the tree for their share.

use super::{
    tallies::Tallies,
    world::{Owed, SessionWorld},
};
use crate::{
    ids::{AgentId, ToolUseId},
    lease::{LeaseRefused, MaxCost, Price, Spent},
    ports::{
        agents::AgentPlacement,
        messages::{KnownAgent, MessageFate},
    },
    run::{
        agent_types::going_on::BUILT_IN,
        outcome::{RunError, RunOutcome},
    },
    session::{
        AgentRequest, Debit, MessageRequest, SessionInput, TreeAnswer, TreeQuestion,
        names::{CallName, SpawnId, TurnKey},
    },
    step1_settings_resolution::AgentLimits,
    tokens::Tokens,
};

impl SessionWorld {
    pub(super) fn spawn(&mut self, key: TurnKey) {
        self.spawn_in(key, AgentPlacement::AsTyped);
    }

    pub(super) fn spawn_in(&mut self, key: TurnKey, placement: AgentPlacement) {
        self.n_requests += 1;
        let spawn = SpawnId(self.n_requests);
        self.requests.insert(spawn);
        let call = ToolUseId::from(format!("toolu_{}", spawn.0).as_str());
        let limits = AgentLimits::default();
        self.input(SessionInput::SpawnAgent(AgentRequest {
            spawn,
            key,
            limits,
            call,
            part: None,
            agent_type: None,
            placement,
            description: "look about".into(),
            verifies: false,
        }));
    }

    /// A call of the turn sends a message to an agent that has begun in the background, or to one that is not known.
    pub(super) fn sends_message(&mut self, key: TurnKey, how: u64) {
        self.n_requests += 1;
        let spawn = SpawnId(self.n_requests);
        let n_agents = self.background.len() as u64;
        let agent = self.background.iter().nth((how % (n_agents + 1)) as usize).cloned();
        let agent_type = "general-purpose".into();
        let known =
            KnownAgent { agent_type, definition: Some(BUILT_IN.into()), ..KnownAgent::default() };
        let known = agent.is_some().then_some(known);
        self.tallies.sends.insert(spawn, 0);
        self.input(SessionInput::SendMessage(Box::new(MessageRequest {
            spawn,
            key,
            limits: AgentLimits::default(),
            call: format!("toolu_{}", spawn.0).as_str().into(),
            agent: agent.unwrap_or_else(|| "ffffffffffffffff".into()),
            known,
        })));
    }

    /// The call that waits for an agent is gone.
    pub(super) fn gives_up_call(&mut self, how: u64) {
        let n = self.n_requests - how % 8;
        self.input(SessionInput::StopAgent(format!("toolu_{n}").as_str().into()));
    }

    /// A message that was handed to an agent at work is on record there, or not.
    pub(super) fn is_delivered(&mut self, spawn: SpawnId, how: u64) {
        let fates =
            [MessageFate::Taken, MessageFate::NotTaken, MessageFate::TooMany, MessageFate::Unclear];
        let fate = fates[(how % 4) as usize];
        self.input(SessionInput::MessageAnswered { spawn, fate });
    }

    /// An agent that goes on has its message on record.
    pub(super) fn goes_on(&mut self, spawn: SpawnId, agent: &AgentId) {
        *self.tallies.beginnings.entry(agent.clone()).or_default() += 1;
        self.input(SessionInput::MessageAnswered { spawn, fate: MessageFate::Taken });
    }

    /// An agent that was to go on has ended before its message was on record.
    pub(super) fn did_not_go_on(&mut self, spawn: SpawnId, how: u64) {
        let is_unclear = how.is_multiple_of(2);
        let fate = if is_unclear { MessageFate::Unclear } else { MessageFate::NotTaken };
        self.input(SessionInput::MessageAnswered { spawn, fate });
    }

    /// An agent is over, and what it was to go on with will not begin.
    pub(super) fn note_end(&mut self, agent: &AgentId) {
        self.running.remove(agent);
        for it in &mut self.owed {
            if let Owed::GoesOn(spawn, of) = it
                && of == agent
            {
                *it = Owed::NotBegun(*spawn);
            }
        }
    }

    /// Whether an agent was started to go on and has not begun.
    fn awaits(&self, agent: &AgentId) -> bool {
        self.owed.iter().any(|it| matches!(it, Owed::GoesOn(_, of) if of == agent))
    }

    pub(super) fn agent_ends(&mut self, agent: AgentId, how: u64) {
        let is_at_work = self.background.contains(&agent) && !self.awaits(&agent);
        let outcome = self.machine.outcomes.values().next().cloned();
        match how % 4 {
            // Only one that was not started can be refused.
            1 if is_at_work => {
                let full = RunError::Failed("the disk is full".into());
                self.agent_is_over(&agent, Err(full));
            }
            0 => self.input(SessionInput::AgentCrashed { agent, used: Vec::new() }),
            1 => self.input(SessionInput::AgentRefused { agent, why: "no name".into() }),
            2 if outcome.is_some() && !self.awaits(&agent) => {
                let outcome = outcome.into_iter().next().expect("it is there");
                self.agent_is_over(&agent, Ok(outcome));
            }
            _ => self.agent_is_over(&agent, Err(RunError::Ended)),
        }
    }

    pub(super) fn agent_is_over(&mut self, agent: &AgentId, result: Result<RunOutcome, RunError>) {
        let (agent, result) = (agent.clone(), Box::new(result));
        self.input(SessionInput::AgentEnded { agent, result });
    }

    /// The top of the tree is asked for a sub-agent.
    pub(super) fn admits(&mut self, agent: AgentId) {
        let n = self.number();
        let result = match n % 4 {
            0 => Err(LeaseRefused::TooManyInTree { max: 1 }),
            _ => {
                self.tallies.admitted.insert(agent.clone());
                Ok(())
            }
        };
        self.owed.push(Owed::Top(TreeAnswer::Admitted { agent, result }));
    }

    /// The top of the tree is asked for the share of a model call.
    pub(super) fn asks_for_share(&mut self, call: CallName) {
        let n = self.number();
        let result = match n % 4 {
            0 => Err(LeaseRefused::TokensUsedUp { max: 1, used: 1 }),
            _ => Ok(()),
        };
        self.owed.push(Owed::Top(TreeAnswer::Debited { call, result }));
    }

    pub(super) fn top_answers(&mut self, answer: TreeAnswer) {
        self.input(SessionInput::TreeAnswer(answer));
    }

    /// An agent of the tree asks its top, which this session is.
    pub(super) fn asked_by_tree(&mut self, how: u64) {
        let agents: Vec<AgentId> =
            self.running.iter().chain(&self.tallies.below).cloned().collect();
        if !self.is_top() || agents.is_empty() {
            return;
        }
        let agent = agents[(how / 4) as usize % agents.len()].clone();
        let question = match how % 4 {
            0 => {
                let n = self.number();
                let below = AgentId::from(format!("{n:016x}").as_str());
                self.tallies.below.insert(below.clone());
                TreeQuestion::Admit { agent: below, parent: Some(agent), again: false }
            }
            1 => {
                self.n_attempts += 1;
                let call = CallName { turn: TurnKey(1), attempt: self.n_attempts };
                self.tallies.debits.insert(agent.clone(), call);
                let max_cost = MaxCost { tokens: Tokens(500), price: Price::Unknown("m".into()) };
                let debit = Debit { agent: Some(agent), call, is_first: true, max_cost };
                TreeQuestion::Debit(Box::new(debit))
            }
            2 => {
                self.tallies.debits.remove(&agent);
                TreeQuestion::Settle { agent: Some(agent), used: Spent::default() }
            }
            _ if self.tallies.below.remove(&agent) => {
                self.tallies.debits.remove(&agent);
                TreeQuestion::Close { agent }
            }
            _ => return,
        };
        let asks = match &question {
            TreeQuestion::Admit { parent, .. } => parent.clone(),
            _ => None,
        };
        let n_before = self.log.iter().filter(|it| it.starts_with("AnswerAgent")).count();
        self.input(SessionInput::TreeQuestion(question));
        if asks.is_some() {
            let n_after = self.log.iter().filter(|it| it.starts_with("AnswerAgent")).count();
            assert!(n_before < n_after, "whether an agent may be started is answered at once");
        }
    }

    /// The top has answered an agent of the tree.
    pub(super) fn answers_below(&mut self, agent: &AgentId, answer: &TreeAnswer) {
        match answer {
            TreeAnswer::Debited { call, .. } => {
                let asked = self.tallies.debits.remove(agent);
                assert_eq!(asked, Some(*call), "an answer that {agent} does not wait for");
            }
            TreeAnswer::Admitted { agent, result } => {
                if result.is_err() {
                    self.tallies.below.remove(agent);
                }
            }
        }
    }

    /// What must hold of the tree whenever nothing is being handled: no call waits for a share that nothing holds.
    pub(super) fn check_tree(&mut self) {
        let machine = &self.machine;
        self.tallies.debits.retain(|it, _| machine.is_agent_open(it));
        self.tallies.below.retain(|it| machine.is_agent_open(it));
        let Some(tree) = self.machine.agents.tree() else { return };
        let (tokens, _) = tree.reserved();
        let waiting = &self.tallies.debits;
        assert!(
            tokens != Tokens(0) || waiting.is_empty(),
            "calls wait and nothing is reserved: {waiting:?}"
        );
    }
}

impl Tallies {
    /// Whether each call that waits for its share was admitted once at most.
    pub(super) fn check_calls(&self) {
        let twice = self.calls.iter().find(|(_, n)| 1 < **n);
        assert_eq!(twice, None, "a model call was admitted twice");
    }
}
