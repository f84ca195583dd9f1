//! What a tree of agents may still use.
//!
//! Two values, because two places decide. A [`Lease`] belongs to one session and is narrowed from
//! parent to child: how deep it lies, how many sub-agents it runs at once, and when it is to end.
//! The [`Tree`] belongs to the top session and holds the totals that all share: agents ever
//! started and how fast, turns, tokens, money and time. A descendant asks for its share of the
//! totals by message; there is no shared memory.
//!
//! To start a sub-agent: [`Lease::child`] where it is wanted, then [`Tree::admit`] at the top; when
//! the second refuses, `Lease::mark_ended` takes the first back. Before each model call, where totals
//! are limited: `Tree::debit` or [`Tree::reserve`] for its worst case; after each call:
//! [`Tree::settle`] with what was used. A call that was sent and of which it stays unknown what it
//! used counts with its worst case. When the sub-agent has ended: `Lease::mark_ended` at its parent and
//! [`Tree::close`] at the top.
//!
//! Time is what a clock that never goes back showed, read by the one that asks.

mod limit_use;
mod max_cost;
mod refused;
mod spent;
mod tree;

use std::{collections::BTreeSet, time::Duration};

pub(crate) use self::limit_use::LimitUse;
pub use self::{
    max_cost::{MaxCost, Price},
    refused::LeaseRefused,
    spent::Spent,
    tree::Tree,
};
use crate::{ids::AgentId, step1_settings_resolution::AgentLimits};

/// What one session may start, and until when. Narrowed from its parent's, never widened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    limits: AgentLimits,
    depth: u32,
    /// A reading of the clock.
    ends: Option<Duration>,
    running: BTreeSet<AgentId>,
    ended: BTreeSet<AgentId>,
}

impl Lease {
    /// Makes the lease of a top session: depth 0, without end.
    pub(crate) fn top(limits: AgentLimits) -> Self {
        let (running, ended) = (BTreeSet::new(), BTreeSet::new());
        Self { limits, depth: 0, ends: None, running, ended }
    }

    /// Replaces the limits. Places that are taken stay taken.
    pub(crate) fn set_limits(&mut self, limits: AgentLimits) {
        self.limits = limits;
    }

    /// Sets when the run of a top session is to end: a reading of the clock, `None` for no end. It applies to
    /// sub-agents that are started from now on.
    pub(crate) fn set_end(&mut self, ends: Option<Duration>) {
        self.ends = ends;
    }

    /// Returns when the session is to end.
    pub(crate) fn ends(&self) -> Option<Duration> {
        self.ends
    }

    /// Counts the generations between this session and the top.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Counts the sub-agents of this session that have not ended.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Returns whether a sub-agent of this session could ever be started. If not, the Agent tool is not offered.
    pub fn allows_nesting(&self) -> bool {
        self.depth < self.limits.max_depth && 0 < self.limits.max_at_once
    }

    /// Takes a place for a sub-agent and gives its lease: one deeper, with the same limits, and an
    /// end that is no later. The place is taken until `Lease::mark_ended`.
    ///
    /// # Errors
    ///
    /// [`LeaseRefused::TooDeep`], [`LeaseRefused::TooManyAtOnce`], [`LeaseRefused::TimeUsedUp`], or
    /// [`LeaseRefused::KnownAgent`] when the id was used before. Nothing is taken then.
    pub fn child(&mut self, agent: &AgentId, now: Duration) -> Result<Lease, LeaseRefused> {
        if self.ended.contains(agent) {
            return Err(LeaseRefused::KnownAgent);
        }
        self.child_again(agent, now)
    }

    /// Takes a place for a sub-agent that may have ended before, and gives its lease as [`Lease::child`] does.
    ///
    /// # Errors
    ///
    /// As [`Lease::child`]; [`LeaseRefused::KnownAgent`] for one that has not ended.
    pub(crate) fn child_again(
        &mut self,
        agent: &AgentId,
        now: Duration,
    ) -> Result<Lease, LeaseRefused> {
        if self.limits.max_depth <= self.depth {
            return Err(LeaseRefused::TooDeep { max: self.limits.max_depth });
        }
        if self.running.contains(agent) {
            return Err(LeaseRefused::KnownAgent);
        }
        if u64::from(self.limits.max_at_once) <= self.running.len() as u64 {
            return Err(LeaseRefused::TooManyAtOnce { max: self.limits.max_at_once });
        }
        if self.ends.is_some_and(|it| it <= now) {
            return Err(LeaseRefused::TimeUsedUp);
        }
        self.ended.remove(agent);
        self.running.insert(agent.clone());
        let own =
            self.limits.max_agent_seconds.map(|it| now.saturating_add(Duration::from_secs(it)));
        // An end that is not given is not earlier than another.
        let ends = self.ends.into_iter().chain(own).min();
        Ok(Self { depth: self.depth.saturating_add(1), ends, ..Self::top(self.limits) })
    }

    /// Frees the place of a sub-agent that has ended, or was refused at the top. Returns `false` when it was not
    /// running; so its end counts once, however often it is reported.
    pub(crate) fn mark_ended(&mut self, agent: &AgentId) -> bool {
        let was_running = self.running.remove(agent);
        if was_running {
            self.ended.insert(agent.clone());
        }
        was_running
    }
}

#[cfg(test)]
mod tests;
