//! What a tree of agents may still use.
//!
//! Two values, because two places decide. A [`Lease`] belongs to one session and is narrowed from
//! parent to child: how deep it lies and how many sub-agents it runs at once. The [`Tree`] belongs
//! to the top session and holds the totals that all share: agents ever started, turns and tokens.
//! A descendant asks for its share of the totals by message; there is no shared memory.
//!
//! To start a sub-agent: [`Lease::child`] where it is wanted, then [`Tree::admit`] at the top; when
//! the second refuses, [`Lease::ended`] takes the first back. Before each model call:
//! [`Tree::debit`] for the worst case; behind it: [`Tree::settle`] with what was used. When the
//! sub-agent has ended: [`Lease::ended`] at its parent and [`Tree::close`] at the top.

use std::collections::{BTreeMap, BTreeSet};

use crate::{ids::AgentId, step1_settings_resolution::AgentLimits, tokens::Tokens};

/// What one session may start. Narrowed from its parent's, never widened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    limits: AgentLimits,
    depth: u32,
    running: BTreeSet<AgentId>,
    ended: BTreeSet<AgentId>,
}

impl Lease {
    /// The lease of a top session: depth 0.
    pub fn top(limits: AgentLimits) -> Self {
        Self { limits, depth: 0, running: BTreeSet::new(), ended: BTreeSet::new() }
    }

    /// The same places taken, under other limits.
    pub fn set_limits(&mut self, limits: AgentLimits) {
        self.limits = limits;
    }

    /// Generations between this session and the top.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Sub-agents of this session that have not ended.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Whether a sub-agent of this session could ever be started. If not, the Agent tool is not
    /// offered.
    pub fn allows_nesting(&self) -> bool {
        self.depth < self.limits.max_depth && 0 < self.limits.max_at_once
    }

    /// This lease with the smaller of both limits everywhere; for agents with limits of their own.
    #[must_use]
    pub fn narrowed(mut self, limits: &AgentLimits) -> Self {
        self.limits.max_depth = self.limits.max_depth.min(limits.max_depth);
        self.limits.max_at_once = self.limits.max_at_once.min(limits.max_at_once);
        self
    }

    /// Takes a place for a sub-agent and gives its lease: one deeper, with the same limits. The
    /// place is taken until [`Lease::ended`].
    ///
    /// # Errors
    ///
    /// [`LeaseRefused::TooDeep`], [`LeaseRefused::TooManyAtOnce`], or [`LeaseRefused::KnownAgent`]
    /// when the id was used before. Nothing is taken then.
    pub fn child(&mut self, agent: &AgentId) -> Result<Lease, LeaseRefused> {
        if self.limits.max_depth <= self.depth {
            return Err(LeaseRefused::TooDeep { max: self.limits.max_depth });
        }
        if self.running.contains(agent) || self.ended.contains(agent) {
            return Err(LeaseRefused::KnownAgent);
        }
        if u64::from(self.limits.max_at_once) <= self.running.len() as u64 {
            return Err(LeaseRefused::TooManyAtOnce { max: self.limits.max_at_once });
        }
        self.running.insert(agent.clone());
        Ok(Self { depth: self.depth.saturating_add(1), ..Self::top(self.limits) })
    }

    /// A sub-agent has ended, or was refused at the top: its place is free. `false` when it was
    /// not running; so its end counts once, however often it is reported.
    pub fn ended(&mut self, agent: &AgentId) -> bool {
        let was_running = self.running.remove(agent);
        if was_running {
            self.ended.insert(agent.clone());
        }
        was_running
    }
}

/// What a whole tree has used and set aside. Kept by the top session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    limits: AgentLimits,
    /// By agent; `None` is the top session, which is always open.
    members: BTreeMap<Option<AgentId>, Member>,
    turns: u64,
    tokens: Tokens,
}

/// What one agent has set aside for calls under way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Member {
    reserved: Tokens,
    closed: bool,
}

impl Tree {
    /// A tree of a top session alone. On resume, `turns` and `tokens` are what its transcripts,
    /// sidechains included, say was used; else 0.
    pub fn new(limits: AgentLimits, turns: u64, tokens: Tokens) -> Self {
        Self { limits, members: BTreeMap::from([(None, Member::default())]), turns, tokens }
    }

    /// The same sums, under other limits.
    pub fn set_limits(&mut self, limits: AgentLimits) {
        self.limits = limits;
    }

    /// Counts a sub-agent in. It is counted for good, also when it ends at once.
    ///
    /// # Errors
    ///
    /// [`LeaseRefused::TooManyInTree`], [`LeaseRefused::KnownAgent`], or what [`Tree::debit`] would
    /// say to its first call: an agent that could not say a word is not started.
    pub fn admit(&mut self, agent: &AgentId) -> Result<(), LeaseRefused> {
        let key = Some(agent.clone());
        if self.members.contains_key(&key) {
            return Err(LeaseRefused::KnownAgent);
        }
        let n_agents = self.members.len() as u64 - 1;
        if u64::from(self.limits.max_in_tree) <= n_agents {
            return Err(LeaseRefused::TooManyInTree { max: self.limits.max_in_tree });
        }
        self.check(Tokens(1))?;
        self.members.insert(key, Member::default());
        Ok(())
    }

    /// Takes one turn and sets `worst` tokens aside for one model call of `agent` (`None`: the top
    /// session). What was set aside and not settled before adds up. `worst` is the size of the
    /// request with its output ceiling.
    ///
    /// # Errors
    ///
    /// A used-up total, [`LeaseRefused::Reserved`] when only the calls of others stand in the way
    /// (the caller waits for them, within a bound), or [`LeaseRefused::Closed`] for an agent that
    /// was never admitted or has ended. Nothing is taken then.
    pub fn debit(&mut self, agent: Option<&AgentId>, worst: Tokens) -> Result<(), LeaseRefused> {
        if !self.is_open(agent) {
            return Err(LeaseRefused::Closed);
        }
        self.check(worst)?;
        self.turns = self.turns.saturating_add(1);
        let member = self.members.entry(agent.cloned()).or_default();
        member.reserved = member.reserved + worst;
        Ok(())
    }

    /// A call has ended, aborted ones included: gives back what was set aside for it and takes what
    /// it used, even if that is more. What an ended agent used is still counted.
    pub fn settle(&mut self, agent: Option<&AgentId>, worst: Tokens, used: Tokens) {
        self.tokens = self.tokens + used;
        if let Some(member) = self.members.get_mut(&agent.cloned()) {
            member.reserved = member.reserved.saturating_sub(worst);
        }
    }

    /// An agent has ended: gives back what it had set aside and never settled, and says how much.
    /// The second time, and for an unknown agent, that is 0.
    pub fn close(&mut self, agent: &AgentId) -> Tokens {
        match self.members.get_mut(&Some(agent.clone())) {
            Some(member) => {
                member.closed = true;
                std::mem::take(&mut member.reserved)
            }
            None => Tokens(0),
        }
    }

    /// Turns taken by the whole tree.
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// Tokens used by the whole tree, without what is set aside.
    pub fn tokens(&self) -> Tokens {
        self.tokens
    }

    /// Tokens set aside for calls under way.
    pub fn reserved(&self) -> Tokens {
        self.members.values().map(|it| it.reserved).sum()
    }

    fn is_open(&self, agent: Option<&AgentId>) -> bool {
        self.members.get(&agent.cloned()).is_some_and(|it| !it.closed)
    }

    fn check(&self, worst: Tokens) -> Result<(), LeaseRefused> {
        if let Some(max) = self.limits.max_tree_turns
            && max <= self.turns
        {
            return Err(LeaseRefused::TurnsUsedUp { max });
        }
        if let Some(max) = self.limits.max_tree_tokens {
            if max < (self.tokens + worst).0 {
                return Err(LeaseRefused::TokensUsedUp { max, used: self.tokens.0 });
            }
            if max < (self.tokens + self.reserved() + worst).0 {
                return Err(LeaseRefused::Reserved);
            }
        }
        Ok(())
    }
}

/// Why an agent or a call of one was refused. The text is for the model that asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LeaseRefused {
    /// Sub-agents of this depth may not start others.
    #[error("sub-agents may be nested {max} deep and this is the deepest; do the work yourself")]
    TooDeep {
        /// The limit.
        max: u32,
    },
    /// A place comes free when a sub-agent ends.
    #[error("{max} sub-agents are running, which is the limit; wait for one to end and try again")]
    TooManyAtOnce {
        /// The limit.
        max: u32,
    },
    /// Final: agents that have ended count, too.
    #[error("this session has started {max} sub-agents, which is the limit; do the work yourself")]
    TooManyInTree {
        /// The limit.
        max: u32,
    },
    /// Final.
    #[error("all {max} turns of this session and its sub-agents are used; report what you have")]
    TurnsUsedUp {
        /// The limit.
        max: u64,
    },
    /// Final for a call of this size.
    #[error(
        "{used} of {max} tokens of this session and its sub-agents are used and the rest is not \
         enough; report what you have"
    )]
    TokensUsedUp {
        /// The limit.
        max: u64,
        /// Used so far.
        used: u64,
    },
    /// Other calls hold the rest until they end.
    #[error("the remaining tokens are set aside for calls under way; try again when one has ended")]
    Reserved,
    /// The id names an agent that was started before.
    #[error("an agent of this id has been started before")]
    KnownAgent,
    /// The agent has ended or was never admitted.
    #[error("the agent has ended")]
    Closed,
}

impl LeaseRefused {
    /// The code; stable.
    pub fn code(&self) -> &'static str {
        match self {
            LeaseRefused::TooDeep { .. } => "agent_depth",
            LeaseRefused::TooManyAtOnce { .. } => "agents_at_once",
            LeaseRefused::TooManyInTree { .. } => "agents_in_tree",
            LeaseRefused::TurnsUsedUp { .. } => "tree_turns",
            LeaseRefused::TokensUsedUp { .. } => "tree_tokens",
            LeaseRefused::Reserved => "tree_tokens_reserved",
            LeaseRefused::KnownAgent => "agent_known",
            LeaseRefused::Closed => "agent_ended",
        }
    }

    /// Whether the same request can succeed later.
    pub fn is_temporary(&self) -> bool {
        matches!(self, LeaseRefused::TooManyAtOnce { .. } | LeaseRefused::Reserved)
    }
}

#[cfg(test)]
mod tests;
