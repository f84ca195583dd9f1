//! Commands of a session: each owns its processes in an actor below the session.
//!
//! The call that started one only waits for it. So whoever ends the turn ends its commands here,
//! whatever became of the call; the end of a command's actor is the end of its processes.

use std::{collections::BTreeMap, fmt};

use ennead_runtime::ports::{BoxFuture, HostProcess};
use ractor::{ActorCell, ActorId, ActorProcessingErr, ActorRef};

use super::{SessionMsg, SessionState, runs::Phase};
use crate::{directory::ActorKind, supervision::spawn_leaf};

/// The way from a tool to its session.
pub(crate) struct ProcessPort {
    pub(crate) session: ActorRef<SessionMsg>,
    /// Key of the turn that the process works for.
    pub(crate) key: u64,
}

impl fmt::Debug for ProcessPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProcessPort of turn {}", self.key)
    }
}

impl HostProcess for ProcessPort {
    fn host(&self, work: BoxFuture<'static, ()>) {
        // A session that is gone drops the work, and that is the answer.
        let _gone = self.session.cast(SessionMsg::HostProcess { key: self.key, work });
    }
}

/// The commands that run, each with the turn that waits for it.
#[derive(Debug, Default)]
pub(super) struct Processes(BTreeMap<ActorId, (u64, ActorCell)>);

impl Processes {
    /// Ends those of a turn. Their calls' holds go with their processes.
    pub(super) fn end_of(&self, key: u64) {
        self.0.values().filter(|(of, _)| *of == key).for_each(|(_, actor)| actor.kill());
    }

    /// Forgets one that has ended. Says whether it was one.
    pub(super) fn gone(&mut self, child: ActorId) -> bool {
        self.0.remove(&child).is_some()
    }
}

impl SessionState {
    /// A tool wants a command run.
    pub(super) async fn host_process(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        key: u64,
        work: BoxFuture<'static, ()>,
    ) -> Result<(), ActorProcessingErr> {
        let phase = self.active.as_ref().map(|it| &it.phase);
        if !matches!(phase, Some(Phase::Turning(turn)) if turn.key == key) {
            return Ok(());
        }
        let job = self.shared.job(ActorKind::ShellProcess, work);
        let actor = spawn_leaf(job, myself.get_cell()).await?;
        self.processes.0.insert(actor.get_id(), (key, actor));
        Ok(())
    }
}
