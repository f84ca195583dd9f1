//! Commands that run in the background: their end with the session, and what the model is told of it.
//!
//! Each is owned by the ShellProcess that ran its call, detached from the turn. What is told at the
//! beginning of a turn is a line of the conversation, so the one that walks the turn again reads it
//! there.

use std::sync::Arc;

use ennead_runtime::{
    ids::ShellId,
    ports::{
        WorkGuard,
        shells::{BackgroundShell, KeepShells, ShellStatus, ShellsFull, ended_message},
    },
    step1_settings_resolution::ShellSettings,
    transcript::{
        entry::{ConversationLine, Line},
        load,
    },
    turn::effect::HistoryUpdate,
};
use ennead_tools::shells::Shells;
use ractor::ActorRef;
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

use super::{
    SessionMsg, SessionState,
    ending::QUIET_LIMIT,
    processes::ProcessPort,
    recorder::{Lines, Origin},
    runs::record,
};
use crate::{
    directory::ActorKind,
    supervision::{HandlerResult, spawn_leaf},
};

/// The commands of a session in the background.
#[derive(Debug, Default)]
pub(crate) struct SessionShells {
    pub(crate) table: Shells,
    /// Empty when nothing of them is left.
    pub(crate) tracker: TaskTracker,
}

impl KeepShells for ProcessPort {
    fn new_name(&self) -> ShellId {
        self.shared.shells.table.new_name()
    }

    fn keep(
        &self,
        settings: ShellSettings,
        shell: Arc<dyn BackgroundShell>,
    ) -> Result<WorkGuard, ShellsFull> {
        let (status, shells) = (shell.status(), &self.shared.shells);
        shells.table.keep(settings, shell)?;
        // A session that is gone records nothing and drops the command.
        let _gone = self.session.cast(SessionMsg::ShellKept(Box::new(status)));
        Ok(WorkGuard::new((shells.tracker.token(), self.shared.guard.clone())))
    }

    fn find(&self, shell: &ShellId) -> Option<Arc<dyn BackgroundShell>> {
        self.shared.shells.table.find(shell)
    }

    fn running(&self) -> Vec<ShellStatus> {
        self.shared.shells.table.running()
    }
}

impl SessionState {
    /// A command goes on in the background. That is written at once, so that a killed process leaves it
    /// on record.
    pub(super) fn shell_kept(&mut self, status: &ShellStatus) {
        let Some(active) = &self.active else { return };
        let at = self.shared.world.clock.now();
        let lines = vec![record(at, &active.run.id, 0, status.record())];
        self.recorder.append(Origin::Nobody, Lines { lines, stored: Vec::new(), sync: false });
    }

    /// Takes over what an earlier process left running. It is gone with that process.
    pub(super) fn resume_shells(&mut self, shells: &load::Shells) {
        self.shared.shells.table.resume(shells.count);
        let lost = shells.open.iter().map(|(shell, it)| ShellStatus::lost(shell.clone(), it));
        self.lost_shells.extend(lost);
    }

    /// Says which commands have ended, in front of the turn that begins.
    pub(super) fn tell_ended_shells(&mut self) {
        let Some(active) = &mut self.active else { return };
        let mut ended = std::mem::take(&mut self.lost_shells);
        let mut known = Vec::new();
        for it in self.shared.shells.table.take_ended() {
            if it.is_known { &mut known } else { &mut ended }.push(it.status);
        }
        if ended.is_empty() && known.is_empty() {
            return;
        }
        let at = self.shared.world.clock.now();
        let run = &active.run.id;
        let records = ended.iter().chain(&known).map(|it| record(at, run, 0, it.record()));
        let mut lines: Vec<Line> = records.collect();
        if !ended.is_empty() {
            let stream = self.conversation.stream.child(run.as_str());
            let id = stream.entry_id(at, "shells", u64::from(active.run.turns));
            let message = Arc::new(ended_message(id, &ended));
            let line = ConversationLine {
                at,
                parent: self.conversation.last_entry.clone(),
                message: Arc::clone(&message),
                answer: None,
                tool_result: None,
                boundary: None,
            };
            lines.push(Line::Conversation(Box::new(line)));
            active.remember(&message);
            self.conversation.said(HistoryUpdate::Message(message));
        }
        // The turn has more to write at once.
        self.recorder.hold(Lines { lines, stored: Vec::new(), sync: false });
    }

    /// Ends all commands, and waits until nothing of them is left.
    pub(super) async fn end_shells(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        reply: oneshot::Sender<()>,
    ) -> HandlerResult {
        self.processes.end_all();
        let (tracker, back) = (self.shared.shells.tracker.clone(), myself.clone());
        tracker.close();
        let work = Box::pin(async move {
            // The one that ends them goes on after the limit, and the session is over all the same.
            let _late = tokio::time::timeout(QUIET_LIMIT, tracker.wait()).await;
            let _gone = back.cast(SessionMsg::ShellsEnded(reply));
        });
        let job = self.shared.job(ActorKind::TurnEnding, work);
        spawn_leaf(job, myself.get_cell()).await?;
        Ok(())
    }
}
