//! What a whole tree has used and set aside. Only the session at the top of a tree holds it.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use super::{LeaseRefused, LimitUse, MaxCost, Price, spent::Spent};
use crate::{
    catalogue::Money, ids::AgentId, step1_settings_resolution::AgentLimits, tokens::Tokens,
};

/// The time in which sub-agents are counted for the rate.
const RATE_WINDOW: Duration = Duration::from_secs(60);

/// The totals of a tree. Kept by the top session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    limits: AgentLimits,
    /// By agent; `None` is the top session, which is always open.
    members: BTreeMap<Option<AgentId>, Member>,
    spent: Spent,
    /// The time that runs of the top session took; sub-agents work in no other.
    worked: Duration,
    /// When sub-agents were started, within the last minute; in order, and counted from a
    /// [`RATE_WINDOW`] before the clock began, since some of them may have been started by then.
    started: VecDeque<Duration>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Member {
    /// Who started it; `None` is the top session.
    parent: Option<AgentId>,
    /// Reserved for the model call in flight; includes one turn if this is the turn's first call.
    reserved: Spent,
    closed: bool,
}

impl Tree {
    /// Makes the tree of a top session alone that has used nothing.
    pub fn new(limits: AgentLimits) -> Self {
        Self {
            limits,
            members: BTreeMap::from([(None, Member::default())]),
            spent: Spent::default(),
            worked: Duration::ZERO,
            started: VecDeque::new(),
        }
    }

    /// Counts what an earlier process used for an agent (`None`: the top session), by its transcript. The agent is
    /// counted, and over.
    pub fn resume(&mut self, agent: Option<&AgentId>, spent: Spent) {
        if agent.is_some() {
            let ended = Member { closed: true, ..Member::default() };
            self.members.insert(agent.cloned(), ended);
        }
        self.spent = self.spent + spent;
    }

    /// Counts sub-agents that an earlier process started, by how long ago that was, in any order.
    pub(crate) fn resume_rate(&mut self, now: Duration, ages: impl IntoIterator<Item = Duration>) {
        let now = now.saturating_add(RATE_WINDOW);
        self.started.extend(ages.into_iter().filter_map(|it| now.checked_sub(it)));
        self.started.make_contiguous().sort_unstable();
    }

    /// Replaces the limits. What was used stays counted.
    pub(crate) fn set_limits(&mut self, limits: AgentLimits) {
        self.limits = limits;
    }

    /// Counts a sub-agent in. It is counted for good, also when it ends at once.
    ///
    /// # Errors
    ///
    /// [`LeaseRefused::TooManyInTree`], [`LeaseRefused::TooFast`], [`LeaseRefused::KnownAgent`], or
    /// what `Tree::debit` would say to its first call: an agent that could not say a word is not
    /// started.
    pub fn admit(
        &mut self,
        agent: &AgentId,
        parent: Option<&AgentId>,
        now: Duration,
    ) -> Result<(), LeaseRefused> {
        let key = Some(agent.clone());
        if self.members.contains_key(&key) {
            return Err(LeaseRefused::KnownAgent);
        }
        let n_agents = self.members.len() as u64 - 1;
        if u64::from(self.limits.max_in_tree) <= n_agents {
            return Err(LeaseRefused::TooManyInTree { max: self.limits.max_in_tree });
        }
        self.begin(key, parent, now)
    }

    /// Counts a sub-agent in again that has ended and goes on. It is one of the tree already, and counts for the rate.
    ///
    /// # Errors
    ///
    /// As `Tree::admit`; [`LeaseRefused::KnownAgent`] for one that has not ended.
    pub(crate) fn admit_again(
        &mut self,
        agent: &AgentId,
        parent: Option<&AgentId>,
        now: Duration,
    ) -> Result<(), LeaseRefused> {
        if self.is_open(Some(agent)) {
            return Err(LeaseRefused::KnownAgent);
        }
        self.begin(Some(agent.clone()), parent, now)
    }

    fn begin(
        &mut self,
        key: Option<AgentId>,
        parent: Option<&AgentId>,
        now: Duration,
    ) -> Result<(), LeaseRefused> {
        self.check(None, 1, Tokens(1), Ok(Money(1)))?;
        let now = now.saturating_add(RATE_WINDOW);
        self.check_rate(now)?;
        self.started.push_back(now);
        self.members.insert(key, Member { parent: parent.cloned(), ..Member::default() });
        Ok(())
    }

    /// Sets one turn of `agent` (`None`: the top session) aside, and `max_cost` for its first model
    /// call. An agent is at one call: what it had set aside before is given back.
    ///
    /// # Errors
    ///
    /// A used-up total, [`LeaseRefused::NoPrice`], [`LeaseRefused::Reserved`] when only the calls of
    /// others are in the way (the caller waits for them, within a bound), or
    /// [`LeaseRefused::Closed`] for an agent that was never admitted or has ended. Nothing is taken
    /// then.
    pub(crate) fn debit(
        &mut self,
        agent: Option<&AgentId>,
        max_cost: &MaxCost,
    ) -> Result<(), LeaseRefused> {
        self.set_aside(agent, 1, max_cost)
    }

    /// Reserves the most that a further model call of a turn can cost.
    ///
    /// # Errors
    ///
    /// As `Tree::debit`.
    pub fn reserve(
        &mut self,
        agent: Option<&AgentId>,
        max_cost: &MaxCost,
    ) -> Result<(), LeaseRefused> {
        self.set_aside(agent, 0, max_cost)
    }

    /// Settles the model calls that ended: takes what they used, the turns they were made in included, and gives back
    /// what the agent had set aside. What an ended agent used is still counted.
    pub fn settle(&mut self, agent: Option<&AgentId>, used: Spent) {
        self.spent = self.spent + used;
        if let Some(member) = self.members.get_mut(&agent.cloned()) {
            member.reserved = Spent::default();
        }
    }

    /// Ends an agent and all below it. What they had set aside and never settled counts as used, since they crashed and
    /// their usage stays unknown.
    pub fn close(&mut self, agent: &AgentId) {
        if let Some(member) = self.members.get_mut(&Some(agent.clone())) {
            member.closed = true;
            self.spent = self.spent + std::mem::take(&mut member.reserved);
        }
        let is_below = |it: &Member| !it.closed && it.parent.as_ref() == Some(agent);
        let below = self.members.iter().filter(|it| is_below(it.1));
        let below: Vec<_> = below.filter_map(|(who, _)| who.clone()).collect();
        below.iter().for_each(|it| self.close(it));
    }

    /// Returns whether this agent can still ask.
    pub(crate) fn is_open(&self, agent: Option<&AgentId>) -> bool {
        self.members.get(&agent.cloned()).is_some_and(|it| !it.closed)
    }

    /// Adds the time that a run of the top session took.
    pub(crate) fn add_time(&mut self, took: Duration) {
        self.worked = self.worked.saturating_add(took);
    }

    /// Returns how long the next run of the top session may take; `None` means no limit.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        let max = self.limits.max_tree_seconds.map(Duration::from_secs)?;
        Some(max.saturating_sub(self.worked))
    }

    /// Returns how much of its limits the tree has used.
    pub(crate) fn limits_used(&self) -> Vec<LimitUse> {
        let limits = &self.limits;
        let n_agents = self.members.len() as u64 - 1;
        let micro_usd = self.spent.money.micro_usd();
        let all = [
            ("sub-agents of the tree", n_agents, Some(limits.max_in_tree.into())),
            ("turns of the tree", self.spent.turns, limits.max_tree_turns),
            ("tokens of the tree", self.spent.tokens.0, limits.max_tree_tokens),
            ("millionths of a dollar of the tree", micro_usd, limits.max_tree_micro_usd),
            ("seconds of the tree", self.worked.as_secs(), limits.max_tree_seconds),
        ];
        let limit = |(of, used, max): (_, _, Option<u64>)| Some(LimitUse { of, used, max: max? });
        all.into_iter().filter_map(limit).collect()
    }

    /// Returns what the whole tree has used, without what is set aside.
    pub fn spent(&self) -> Spent {
        self.spent
    }

    /// Returns the tokens and the money that are reserved for calls in flight.
    #[cfg(test)]
    pub(crate) fn reserved(&self) -> (Tokens, Money) {
        let reserved = self.reserved_of(|_| true);
        (reserved.tokens, reserved.money)
    }

    fn set_aside(
        &mut self,
        agent: Option<&AgentId>,
        turns: u64,
        max_cost: &MaxCost,
    ) -> Result<(), LeaseRefused> {
        if !self.is_open(agent) {
            return Err(LeaseRefused::Closed);
        }
        let key = agent.cloned();
        let price = match &max_cost.price {
            Price::Known(money) => Ok(*money),
            Price::Unknown(model) => Err(LeaseRefused::NoPrice { model: model.clone() }),
        };
        let money = price.as_ref().copied().unwrap_or_default();
        self.check(Some(&key), turns, max_cost.tokens, price)?;
        self.members.entry(key).or_default().reserved =
            Spent { turns, tokens: max_cost.tokens, money, unpriced: 0 };
        Ok(())
    }

    fn reserved_of(&self, is_meant: impl Fn(&Option<AgentId>) -> bool) -> Spent {
        let members = self.members.iter().filter(|it| is_meant(it.0));
        members.fold(Spent::default(), |sum, it| sum + it.1.reserved)
    }

    /// Whether this much can be set aside for `asks`, whose own reservation does not count against it.
    fn check(
        &self,
        asks: Option<&Option<AgentId>>,
        turns: u64,
        tokens: Tokens,
        money: Result<Money, LeaseRefused>,
    ) -> Result<(), LeaseRefused> {
        let limits = &self.limits;
        let others = self.reserved_of(|it| asks != Some(it));
        // A turn that is set aside is taken, whatever becomes of its calls.
        if let Some(max) = limits.max_tree_turns
            && max < self.spent.turns.saturating_add(others.turns).saturating_add(turns)
        {
            return Err(LeaseRefused::TurnsUsedUp { max });
        }
        if self.time_left() == Some(Duration::ZERO) {
            return Err(LeaseRefused::TimeUsedUp);
        }
        let mut waits = false;
        if let Some(max) = limits.max_tree_tokens {
            let sum = self.spent.tokens + tokens;
            if max < sum.0 {
                return Err(LeaseRefused::TokensUsedUp { max, used: self.spent.tokens.0 });
            }
            waits |= max < (sum + others.tokens).0;
        }
        if let Some(max) = limits.max_tree_micro_usd.map(Money::of_micro_usd) {
            let Spent { money: used, unpriced: calls, .. } = self.spent;
            if 0 < calls {
                return Err(LeaseRefused::CostUnknown { calls });
            }
            let sum = used + money?;
            if max < sum {
                return Err(LeaseRefused::MoneyUsedUp { max, used });
            }
            waits |= max < sum + others.money;
        }
        if waits { Err(LeaseRefused::Reserved) } else { Ok(()) }
    }

    /// Forgets who was started more than a minute ago, and looks at the others. `now` as they are.
    fn check_rate(&mut self, now: Duration) -> Result<(), LeaseRefused> {
        let ages = |it: &Duration| now.saturating_sub(*it);
        while self.started.front().is_some_and(|it| RATE_WINDOW <= ages(it)) {
            self.started.pop_front();
        }
        let max = self.limits.max_per_minute.get();
        let n_over = (self.started.len() as u64).checked_sub(u64::from(max));
        // One more may start when those are forgotten that are too many, and one with them.
        let Some(frees) = n_over.and_then(|it| self.started.get(usize::try_from(it).ok()?)) else {
            return Ok(());
        };
        let wait = RATE_WINDOW.saturating_sub(ages(frees));
        let wait_s = wait.as_secs() + u64::from(0 < wait.subsec_nanos());
        Err(LeaseRefused::TooFast { max, wait_s })
    }
}
