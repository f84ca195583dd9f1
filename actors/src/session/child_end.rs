//! What follows from the end of a child of a session.

use std::time::Duration;

use ennead_runtime::{
    ids::AgentId,
    session::{RunNumber, SessionInput, SpawnEffect},
};
use ractor::ActorId;

use super::{SessionState, timer::RunTimer};
use crate::ports::errors::OpenError;

/// What follows from the end of a child.
pub(super) enum ChildEnd {
    /// The machine decides what follows.
    Input(SessionInput),
    /// A sub-agent crashed: what it used is to be read.
    Agent(AgentId),
    /// The timer of a run was killed: another one takes over.
    Timer { run: RunNumber, deadline: Duration },
    /// The actor that worked for an agent before has ended: the agent can go on.
    Start(SpawnEffect),
    /// Nothing follows, or it was done already.
    Noted,
}

impl SessionState {
    /// Finds out what a child that has ended still owed.
    pub(super) fn child_gone(&mut self, child: ActorId) -> ChildEnd {
        if self.hooks.as_ref().is_some_and(|it| it.actor().get_id() == child) {
            self.hooks_gone();
            return ChildEnd::Noted;
        }
        // The call of a command learns of its end from what it waits for.
        if self.processes.remove(child) {
            return ChildEnd::Noted;
        }
        if let Some(RunTimer { run, deadline, .. }) =
            self.timer.take_if(|it| it.leaf.get_id() == child)
        {
            return ChildEnd::Timer { run, deadline };
        }
        if self.watcher.as_ref().is_some_and(|it| it.leaf.get_id() == child) {
            return ChildEnd::Input(SessionInput::WatcherGone);
        }
        if self.settings_reader.take_if(|it| *it == child).is_some() {
            return ChildEnd::Input(SessionInput::SettingsRead(None));
        }
        if self.server_waiter.take_if(|it| *it == child).is_some() {
            return self.servers_lost().map_or(ChildEnd::Noted, ChildEnd::Input);
        }
        if self.loader.take_if(|it| *it == child).is_some() {
            let why = "the reader of the transcript crashed".to_owned();
            self.readiness.fails_with(OpenError::File(std::io::Error::other(why.clone())));
            return ChildEnd::Input(SessionInput::Loaded(Box::new(Err(why))));
        }
        if let Some(turn) = &self.turn {
            if turn.supervisor.get_id() == child {
                return ChildEnd::Input(SessionInput::TurnCrashed { key: turn.key });
            }
            // Nothing waits for what the turn started any more. It is as if that had taken too long.
            if turn.ending == Some(child) {
                return ChildEnd::Input(SessionInput::TurnQuiet { key: turn.key, late: true });
            }
        }
        self.children.on_child_end(child)
    }
}
