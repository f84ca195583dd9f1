//! The wall-clock limit of a run: its own, or what its tree of agents leaves it, whichever is
//! reached first.
//!
//! A leaf waits for it beside the run, so it comes through whatever the run is doing, and ends the
//! run as an interrupt does. The leaf goes with the run; one that is killed has a successor that
//! waits for what is left.

use std::time::Duration;

use ennead_runtime::{lease::LeaseRefused, run::RunEnd};
use ractor::{ActorCell, ActorId, ActorRef};

use super::Done;
use crate::{
    directory::ActorKind,
    session::{SessionMsg, State},
    supervision::{Job, spawn_leaf},
};

/// When a run is to end, and who waits for that.
pub(super) struct TimeLimit {
    time: Duration,
    /// What the run ends with then.
    end: RunEnd,
    leaf: Option<ActorCell>,
}

impl TimeLimit {
    /// Counted from the beginning of the run.
    pub(super) fn new(time: Duration, end: RunEnd) -> Self {
        Self { time, end, leaf: None }
    }
}

impl Drop for TimeLimit {
    fn drop(&mut self) {
        if let Some(leaf) = &self.leaf {
            leaf.kill();
        }
    }
}

impl State {
    /// Ends the run no later than its lease does. An end that was set before stays, if it is
    /// earlier.
    pub(in crate::session) fn limit_time(&mut self, myself: &ActorRef<SessionMsg>) {
        let Some(active) = &mut self.active else { return };
        let Some(ends) = self.agents.ends() else { return };
        let time = ends.saturating_sub(active.started);
        if active.limit.as_ref().is_none_or(|it| time < it.time) {
            active.limit = Some(TimeLimit::new(time, RunEnd::TreeLimit));
            // A session that is gone has no run.
            let _gone = myself.cast(SessionMsg::WatchTime { run: active.number });
        }
    }

    /// Begins to wait for the limit of this run.
    pub(in crate::session) async fn watch_time(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        run: u64,
    ) -> Done {
        let Some(active) = self.active.as_mut().filter(|it| it.number == run) else {
            return Ok(());
        };
        let Some(limit) = active.limit.as_mut().filter(|it| it.leaf.is_none()) else {
            return Ok(());
        };
        let used = self.shared.world.clock.elapsed().saturating_sub(active.started);
        let waiting = self.shared.world.timer.sleep(limit.time.saturating_sub(used));
        let back = myself.clone();
        let work = Box::pin(async move {
            waiting.await;
            let _gone = back.cast(SessionMsg::TimeIsUp { run });
        });
        let job = Job::new(ActorKind::RunTimer, &self.shared, work);
        limit.leaf = Some(spawn_leaf(job, myself.get_cell()).await?);
        Ok(())
    }

    /// The limit of this run is reached.
    pub(in crate::session) async fn time_is_up(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        run: u64,
    ) -> Done {
        let Some(active) = self.active.as_mut().filter(|it| it.number == run) else {
            return Ok(());
        };
        let end = active.limit.take().map_or(RunEnd::TimedOut, |it| it.end);
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
