//! Deficit round robin: tenants take turns, and a turn is an amount of tokens.
//!
//! After Shreedhar and Varghese (1995). A tenant with a thousand calls waiting is one tenant: each
//! turn it may send calls for one quantum, and what it does not use up is kept while it has more
//! waiting. Within a tenant the order is kept.

use std::collections::{BTreeMap, VecDeque};

use super::{Tenant, Ticket};

/// A call that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueuedCall {
    /// Ticket of the call that waits.
    pub ticket: Ticket,
    /// What it costs, in tokens.
    pub cost: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Lane {
    waiting: VecDeque<QueuedCall>,
    deficit: u64,
}

/// Calls of all tenants that wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FairQueue {
    quantum: u64,
    /// Only of tenants that have something waiting.
    lanes: BTreeMap<Tenant, Lane>,
    /// Whose turn it is, in front.
    round: VecDeque<Tenant>,
    /// Whether who is in front has had the quantum of this turn.
    has_begun: bool,
}

impl FairQueue {
    /// Makes an empty queue. `quantum` is what a turn is worth, in tokens.
    pub(crate) fn new(quantum: u64) -> Self {
        let (lanes, round) = (BTreeMap::new(), VecDeque::new());
        Self { quantum: quantum.max(1), lanes, round, has_begun: false }
    }

    /// Returns whether no call waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// Queues a call after the others of its tenant.
    pub(crate) fn push(&mut self, tenant: &Tenant, ticket: Ticket, cost: u64) {
        let lane = self.lanes.entry(tenant.clone()).or_default();
        if lane.waiting.is_empty() {
            self.round.push_back(tenant.clone());
        }
        lane.waiting.push_back(QueuedCall { ticket, cost: cost.max(1) });
    }

    /// Returns the call whose turn it is. It stays where it is until [`FairQueue::take`].
    pub(crate) fn first(&mut self) -> Option<(Tenant, QueuedCall)> {
        loop {
            let tenant = self.round.front()?;
            let lane = self.lanes.get_mut(tenant)?;
            let front = *lane.waiting.front()?;
            if !std::mem::replace(&mut self.has_begun, true) {
                lane.deficit = lane.deficit.saturating_add(self.quantum);
            }
            if self.round.len() == 1 {
                // Alone, rounds pass without anybody waiting for them.
                lane.deficit = lane.deficit.max(front.cost);
            }
            if front.cost <= lane.deficit {
                return Some((tenant.clone(), front));
            }
            self.round.rotate_left(1);
            self.has_begun = false;
        }
    }

    /// Returns the first call of each tenant, in the order of turns.
    pub(crate) fn heads(&self) -> impl Iterator<Item = (&Tenant, QueuedCall)> {
        self.round.iter().filter_map(|tenant| {
            let lane = self.lanes.get(tenant)?;
            Some((tenant, *lane.waiting.front()?))
        })
    }

    /// Takes a call out, to be sent: its tenant is charged.
    pub(crate) fn take(&mut self, tenant: &Tenant, ticket: Ticket) {
        self.take_out(tenant, ticket, true);
    }

    /// Takes a call out that is given up.
    pub(crate) fn remove(&mut self, tenant: &Tenant, ticket: Ticket) {
        self.take_out(tenant, ticket, false);
    }

    fn take_out(&mut self, tenant: &Tenant, ticket: Ticket, charged: bool) {
        let Some(lane) = self.lanes.get_mut(tenant) else { return };
        let Some(at) = lane.waiting.iter().position(|it| it.ticket == ticket) else { return };
        if let Some(call) = lane.waiting.remove(at)
            && charged
        {
            lane.deficit = lane.deficit.saturating_sub(call.cost);
        }
        if lane.waiting.is_empty() {
            // Nothing is saved up by who wants nothing.
            self.lanes.remove(tenant);
            self.has_begun &= self.round.front() != Some(tenant);
            self.round.retain(|it| it != tenant);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn drain(queue: &mut FairQueue) -> Vec<(String, u64)> {
        std::iter::from_fn(|| {
            let (tenant, call) = queue.first()?;
            queue.take(&tenant, call.ticket);
            Some((tenant.as_str().to_owned(), call.cost))
        })
        .collect()
    }

    // REQ: RUN-4, MDL-13
    #[test]
    fn tenants_take_turns_whoever_came_first() {
        let mut queue = FairQueue::new(10);
        for ticket in 0..6 {
            queue.push(&"noisy".into(), Ticket(ticket), 10);
        }
        queue.push(&"quiet".into(), Ticket(6), 10);
        queue.push(&"quiet".into(), Ticket(7), 10);
        let order: Vec<String> = drain(&mut queue).into_iter().map(|it| it.0).collect();
        let (noisy, quiet) = ("noisy", "quiet");
        assert_eq!(order, [noisy, quiet, noisy, quiet, noisy, noisy, noisy, noisy]);
    }

    #[test]
    fn one_that_is_taken_out_leaves_the_others_in_order() {
        let mut queue = FairQueue::new(10);
        (0..3).for_each(|it| queue.push(&"a".into(), Ticket(it), 1));
        queue.remove(&"a".into(), Ticket(1));
        queue.remove(&"nobody".into(), Ticket(9));
        let left: Vec<u64> = std::iter::from_fn(|| {
            let (tenant, call) = queue.first()?;
            queue.take(&tenant, call.ticket);
            Some(call.ticket.0)
        })
        .collect();
        assert_eq!(left, [0, 2]);
        assert!(queue.is_empty());
    }

    proptest! {
        // REQ: RUN-4
        #[test]
        fn while_two_wait_none_is_ahead_by_more_than_two_quanta_and_a_call(
            costs in prop::collection::vec((0_u8..3, 1_u64..5_000), 2..200),
            quantum in 1_u64..4_000,
        ) {
            let mut queue = FairQueue::new(quantum);
            for (i, (tenant, cost)) in costs.iter().enumerate() {
                queue.push(&format!("t{tenant}").as_str().into(), Ticket(i as u64), *cost);
            }
            let mut left: BTreeMap<String, usize> = BTreeMap::new();
            for (tenant, _) in &costs {
                *left.entry(format!("t{tenant}")).or_default() += 1;
            }
            let dearest = costs.iter().map(|it| it.1).max().unwrap_or(0);
            let mut sent: BTreeMap<String, u64> = BTreeMap::new();
            let mut n = 0;
            for (tenant, cost) in drain(&mut queue) {
                n += 1;
                // All that are compared have had something waiting from the start until now.
                *sent.entry(tenant.clone()).or_default() += cost;
                let amounts: Vec<u64> = left
                    .iter()
                    .filter(|(_, left)| 0 < **left)
                    .map(|(it, _)| sent.get(it).copied().unwrap_or(0))
                    .collect();
                let spread = amounts.iter().max().unwrap_or(&0) - amounts.iter().min().unwrap_or(&0);
                prop_assert!(spread <= 2 * quantum + 2 * dearest, "{amounts:?}");
                *left.entry(tenant).or_default() -= 1;
            }
            prop_assert_eq!(n, costs.len());
        }
    }
}
