//! What a whole tree has used and set aside. Apart from the lease, since it lies at the top alone.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Add,
    time::Duration,
};

use super::{LeaseRefused, Price, Worst};
use crate::{
    catalogue::Money, cost::Account, ids::AgentId, step1_settings_resolution::AgentLimits,
    tokens::Tokens,
};

/// The time in which sub-agents are counted for the rate.
const RATE_WINDOW: Duration = Duration::from_secs(60);

/// The totals of a tree. Kept by the top session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    limits: AgentLimits,
    /// By agent; `None` is the top session, which is always open.
    members: BTreeMap<Option<AgentId>, Member>,
    turns: u64,
    spent: Spent,
    /// The time that runs of the top session took; sub-agents work in no other.
    worked: Duration,
    /// When sub-agents were started, within the last minute.
    started: VecDeque<Duration>,
}

/// What model calls used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Of all kinds.
    pub tokens: Tokens,
    /// What those of known price cost.
    pub money: Money,
    /// Calls that used something and whose price is not known.
    pub unpriced: u64,
}

/// What one agent has set aside for the turn that it is at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Member {
    tokens: Tokens,
    money: Money,
    closed: bool,
}

impl Add for Spent {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            tokens: self.tokens + other.tokens,
            money: self.money + other.money,
            unpriced: self.unpriced.saturating_add(other.unpriced),
        }
    }
}

impl From<Account> for Spent {
    fn from(account: Account) -> Self {
        let Account { usage, cost, unpriced, .. } = account;
        Self { tokens: usage.total(), money: cost, unpriced }
    }
}

impl Spent {
    /// What came on top of `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_sub(before.tokens),
            money: Money(self.money.0.saturating_sub(before.money.0)),
            unpriced: self.unpriced.saturating_sub(before.unpriced),
        }
    }
}

impl Tree {
    /// The tree of a top session alone that has used nothing.
    pub fn new(limits: AgentLimits) -> Self {
        Self {
            limits,
            members: BTreeMap::from([(None, Member::default())]),
            turns: 0,
            spent: Spent::default(),
            worked: Duration::ZERO,
            started: VecDeque::new(),
        }
    }

    /// Takes in what an earlier process used for an agent (`None`: the top session), by its
    /// transcript. The agent is counted, and over.
    pub fn resume(&mut self, agent: Option<&AgentId>, turns: u64, spent: Spent) {
        if agent.is_some() {
            let ended = Member { closed: true, ..Member::default() };
            self.members.insert(agent.cloned(), ended);
        }
        self.turns = self.turns.saturating_add(turns);
        self.spent = self.spent + spent;
    }

    /// The same sums, under other limits.
    pub fn set_limits(&mut self, limits: AgentLimits) {
        self.limits = limits;
    }

    /// Counts a sub-agent in. It is counted for good, also when it ends at once.
    ///
    /// # Errors
    ///
    /// [`LeaseRefused::TooManyInTree`], [`LeaseRefused::TooFast`], [`LeaseRefused::KnownAgent`], or
    /// what [`Tree::debit`] would say to its first call: an agent that could not say a word is not
    /// started.
    pub fn admit(&mut self, agent: &AgentId, now: Duration) -> Result<(), LeaseRefused> {
        let key = Some(agent.clone());
        if self.members.contains_key(&key) {
            return Err(LeaseRefused::KnownAgent);
        }
        let n_agents = self.members.len() as u64 - 1;
        if u64::from(self.limits.max_in_tree) <= n_agents {
            return Err(LeaseRefused::TooManyInTree { max: self.limits.max_in_tree });
        }
        self.check(None, 1, Tokens(1), Ok(Money(1)))?;
        self.check_rate(now)?;
        self.started.push_back(now);
        self.members.insert(key, Member::default());
        Ok(())
    }

    /// Takes one turn and sets `worst` aside for the model calls of `agent` (`None`: the top
    /// session) in it. An agent is at one turn: what it had set aside before is given back.
    ///
    /// # Errors
    ///
    /// A used-up total, [`LeaseRefused::NoPrice`], [`LeaseRefused::Reserved`] when only the calls of
    /// others stand in the way (the caller waits for them, within a bound), or
    /// [`LeaseRefused::Closed`] for an agent that was never admitted or has ended. Nothing is taken
    /// then.
    pub fn debit(&mut self, agent: Option<&AgentId>, worst: &Worst) -> Result<(), LeaseRefused> {
        self.set_aside(agent, 1, worst)
    }

    /// The same for a turn that was taken before its worst case was known.
    ///
    /// # Errors
    ///
    /// As [`Tree::debit`].
    pub fn reserve(&mut self, agent: Option<&AgentId>, worst: &Worst) -> Result<(), LeaseRefused> {
        self.set_aside(agent, 0, worst)
    }

    /// Model calls have ended, aborted ones included: takes what they used and gives back what the
    /// agent had set aside. What an ended agent used is still counted.
    pub fn settle(&mut self, agent: Option<&AgentId>, used: Spent) {
        self.spent = self.spent + used;
        self.give_back(agent);
    }

    /// An agent has ended: gives back what it had set aside and never settled.
    pub fn close(&mut self, agent: &AgentId) {
        self.give_back(Some(agent));
        if let Some(member) = self.members.get_mut(&Some(agent.clone())) {
            member.closed = true;
        }
    }

    /// A run of the top session took so long.
    pub fn add_time(&mut self, took: Duration) {
        self.worked = self.worked.saturating_add(took);
    }

    /// How long the next run of the top session may take; `None` means no limit.
    pub fn time_left(&self) -> Option<Duration> {
        let max = self.limits.max_tree_seconds.map(Duration::from_secs)?;
        Some(max.saturating_sub(self.worked))
    }

    /// Turns taken by the whole tree.
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// Used by the whole tree, without what is set aside.
    pub fn spent(&self) -> Spent {
        self.spent
    }

    /// Set aside for calls under way.
    pub fn reserved(&self) -> (Tokens, Money) {
        let members = self.members.values();
        (members.clone().map(|it| it.tokens).sum(), members.map(|it| it.money).sum())
    }

    fn set_aside(
        &mut self,
        agent: Option<&AgentId>,
        turns: u64,
        worst: &Worst,
    ) -> Result<(), LeaseRefused> {
        let key = agent.cloned();
        if self.members.get(&key).is_none_or(|it| it.closed) {
            return Err(LeaseRefused::Closed);
        }
        let price = match &worst.price {
            Price::Known(money) => Ok(*money),
            Price::Unknown(model) => Err(LeaseRefused::NoPrice { model: model.clone() }),
        };
        let money = price.as_ref().copied().unwrap_or_default();
        self.check(Some(&key), turns, worst.tokens, price)?;
        self.turns = self.turns.saturating_add(turns);
        let member = self.members.entry(key).or_default();
        (member.tokens, member.money) = (worst.tokens, money);
        Ok(())
    }

    fn give_back(&mut self, agent: Option<&AgentId>) {
        if let Some(member) = self.members.get_mut(&agent.cloned()) {
            (member.tokens, member.money) = (Tokens(0), Money(0));
        }
    }

    /// Whether so much can be set aside by `asks`, who is in the way of nobody but others.
    fn check(
        &self,
        asks: Option<&Option<AgentId>>,
        turns: u64,
        tokens: Tokens,
        money: Result<Money, LeaseRefused>,
    ) -> Result<(), LeaseRefused> {
        let limits = &self.limits;
        if let Some(max) = limits.max_tree_turns
            && max < self.turns.saturating_add(turns)
        {
            return Err(LeaseRefused::TurnsUsedUp { max });
        }
        if self.time_left() == Some(Duration::ZERO) {
            return Err(LeaseRefused::TimeUsedUp);
        }
        let others = || self.members.iter().filter(|(who, _)| Some(*who) != asks);
        let mut waits = false;
        if let Some(max) = limits.max_tree_tokens {
            let sum = self.spent.tokens + tokens;
            if max < sum.0 {
                return Err(LeaseRefused::TokensUsedUp { max, used: self.spent.tokens.0 });
            }
            waits |= max < (sum + others().map(|it| it.1.tokens).sum()).0;
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
            waits |= max < sum + others().map(|it| it.1.money).sum();
        }
        if waits { Err(LeaseRefused::Reserved) } else { Ok(()) }
    }

    /// Forgets who was started more than a minute ago, and looks at the others.
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
