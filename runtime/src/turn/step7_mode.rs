//! Step 7 of a turn: the mode changes while calls are at the gate.
//!
//! A mode holds from the moment at which it is recorded. A call that is not decided by then is decided
//! under it; what was found out for the mode before does not count.

use super::{Awaits, Then, Turn};
use crate::{
    ids::ToolUseId,
    permission::PermissionMode,
    run::facts::HOLDS_AT_GATE,
    transcript::entry::{ModeChange, RecordKind},
};

impl Turn {
    /// Somebody has put the session into a mode: it holds from the next decision on, and a question that was
    /// raised under another one is judged anew.
    pub(super) fn mode_changed(&mut self, mode: PermissionMode) {
        self.take_mode(mode, None);
        let is_waiting = matches!(self.awaits, Some(Awaits::Policy | Awaits::Permission));
        let has_changed = self.facts.revision < HOLDS_AT_GATE || self.is_outdated();
        if self.state.question.is_none() {
            self.put_call_under_mode();
        } else if is_waiting && has_changed {
            self.awaits = None;
            self.judge_anew();
        }
    }

    /// Puts the session into a mode, for a call or from outside.
    pub(super) fn take_mode(&mut self, mode: PermissionMode, call: Option<ToolUseId>) {
        self.journal.record(self.now, RecordKind::Mode(ModeChange { mode, call }));
        self.memory.overrides.set_mode(mode);
        self.update_gate();
    }

    /// Has the call that is at the gate decided under the mode that holds now.
    fn put_call_under_mode(&mut self) {
        if self.facts.revision < HOLDS_AT_GATE {
            return;
        }
        let Some(setup) = self.setup_of_call() else { return };
        let Some((_, gate)) = &mut self.state.gate else { return };
        if gate.epoch() == setup.epoch() {
            return;
        }
        // The answer that is on its way is about the mode before, or somebody gave leave under that.
        let is_late =
            matches!(self.awaits, Some(Awaits::Judgement | Awaits::Plan)) || gate.has_leave();
        gate.put_under(setup);
        self.state.is_outrun |= is_late;
    }

    /// Whether the question that was recorded last is consulted about as soon as it is safe.
    pub(crate) fn consults_next(&self) -> bool {
        self.barrier.is_some_and(|(_, then)| then == Then::Consult)
    }

    /// Whether what is found out now about the call at the gate does not count, since the mode has changed
    /// meanwhile.
    pub(crate) fn is_outrun(&self) -> bool {
        self.state.is_outrun
    }

    /// Judges the call at the gate once more where the mode has changed since that was asked for.
    pub(super) fn has_outrun(&mut self, call: &ToolUseId) -> bool {
        if !std::mem::take(&mut self.state.is_outrun) || !self.is_at_gate(call) {
            return false;
        }
        match &mut self.state.gate {
            Some((_, gate)) if !gate.has_leave() => {
                let step = gate.judge_again();
                self.gate_step(step);
            }
            _ => self.judge_anew(),
        }
        true
    }
}
