//! Commands that run in the background, and their end with the session.
//!
//! Each is owned by the ShellProcess that ran its call, detached from the turn.

use std::sync::Arc;

use ennead_runtime::{
    ids::ShellId,
    ports::{
        WorkGuard,
        shells::{BackgroundShell, KeepShells, ShellStatus, ShellsFull},
    },
    session::SessionInput,
    step1_settings_resolution::ShellSettings,
};
use ractor::ActorRef;

use super::{SessionMsg, SessionState, processes::ProcessPort, turn_handles::QUIET_LIMIT};
use crate::groundwork::{
    directory::ActorKind,
    supervision::{HandlerResult, spawn_leaf},
};

impl KeepShells for ProcessPort {
    fn new_name(&self) -> ShellId {
        self.session_context.shells.table.new_name()
    }

    fn keep(
        &self,
        settings: ShellSettings,
        shell: Arc<dyn BackgroundShell>,
    ) -> Result<WorkGuard, ShellsFull> {
        let (status, shells) = (shell.status(), &self.session_context.shells);
        shells.table.keep(settings, shell)?;
        // A session that is gone records nothing and drops the command.
        let _gone = self.session.cast(SessionMsg::ShellKept(Box::new(status)));
        Ok(WorkGuard::new((shells.tracker.token(), self.session_context.guard.clone())))
    }

    fn find(&self, shell: &ShellId) -> Option<Arc<dyn BackgroundShell>> {
        self.session_context.shells.table.find(shell)
    }

    fn running(&self) -> Vec<ShellStatus> {
        self.session_context.shells.table.running()
    }
}

impl SessionState {
    /// Takes the commands that have ended since the last call, if a turn may begin with this input.
    pub(super) fn ended_shells(&self, input: &SessionInput) -> Option<SessionInput> {
        if !self.machine.may_begin_turn(input) {
            return None;
        }
        let ended = self.session_context.shells.table.take_ended();
        (!ended.is_empty()).then_some(SessionInput::ShellsEnded(ended))
    }

    /// Ends all commands and the hooks that are not waited for, and runs the hooks at the end; a leaf reports when nothing of them is left, or
    /// after the limits.
    pub(super) async fn end_shells(&mut self, myself: &ActorRef<SessionMsg>) -> HandlerResult {
        self.processes.end_all();
        self.end_detached_hooks();
        let (tracker, back) = (self.session_context.shells.tracker.clone(), myself.clone());
        tracker.close();
        let hooks = self.take_end_hooks();
        let work = Box::pin(async move {
            if let Some(hooks) = hooks {
                hooks.await;
            }
            // What is still at work after the limit ends by itself; the session is over all the same.
            let _late = tokio::time::timeout(QUIET_LIMIT, tracker.wait()).await;
            let _gone = back.cast(SessionMsg::ShellsEnded);
        });
        let job = self.session_context.job(ActorKind::TurnEnding, work);
        spawn_leaf(job, myself.get_cell()).await?;
        Ok(())
    }
}
