//! The permission mode of a session, changed while it runs.

use super::{
    Machine, Now, SessionEffect,
    recorder::{PendingLines, WriteOrigin},
    run::Phase,
};
use crate::{
    approval::{ModeError, may_change_to},
    permission::PermissionMode,
    time::Timestamp,
    transcript::entry::{Line, Record, RecordKind},
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
        self.mode_due = Some(mode);
        if let Phase::Turning(turn) = &active.phase {
            self.effects.push(SessionEffect::SetMode { key: turn.key, mode });
        }
    }

    /// Sets the mode that is due, whatever the turn that has ended took in of it.
    pub(super) fn mode_is_due(&mut self, now: Now) {
        if let Some(mode) = self.mode_due.take()
            && self.conversation.memory.overrides.mode != Some(mode)
        {
            self.mode_set(now, mode);
        }
    }

    fn mode_set(&mut self, now: Now, mode: PermissionMode) {
        self.conversation.memory.overrides.mode = Some(mode);
        // Before the first run nothing is recorded; its beginning is followed by this.
        if self.conversation.has_begun {
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
    let record = Record { at, run: None, turn: 0, what: RecordKind::Mode { mode } };
    PendingLines { lines: vec![Line::Harness(Box::new(record))], stored: Vec::new(), sync: false }
}
