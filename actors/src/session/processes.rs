//! Commands of a session: each owns its processes in an actor below the session.
//!
//! The call that started one only waits for it. So the one that ends the turn ends its commands
//! here, whatever became of the call; the end of a command's actor is the end of its processes. A
//! command that goes on in the background is detached from its turn and ends with the session.

use std::{collections::BTreeMap, fmt, sync::Arc};

use ennead_runtime::{
    ports::{
        BoxFuture, HostProcess,
        agents::KeepAgents,
        shells::{Detached, KeepShells},
    },
    session::TurnKey,
};
use ractor::{ActorCell, ActorId, ActorProcessingErr, ActorRef};

use super::{SessionContext, SessionMsg, SessionState};
use crate::groundwork::{directory::ActorKind, supervision::spawn_leaf};

/// The way from a tool to its session.
pub(crate) struct ProcessPort {
    pub(crate) session_context: Arc<SessionContext>,
    pub(crate) session: ActorRef<SessionMsg>,
    /// Key of the turn that the process works for.
    pub(crate) key: TurnKey,
}

impl fmt::Debug for ProcessPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProcessPort of turn {}", self.key.0)
    }
}

impl HostProcess for ProcessPort {
    fn host(&self, work: BoxFuture<'static, ()>, detached: Detached) {
        // A session that is gone drops the work, and that is the answer.
        let _gone = self.session.cast(SessionMsg::HostProcess { key: self.key, work, detached });
    }

    fn shells(&self) -> &dyn KeepShells {
        self
    }

    fn agents(&self) -> Option<&dyn KeepAgents> {
        Some(self)
    }
}

/// The commands that run.
#[derive(Debug, Default)]
pub(super) struct Processes(BTreeMap<ActorId, Process>);

#[derive(Debug)]
struct Process {
    /// The turn that waits for it, or did before it was detached.
    key: TurnKey,
    detached: Detached,
    actor: ActorCell,
}

impl Processes {
    /// Ends those of a turn. Their calls' holds go with their processes.
    pub(super) fn end_of(&self, key: TurnKey) {
        let of_turn = |it: &&Process| it.key == key && !it.detached.is_detached();
        self.0.values().filter(of_turn).for_each(|it| it.actor.kill());
    }

    /// Ends the processes of all turns, detached ones included.
    pub(super) fn end_all(&self) {
        self.0.values().for_each(|it| it.actor.kill());
    }

    /// Returns whether no process runs.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets one that has ended. Says whether it was one.
    pub(super) fn remove(&mut self, child: ActorId) -> bool {
        self.0.remove(&child).is_some()
    }
}

impl SessionState {
    /// Starts the process of a command that a tool wants run.
    pub(super) async fn host_process(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        key: TurnKey,
        work: BoxFuture<'static, ()>,
        detached: Detached,
    ) -> Result<(), ActorProcessingErr> {
        if !self.machine.is_turning(key) {
            return Ok(());
        }
        let job = self.session_context.job(ActorKind::ShellProcess, work);
        let actor = spawn_leaf(job, myself.get_cell()).await?;
        self.processes.0.insert(actor.get_id(), Process { key, detached, actor });
        Ok(())
    }
}
