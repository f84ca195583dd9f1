//! The wall-clock limit of a run: its own, or what its tree of agents leaves it, whichever is
//! reached first.
//!
//! A leaf waits for it next to the run, so it comes through whatever the run is doing, and ends the
//! run as an interrupt does. The leaf goes with the limit; one that is killed has a successor that
//! waits for what is left.

use std::time::Duration;

use ennead_runtime::{lease::LeaseRefused, run::RunEnd};
use ractor::{ActorCell, ActorId, ActorRef};

use crate::{
    directory::ActorKind,
    session::{SessionMsg, SessionState},
    supervision::{HandlerResult, spawn_leaf},
};

/// When a run is to end, and who waits for that.
pub(super) struct TimeLimit {
    /// Counted from the beginning of the run.
    time: Duration,
    /// What the run ends with then.
    end: RunEnd,
    leaf: Option<ActorCell>,
}

impl Drop for TimeLimit {
    fn drop(&mut self) {
        if let Some(leaf) = &self.leaf {
            leaf.kill();
        }
    }
}

impl SessionState {
    /// Ends the run when its own time is over or its lease ends, as that is now.
    pub(in crate::session) fn limit_time(&mut self, myself: &ActorRef<SessionMsg>) {
        let Some(active) = &mut self.active else { return };
        let own = active.time_limit.map(|it| (it, RunEnd::TimedOut));
        let ends = self.agents.ends();
        let lease = ends.map(|it| (it.saturating_sub(active.started), RunEnd::TreeLimit));
        let first = own.into_iter().chain(lease).min_by_key(|it| it.0);
        if active.limit.as_ref().map(|it| (it.time, it.end)) == first {
            return;
        }
        active.limit = first.map(|(time, end)| TimeLimit { time, end, leaf: None });
        if active.limit.is_some() {
            // A session that is gone has no run.
            let _gone = myself.cast(SessionMsg::WatchTime { run: active.number });
        }
    }

    /// Begins to wait for the limit of this run.
    pub(in crate::session) async fn watch_time(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        run: u64,
    ) -> HandlerResult {
        let Some(active) = self.active.as_mut().filter(|it| it.number == run) else {
            return Ok(());
        };
        let Some(limit) = active.limit.as_mut().filter(|it| it.leaf.is_none()) else {
            return Ok(());
        };
        let used = self.shared.world.clock.elapsed().saturating_sub(active.started);
        let waiting = self.shared.world.timer.sleep(limit.time.saturating_sub(used));
        let (back, time) = (myself.clone(), limit.time);
        let work = Box::pin(async move {
            waiting.await;
            let _gone = back.cast(SessionMsg::TimeIsUp { run, time });
        });
        let job = self.shared.job(ActorKind::RunTimer, work);
        limit.leaf = Some(spawn_leaf(job, myself.get_cell()).await?);
        Ok(())
    }

    /// The limit of this run is reached.
    pub(in crate::session) async fn time_is_up(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        run: u64,
        time: Duration,
    ) -> HandlerResult {
        let Some(active) = self.active.as_mut().filter(|it| it.number == run) else {
            return Ok(());
        };
        // It may be another one by now.
        let Some(limit) = active.limit.take_if(|it| it.time == time) else { return Ok(()) };
        let end = limit.end;
        if end == RunEnd::TreeLimit {
            active.error = Some(LeaseRefused::TimeUsedUp.to_string());
        }
        self.end_turn(myself, end).await
    }

    /// Whether this child waited for the limit of the run. Then another one does from now on.
    pub(in crate::session) fn timer_gone(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        child: ActorId,
    ) -> bool {
        let Some(active) = &mut self.active else { return false };
        let leaf = active.limit.as_mut().map(|it| &mut it.leaf);
        if leaf.and_then(|it| it.take_if(|it| it.get_id() == child)).is_none() {
            return false;
        }
        let _gone = myself.cast(SessionMsg::WatchTime { run: active.number });
        true
    }
}
