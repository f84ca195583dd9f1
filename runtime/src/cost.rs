//! What model calls used and cost, kept apart by what came of them.
//!
//! One ledger for a turn, a run, a session or a tree of agents. It is made of the `model_attempt`
//! records alone, so a turn that was interrupted and a session of an earlier process count like any
//! other. What a sub-agent used enters its parent's ledger once, under the sub-agent's id. A call
//! whose price is not known is counted as such; no price is made up for it.

use std::{collections::BTreeMap, ops::Add, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{
    catalogue::{Catalogue, Money},
    ids::AgentId,
    tokens::Usage,
    transcript::entry::{DiscardedAnswer, RecordKind},
};

/// What some model calls used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Account {
    /// Number of calls that were made.
    pub calls: u64,
    /// What the providers reported.
    pub usage: Usage,
    /// What those with a known price cost.
    pub cost: Money,
    /// Calls that used something and whose price is not known.
    pub unpriced: u64,
}

/// What came of a model call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CallKind {
    /// Its answer is part of the conversation.
    Answer,
    /// It failed, or its answer does not count.
    Retry,
    /// It was made for a summary.
    Compaction,
    /// It was made to decide about a call, or for a hook.
    Classification,
    /// It was made to put together what several sub-agents found.
    Synthesis,
}

/// The calls of one model, by what came of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Accounts {
    /// Calls for answers: [`CallKind::Answer`].
    pub answers: Account,
    /// Calls without an answer that counts: [`CallKind::Retry`].
    pub retries: Account,
    /// Calls for summaries: [`CallKind::Compaction`].
    pub compactions: Account,
    /// Calls that decided about calls, and those for hooks: [`CallKind::Classification`].
    #[serde(default)]
    pub classifications: Account,
    /// Calls that make results of tool calls: [`CallKind::Synthesis`].
    #[serde(default)]
    pub syntheses: Account,
}

/// What one agent and those below it used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostLedger {
    /// Of the agent itself, by model; the empty name is the model that is asked first. Boxed,
    /// because a map sets aside room for eleven entries and most agents ask one model.
    models: BTreeMap<Arc<str>, Box<Accounts>>,
    agents: BTreeMap<AgentId, CostLedger>,
}

impl Account {
    /// Returns the account of a single call.
    pub(crate) fn of_call(usage: Usage, cost: Option<Money>) -> Self {
        let is_unpriced = cost.is_none() && usage != Usage::default();
        Self { calls: 1, usage, cost: cost.unwrap_or_default(), unpriced: is_unpriced.into() }
    }

    /// Returns the whole cost; `None` when part of it is not known.
    pub fn known_cost(&self) -> Option<Money> {
        (self.unpriced == 0).then_some(self.cost)
    }
}

impl Account {
    /// Returns the difference, which is nothing where it would be less than that.
    fn less(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_sub(other.calls),
            usage: self.usage - other.usage,
            cost: Money(self.cost.0.saturating_sub(other.cost.0)),
            unpriced: self.unpriced.saturating_sub(other.unpriced),
        }
    }
}

impl Add for Account {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            usage: self.usage + other.usage,
            cost: self.cost + other.cost,
            unpriced: self.unpriced.saturating_add(other.unpriced),
        }
    }
}

impl Accounts {
    /// Returns the sum over all kinds of calls.
    pub fn total(&self) -> Account {
        self.answers + self.retries + self.compactions + self.classifications + self.syntheses
    }

    fn less(self, other: Self) -> Self {
        Self {
            answers: self.answers.less(other.answers),
            retries: self.retries.less(other.retries),
            compactions: self.compactions.less(other.compactions),
            classifications: self.classifications.less(other.classifications),
            syntheses: self.syntheses.less(other.syntheses),
        }
    }

    fn of(&mut self, kind: CallKind) -> &mut Account {
        match kind {
            CallKind::Answer => &mut self.answers,
            CallKind::Retry => &mut self.retries,
            CallKind::Compaction => &mut self.compactions,
            CallKind::Classification => &mut self.classifications,
            CallKind::Synthesis => &mut self.syntheses,
        }
    }
}

impl Add for Accounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            answers: self.answers + other.answers,
            retries: self.retries + other.retries,
            compactions: self.compactions + other.compactions,
            classifications: self.classifications + other.classifications,
            syntheses: self.syntheses + other.syntheses,
        }
    }
}

impl CallKind {
    /// Read off a record.
    fn of(purpose: &str, outcome: &str, unsaid: Option<&DiscardedAnswer>) -> Self {
        match unsaid {
            _ if purpose == "compaction" => Self::Compaction,
            _ if matches!(purpose, "classification" | "hook") => Self::Classification,
            _ if purpose == "synthesis" => Self::Synthesis,
            // The text before a pause is part of the answer.
            Some(unsaid) if unsaid.stop_reason != "pause_turn" => Self::Retry,
            _ if outcome != "ok" => Self::Retry,
            _ => Self::Answer,
        }
    }
}

impl CostLedger {
    /// Counts a record, if it is one of a model call.
    #[doc(hidden)]
    pub fn note(&mut self, what: &RecordKind) {
        if let RecordKind::ModelAttempt { purpose, model, outcome, usage, cost, unsaid, .. } = what
        {
            let kind = CallKind::of(purpose, outcome, unsaid.as_deref());
            // A record names the model where it is not the first of the chain.
            self.count(model.as_deref().unwrap_or_default(), kind, Account::of_call(*usage, *cost));
        }
    }

    /// Counts calls of a model.
    #[doc(hidden)]
    pub fn count(&mut self, model: &str, kind: CallKind, account: Account) {
        let of_model = match self.models.get_mut(model) {
            Some(of_model) => of_model,
            None => self.models.entry(model.into()).or_default(),
        };
        *of_model.of(kind) = *of_model.of(kind) + account;
    }

    /// Counts what a sub-agent used, sub-agents of its own included. Returns `false` when it was counted before; then
    /// nothing changes.
    pub fn enter(&mut self, agent: AgentId, used: Self) -> bool {
        let is_new = !self.agents.contains_key(&agent);
        if is_new {
            self.agents.insert(agent, used);
        }
        is_new
    }

    /// Adds what a sub-agent used to what was counted of it before.
    pub(crate) fn add_agent(&mut self, agent: AgentId, used: &Self) {
        self.agents.entry(agent).or_default().add(used);
    }

    /// Adds what was counted of a sub-agent itself to `counted`, wherever in the tree that is.
    pub(crate) fn add_counted(&self, agent: &AgentId, counted: &mut Self) {
        for (name, ledger) in &self.agents {
            if name == agent {
                counted.add(&Self { models: ledger.models.clone(), agents: BTreeMap::new() });
            }
            ledger.add_counted(agent, counted);
        }
    }

    /// Takes out what was counted before of the agent itself.
    #[must_use]
    pub(crate) fn without(mut self, counted: &Self) -> Self {
        let mut left = Accounts::default();
        for (model, before) in &counted.models {
            let here = self.models.get_mut(model);
            left = left + here.map_or(**before, |here| take_out(here, **before));
        }
        // It may have been counted under another name of its model.
        for here in self.models.values_mut() {
            left = take_out(here, left);
        }
        self
    }

    /// Adds the ledger of something else: of a run to that of its session.
    pub fn add(&mut self, other: &Self) {
        for (model, accounts) in &other.models {
            let sum = self.models.entry(model.clone()).or_default();
            **sum = **sum + **accounts;
        }
        for (agent, used) in &other.agents {
            self.agents.entry(agent.clone()).or_default().add(used);
        }
    }

    /// Sets the name of the model that is asked first, in the agent itself.
    #[must_use]
    pub fn named(mut self, model: &str) -> Self {
        if let Some(accounts) = self.models.remove("") {
            let sum = self.models.entry(model.into()).or_default();
            **sum = **sum + *accounts;
        }
        self
    }

    /// Returns the accounts of the agent itself.
    pub fn own_accounts(&self) -> Accounts {
        self.models.values().fold(Accounts::default(), |sum, it| sum + **it)
    }

    /// Returns the accounts of the agent and all below it.
    pub fn tree(&self) -> Accounts {
        self.agents.values().fold(self.own_accounts(), |sum, it| sum + it.tree())
    }

    /// Adds up the accounts of the agent and all below it, by model.
    pub fn by_model(&self) -> BTreeMap<Arc<str>, Accounts> {
        let mut sums: BTreeMap<_, _> =
            self.models.iter().map(|(model, it)| (Arc::clone(model), **it)).collect();
        for agent in self.agents.values() {
            for (model, accounts) in agent.by_model() {
                let sum = sums.entry(model).or_default();
                *sum = *sum + accounts;
            }
        }
        sums
    }

    /// Estimates what the caches of providers saved, by the prices for short prompts: what the tokens that were read or
    /// written would have cost as plain input, less what they cost. Nothing for a model whose prices are not known, and
    /// nothing where writing cost more than reading saved.
    pub(crate) fn saved_by_caches(&self, models: &Catalogue) -> Money {
        let (mut plain, mut paid) = (Money(0), Money(0));
        for (model, accounts) in self.by_model() {
            let Some(prices) = models.find(&model).and_then(|it| it.prices) else { continue };
            let usage = accounts.total().usage;
            let (read, written) =
                (usage.cache_read_input_tokens, usage.cache_creation_input_tokens);
            let for_an_hour = usage.cache_creation_1h_input_tokens.min(written);
            let cost = |tokens: u64, price: u64| Money(tokens.saturating_mul(price));
            plain = plain + cost(read.saturating_add(written), prices.input);
            paid = paid
                + cost(read, prices.cache_read)
                + cost(written - for_an_hour, prices.cache_write_5m)
                + cost(for_an_hour, prices.cache_write_1h);
        }
        Money(plain.0.saturating_sub(paid.0))
    }

    /// Returns the agents right below it.
    pub fn agents(&self) -> &BTreeMap<AgentId, CostLedger> {
        &self.agents
    }
}

/// Takes accounts out of others. Returns what is not in those.
fn take_out(from: &mut Accounts, accounts: Accounts) -> Accounts {
    let left = accounts.less(*from);
    *from = from.less(accounts);
    left
}

#[cfg(test)]
mod tests;
