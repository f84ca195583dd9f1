//! Deficit round robin between tenants for runs whose cost is known only when they have ended.
//!
//! A run costs its turns. A tenant whose runs took many turns waits for as many rounds as it owes; one whose
//! runs are small gets more of them. So tenants share turns, and not runs. The queue of the governor
//! (`governor/fair_queue.rs`) knows the cost of a call before it is sent, so nothing is owed there.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::ids::TenantId;

/// Turns that a tenant is given in a round.
const QUANTUM: i64 = 8;

/// Turns that a tenant can owe at most, 16 rounds, so that a long run is forgiven in the end.
const MAX_DEBT: i64 = 16 * QUANTUM;

/// Names a run that waits. Later runs have larger tickets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunTicket(u64);

/// Decides which run begins next, where only a limited number may be under way.
#[derive(Debug)]
pub struct FairTurns {
    free: usize,
    max_of_tenant: usize,
    lanes: BTreeMap<TenantId, TenantLane>,
    /// Tenants whose runs may wait, in the order of the round.
    round: VecDeque<TenantId>,
    n_tickets: u64,
    n_waiting: usize,
}

/// The runs of a tenant.
#[derive(Debug, Default)]
struct TenantLane {
    running: usize,
    /// In order: the first came first.
    waiting: BTreeSet<RunTicket>,
    /// Turns that it may take before it has to wait for the next round.
    credit: i64,
    /// Whether the round holds the tenant.
    is_in_round: bool,
}

impl FairTurns {
    /// Returns an empty round for `max` runs at once, of which one tenant has at most `max_of_tenant`.
    pub fn new(max: usize, max_of_tenant: usize) -> Self {
        let (lanes, round) = (BTreeMap::new(), VecDeque::new());
        Self { free: max, max_of_tenant, lanes, round, n_tickets: 0, n_waiting: 0 }
    }

    /// Queues a run after the others of its tenant.
    pub fn enter(&mut self, tenant: &TenantId) -> RunTicket {
        let ticket = RunTicket(self.n_tickets);
        self.n_tickets += 1;
        self.n_waiting += 1;
        let lane = self.lanes.entry(tenant.clone()).or_default();
        lane.waiting.insert(ticket);
        if !std::mem::replace(&mut lane.is_in_round, true) {
            self.round.push_back(tenant.clone());
        }
        ticket
    }

    /// Takes out a run that waits no more. Does nothing for one that has begun.
    pub fn give_up(&mut self, tenant: &TenantId, ticket: RunTicket) {
        let Some(lane) = self.lanes.get_mut(tenant) else { return };
        self.n_waiting -= usize::from(lane.waiting.remove(&ticket));
    }

    /// Begins the next run, and returns it with its tenant; `None` when none may begin now.
    pub fn begin_next(&mut self) -> Option<(TenantId, RunTicket)> {
        if self.free == 0 {
            return None;
        }
        // A round ends when no tenant that could run has credit left; each lessens what is owed, which is
        // bounded.
        loop {
            let mut owing = Vec::new();
            for _ in 0..self.round.len() {
                let tenant = self.round.pop_front()?;
                let lane = self.lanes.entry(tenant.clone()).or_default();
                if lane.waiting.is_empty() {
                    lane.is_in_round = false;
                    self.forget(&tenant);
                    continue;
                }
                let can_run = lane.running < self.max_of_tenant;
                self.round.push_back(tenant.clone());
                if can_run && lane.credit <= 0 {
                    owing.push(tenant);
                } else if can_run && let Some(ticket) = lane.waiting.pop_first() {
                    lane.running += 1;
                    self.free -= 1;
                    self.n_waiting -= 1;
                    return Some((tenant, ticket));
                }
            }
            if owing.is_empty() {
                return None;
            }
            for tenant in owing {
                if let Some(lane) = self.lanes.get_mut(&tenant) {
                    lane.credit += QUANTUM;
                }
            }
        }
    }

    /// Takes note that a run of the tenant has ended after this number of turns.
    pub fn end(&mut self, tenant: &TenantId, turns: u32) {
        self.free += 1;
        if let Some(lane) = self.lanes.get_mut(tenant) {
            lane.running = lane.running.saturating_sub(1);
            lane.credit = (lane.credit - i64::from(turns)).max(-MAX_DEBT);
        }
        self.forget(tenant);
    }

    /// Returns how many runs wait.
    pub fn n_waiting(&self) -> usize {
        self.n_waiting
    }

    /// A tenant without runs keeps no place; what it owes it keeps until it is at work again.
    fn forget(&mut self, tenant: &TenantId) {
        let is_even = |it: &TenantLane| it.running == 0 && !it.is_in_round && 0 <= it.credit;
        if self.lanes.get(tenant).is_some_and(is_even) {
            self.lanes.remove(tenant);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: RUN-4
    #[test]
    fn tenants_share_turns_and_not_runs() {
        let mut turns = FairTurns::new(1, 1);
        let (big, small) = (TenantId::from("big"), TenantId::from("small"));
        for _ in 0..200 {
            turns.enter(&big);
            turns.enter(&small);
        }
        let (mut turns_of_big, mut turns_of_small) = (0, 0);
        for _ in 0..150 {
            let (tenant, _) = turns.begin_next().unwrap();
            assert_eq!(turns.begin_next(), None, "one at a time");
            let (n, sum) =
                if tenant == big { (20, &mut turns_of_big) } else { (2, &mut turns_of_small) };
            *sum += n;
            turns.end(&tenant, n);
        }
        let share = f64::from(turns_of_big) / f64::from(turns_of_big + turns_of_small);
        assert!((0.4..0.6).contains(&share), "{turns_of_big} {turns_of_small}");
        assert_eq!(turns.n_waiting(), 250);
    }

    // REQ: RUN-4
    #[test]
    fn tenant_has_no_more_runs_than_it_may_and_does_not_keep_others_from_theirs() {
        let mut turns = FairTurns::new(3, 2);
        let (one, two) = (TenantId::from("one"), TenantId::from("two"));
        let tickets = [(); 3].map(|()| turns.enter(&one));
        let other = turns.enter(&two);
        let begun: Vec<_> = std::iter::from_fn(|| turns.begin_next()).collect();
        let expected = [(&one, tickets[0]), (&two, other), (&one, tickets[1])];
        assert_eq!(begun, expected.map(|(tenant, ticket)| (tenant.clone(), ticket)));
        turns.end(&two, 1);
        assert_eq!(turns.begin_next(), None, "a place is free, but not for this tenant");
        turns.end(&one, 1);
        assert_eq!(turns.begin_next(), Some((one, tickets[2])));
    }

    // REQ: RUN-4, RUN-7
    #[test]
    fn run_that_is_given_up_leaves_the_others_in_order_and_no_tenant_behind() {
        let mut turns = FairTurns::new(1, 1);
        let one = TenantId::from("one");
        let tickets = [(); 3].map(|()| turns.enter(&one));
        turns.give_up(&one, tickets[0]);
        turns.give_up(&one, tickets[0]);
        assert_eq!(turns.n_waiting(), 2);
        assert_eq!(turns.begin_next(), Some((one.clone(), tickets[1])));
        turns.give_up(&one, tickets[2]);
        turns.end(&one, 1);
        assert_eq!(turns.begin_next(), None);
        assert_eq!((turns.n_waiting(), turns.round.len()), (0, 0));
        // It has had a credit of a round, of which one turn is used.
        assert!(turns.lanes.is_empty());
        assert_eq!(turns.enter(&one), RunTicket(3));
        assert!(turns.begin_next().is_some(), "it comes back as a new one");
    }
}
