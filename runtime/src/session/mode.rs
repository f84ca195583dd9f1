//! The permission mode of a session, changed while it runs.

use std::mem;

use super::{
    Machine, Now, SessionEffect,
    recorder::{PendingLines, WriteOrigin},
    run::Phase,
};
use crate::{
    approval::{ModeError, may_change_to},
    permission::PermissionMode,
    time::Timestamp,
    transcript::entry::{Line, ModeChange, Record, RecordKind},
};

impl Machine {
    /// Checks whether the session may be put into this mode.
    ///
    /// # Errors
    ///
    /// [`ModeError`] with the reason.
    pub fn may_change_to(&self, mode: PermissionMode) -> Result<(), ModeError> {
        let resolved = &self.conversation.memory.resolved;
        let permissions = resolved.as_ref().map(|it| &it.settings.permissions);
        let started = permissions.map(|it| it.mode);
        let has_leave = self.conversation.facts.may_bypass
            || started == Some(PermissionMode::BypassPermissions);
        may_change_to(mode, has_leave, permissions.map_or(&[], |it| &it.off))
    }

    /// Puts the session into a mode. A turn under way records it where it takes effect.
    pub(super) fn set_mode(&mut self, now: Now, mode: PermissionMode) {
        let Some(active) = &self.active else { return self.mode_set(now, mode) };
        // What the turn does not take in any more holds when its run is over.
        self.modes_due.push_back(mode);
        if let Phase::Turning(turn) = &active.phase {
            self.effects.push(SessionEffect::SetMode { key: turn.key, mode });
        }
    }

    /// Sets the mode that is due, whatever the turn that has ended took in of it.
    pub(super) fn mode_is_due(&mut self, now: Now) {
        if let Some(mode) = mem::take(&mut self.modes_due).pop_back()
            && self.conversation.memory.overrides.mode != Some(mode)
        {
            self.mode_set(now, mode);
        }
    }

    /// A turn has recorded a mode. Where one of its calls changed it, sub-agents at work are to know.
    pub(super) fn mode_recorded(&mut self, change: &ModeChange) {
        if change.call.is_some() {
            self.effects.push(SessionEffect::SetAgentsMode(change.mode));
        } else {
            self.modes_due.pop_front();
        }
    }

    fn mode_set(&mut self, now: Now, mode: PermissionMode) {
        let has_begun = self.conversation.has_begun;
        let overrides = &mut self.conversation.memory.overrides;
        // Before the first run nothing is recorded; its beginning is followed by this.
        if !has_begun {
            overrides.begin_in(mode);
        } else {
            overrides.set_mode(mode);
            self.recorder.append(
                WriteOrigin::Unawaited,
                mode_line(now.at, mode),
                &mut self.effects,
            );
        }
    }
}

/// Makes the record of a mode that was set outside of turns.
pub(super) fn mode_line(at: Timestamp, mode: PermissionMode) -> PendingLines {
    let record = Record::new(at, None, 0, RecordKind::Mode(ModeChange { mode, call: None }));
    PendingLines {
        lines: vec![Line::Harness(Box::new(record))],
        stored: Vec::new(),
        title: None,
        sync: false,
    }
}
