//! The wall-clock limit of a run.
//!
//! A leaf waits for it beside the run, so it comes through whatever the run is doing, and ends the
//! run as an interrupt does. The leaf goes with the run; one that is killed has a successor that
//! waits for what is left.

use std::time::Duration;

use ennead_runtime::run::RunEnd;
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
    leaf: Option<ActorCell>,
}

impl TimeLimit {
    /// Counted from the beginning of the run.
    pub(super) fn new(time: Duration) -> Self {
        Self { time, leaf: None }
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
    /// Begins to wait for the limit of this run.
    pub(in crate::session) async fn watch_time(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        run: u64,
    ) -> Done {
        let Some(active) = self.active.as_mut().filter(|it| it.number == run) else {
            return Ok(());
        };
        let Some(limit) = &mut active.limit else { return Ok(()) };
        let used = self.shared.world.clock.elapsed().saturating_sub(active.started);
        let waiting = self.shared.world.timer.sleep(limit.time.saturating_sub(used));
        let back = myself.clone();
        let work = Box::pin(async move {
            waiting.await;
            let _gone = back.cast(SessionMsg::TimeIsUp { run });
        });
        let job = Job {
            kind: ActorKind::RunTimer,
            session: self.shared.session.clone(),
            directory: self.shared.directory.clone(),
            work,
        };
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
        active.limit = None;
        self.end_turn(myself, RunEnd::TimedOut).await
    }

    /// Whether this child waited for the limit of the run. Then another one does from now on.
    pub(in crate::session) fn timer_gone(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        child: ActorId,
    ) -> bool {
        let Some(active) = &self.active else { return false };
        let leaf = active.limit.as_ref().and_then(|it| it.leaf.as_ref());
        if leaf.is_none_or(|it| it.get_id() != child) {
            return false;
        }
        let _gone = myself.cast(SessionMsg::WatchTime { run: active.number });
        true
    }
}
