//! Who runs next, where as many runs as there may be are under way: deficit round robin between tenants.
//!
//! A run costs its turns, which are known when it has ended. A tenant whose runs took many turns waits for as
//! many rounds as it owes; one whose runs are small gets more of them. So tenants share turns, and not runs.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use ennead_runtime::ids::TenantId;
use tokio::sync::oneshot;

/// Turns that a tenant is given in a round.
const QUANTUM: i64 = 8;

/// Rounds that a tenant can owe at most, so that a long run is forgiven in the end.
const MAX_DEBT: i64 = 16 * QUANTUM;

/// Lets runs begin. Clones are one.
#[derive(Clone, Debug)]
pub(crate) struct Turnstile(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    free: usize,
    max_of_tenant: usize,
    lines: BTreeMap<TenantId, Line>,
    /// Tenants whose runs wait, in the order of the round.
    round: VecDeque<TenantId>,
}

/// The runs of a tenant.
#[derive(Debug, Default)]
struct Line {
    running: usize,
    waiting: VecDeque<oneshot::Sender<Pass>>,
    /// Turns that it may take before it has to wait for the next round.
    credit: i64,
}

/// Lets one run be under way, until it is dropped.
#[derive(Debug)]
pub(crate) struct Pass {
    turnstile: Turnstile,
    tenant: TenantId,
    /// What the run took.
    turns: i64,
}

impl Pass {
    /// Counts the turns that the run took.
    pub(crate) fn charge(&mut self, turns: u32) {
        self.turns = turns.into();
    }
}

impl Turnstile {
    /// So many runs at once, and so many of one tenant.
    pub(crate) fn new(max: usize, max_of_tenant: usize) -> Self {
        let (lines, round) = (BTreeMap::new(), VecDeque::new());
        Self(Arc::new(Mutex::new(Inner { free: max, max_of_tenant, lines, round })))
    }

    /// Waits until a run of this tenant may begin. Dropping the future gives up its place.
    pub(crate) async fn enter(&self, tenant: &TenantId) -> Pass {
        let granted = {
            let mut inner = self.lock();
            let (sender, granted) = oneshot::channel();
            let line = inner.lines.entry(tenant.clone()).or_default();
            line.waiting.push_back(sender);
            if !inner.round.contains(tenant) {
                inner.round.push_back(tenant.clone());
            }
            granted
        };
        self.let_in();
        match granted.await {
            Ok(pass) => pass,
            // The line is never dropped while somebody waits in it.
            Err(_) => std::future::pending().await,
        }
    }

    /// How many runs wait.
    pub(crate) fn n_waiting(&self) -> usize {
        let inner = self.lock();
        let open = |it: &Line| it.waiting.iter().filter(|it| !it.is_closed()).count();
        inner.lines.values().map(open).sum()
    }

    /// Lets in all that may begin now.
    fn let_in(&self) {
        loop {
            let next = self.lock().next();
            let Some((sender, tenant)) = next else { return };
            let pass = Pass { turnstile: self.clone(), tenant, turns: 0 };
            // Who has given up meanwhile gives the place back, and costs nothing.
            drop(sender.send(pass));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Every change is whole before the lock goes, so a panic elsewhere spoils nothing.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn next(&mut self) -> Option<(oneshot::Sender<Pass>, TenantId)> {
        if self.free == 0 {
            return None;
        }
        // A round ends when nobody who could run has credit left; each lessens what is owed, which is bounded.
        loop {
            let mut owing = Vec::new();
            for _ in 0..self.round.len() {
                let tenant = self.round.pop_front()?;
                let line = self.lines.entry(tenant.clone()).or_default();
                line.waiting.retain(|it| !it.is_closed());
                if line.waiting.is_empty() {
                    self.forget(&tenant);
                    continue;
                }
                let can_run = line.running < self.max_of_tenant;
                self.round.push_back(tenant.clone());
                if can_run && line.credit <= 0 {
                    owing.push(tenant);
                } else if can_run && let Some(sender) = line.waiting.pop_front() {
                    line.running += 1;
                    self.free -= 1;
                    return Some((sender, tenant));
                }
            }
            if owing.is_empty() {
                return None;
            }
            for tenant in owing {
                if let Some(line) = self.lines.get_mut(&tenant) {
                    line.credit += QUANTUM;
                }
            }
        }
    }

    /// A tenant without runs keeps no place; what it owes it keeps until it is at work again.
    fn forget(&mut self, tenant: &TenantId) {
        let is_even = |it: &Line| it.running == 0 && it.waiting.is_empty() && 0 <= it.credit;
        if self.lines.get(tenant).is_some_and(is_even) {
            self.lines.remove(tenant);
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        {
            let mut inner = self.turnstile.lock();
            inner.free += 1;
            if let Some(line) = inner.lines.get_mut(&self.tenant) {
                line.running = line.running.saturating_sub(1);
                line.credit = (line.credit - self.turns).max(-MAX_DEBT);
            }
            inner.forget(&self.tenant.clone());
        }
        self.turnstile.let_in();
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, future::LocalBoxFuture};
    use tokio::task::unconstrained;

    use super::*;

    // REQ: RUN-4
    #[tokio::test]
    async fn tenants_share_turns_and_not_runs() {
        let turnstile = Turnstile::new(1, 1);
        let (big, small) = (TenantId::from("big"), TenantId::from("small"));
        let mut held = Some(turnstile.enter(&TenantId::from("first")).await);
        let mut waiting: Vec<(bool, LocalBoxFuture<'_, Pass>)> = Vec::new();
        for _ in 0..200 {
            waiting.push((true, unconstrained(turnstile.enter(&big)).boxed_local()));
            waiting.push((false, unconstrained(turnstile.enter(&small)).boxed_local()));
        }
        // All of them take their places.
        assert!(waiting.iter_mut().all(|it| it.1.as_mut().now_or_never().is_none()));
        let (mut turns_of_big, mut turns_of_small) = (0, 0);
        for _ in 0..150 {
            drop(held.take());
            let mut all = waiting.iter_mut().enumerate();
            let ready = all.find_map(|(i, it)| Some((i, it.0, it.1.as_mut().now_or_never()?)));
            let (index, is_big, mut pass) = ready.unwrap();
            drop(waiting.remove(index));
            let turns = if is_big { 20 } else { 2 };
            pass.charge(turns);
            *(if is_big { &mut turns_of_big } else { &mut turns_of_small }) += turns;
            held = Some(pass);
        }
        let share = f64::from(turns_of_big) / f64::from(turns_of_big + turns_of_small);
        assert!((0.4..0.6).contains(&share), "{turns_of_big} {turns_of_small}");
    }

    // REQ: RUN-4
    #[tokio::test]
    async fn tenant_has_no_more_runs_than_it_may_and_does_not_keep_others_from_theirs() {
        let turnstile = Turnstile::new(3, 2);
        let (one, two) = (TenantId::from("one"), TenantId::from("two"));
        let first = turnstile.enter(&one).await;
        let _second = turnstile.enter(&one).await;
        let mut third = Box::pin(turnstile.enter(&one));
        assert!(third.as_mut().now_or_never().is_none());
        let _other = turnstile.enter(&two).await;
        drop(first);
        assert!(third.as_mut().now_or_never().is_some());
    }

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
}
