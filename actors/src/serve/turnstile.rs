//! Lets runs begin, as the rule of fair turns decides: tenants share turns, and not runs.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
};

use ennead_runtime::{
    ids::TenantId,
    serve::fair_turns::{FairTurns, RunTicket},
};
use tokio::sync::oneshot;

use ennead_tools::locked::Locked as _;

/// Lets runs begin. Clones are one.
#[derive(Clone, Debug)]
pub(crate) struct Turnstile(Arc<Mutex<WaitingRuns>>);

#[derive(Debug)]
struct WaitingRuns {
    turns: FairTurns,
    /// The waiters, by the tickets of their runs.
    waiters: BTreeMap<RunTicket, oneshot::Sender<RunPermit>>,
}

/// Lets one run be under way, until it is dropped.
#[derive(Debug)]
pub(crate) struct RunPermit {
    turnstile: Turnstile,
    tenant: TenantId,
    /// What the run took.
    turns: u32,
}

impl RunPermit {
    /// Counts the turns that the run took.
    pub(crate) fn charge(&mut self, turns: u32) {
        self.turns = turns;
    }
}

/// A run's place among those that wait. Given up when it is dropped.
struct WaitingPlace<'a> {
    turnstile: &'a Turnstile,
    tenant: &'a TenantId,
    ticket: RunTicket,
}

impl Turnstile {
    /// Makes a turnstile for `max` runs at once, of which one tenant has at most `max_of_tenant`.
    pub(crate) fn new(max: usize, max_of_tenant: usize) -> Self {
        let turns = FairTurns::new(max, max_of_tenant);
        Self(Arc::new(Mutex::new(WaitingRuns { turns, waiters: BTreeMap::new() })))
    }

    /// Waits until a run of this tenant may begin. Dropping the future gives up its place.
    pub(crate) async fn enter(&self, tenant: &TenantId) -> RunPermit {
        let (sender, granted) = oneshot::channel();
        let ticket = {
            let mut inner = self.lock();
            let ticket = inner.turns.enter(tenant);
            inner.waiters.insert(ticket, sender);
            ticket
        };
        let _place = WaitingPlace { turnstile: self, tenant, ticket };
        self.let_in();
        match granted.await {
            Ok(pass) => pass,
            // The sender goes with the place alone.
            Err(_) => std::future::pending().await,
        }
    }

    /// Returns how many runs wait.
    pub(crate) fn n_waiting(&self) -> usize {
        self.lock().turns.n_waiting()
    }

    /// Lets in all that may begin now.
    fn let_in(&self) {
        loop {
            let (tenant, waiter) = {
                let mut inner = self.lock();
                let Some((tenant, ticket)) = inner.turns.begin_next() else { return };
                (tenant, inner.waiters.remove(&ticket))
            };
            let pass = RunPermit { turnstile: self.clone(), tenant, turns: 0 };
            // One that has just given up gives the place back, and costs nothing.
            drop(waiter.map(|it| it.send(pass)));
        }
    }

    fn lock(&self) -> MutexGuard<'_, WaitingRuns> {
        // Every change is whole before the lock goes, so a panic elsewhere spoils nothing.
        self.0.locked()
    }
}

impl Drop for WaitingPlace<'_> {
    fn drop(&mut self) {
        let mut inner = self.turnstile.lock();
        inner.turns.give_up(self.tenant, self.ticket);
        inner.waiters.remove(&self.ticket);
    }
}

impl Drop for RunPermit {
    fn drop(&mut self) {
        self.turnstile.lock().turns.end(&self.tenant, self.turns);
        self.turnstile.let_in();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    // REQ: RUN-4
    #[tokio::test]
    async fn place_of_one_that_gave_up_goes_to_the_next() {
        let turnstile = Turnstile::new(1, 1);
        let one = TenantId::from("one");
        let pass = turnstile.enter(&one).await;
        let mut gone = Box::pin(turnstile.enter(&one));
        assert!(gone.as_mut().now_or_never().is_none());
        assert_eq!(turnstile.n_waiting(), 1);
        drop(gone);
        assert_eq!(turnstile.n_waiting(), 0);
        let mut next = Box::pin(turnstile.enter(&one));
        assert!(next.as_mut().now_or_never().is_none());
        drop(pass);
        assert!(next.as_mut().now_or_never().is_some());
    }

    // REQ: RUN-4
    #[tokio::test]
    async fn pass_that_was_given_to_one_that_gave_up_goes_to_the_next() {
        let turnstile = Turnstile::new(1, 1);
        let (one, two) = (TenantId::from("one"), TenantId::from("two"));
        let pass = turnstile.enter(&one).await;
        let mut gone = Box::pin(turnstile.enter(&one));
        let mut next = Box::pin(turnstile.enter(&two));
        assert!(gone.as_mut().now_or_never().is_none());
        assert!(next.as_mut().now_or_never().is_none());
        drop(pass);
        // The pass is on its way to the first, which does not look any more.
        drop(gone);
        assert!(next.as_mut().now_or_never().is_some());
        assert!(turnstile.lock().waiters.is_empty());
    }
}
