//! From one turn of a run to the next: a supervisor goes on where the turn before has left nothing at work.
//!
//! Messages name no turn. So a supervisor that might still receive messages ends with its turn, and what was
//! sent before the next turn began is dropped.

use ennead_runtime::turn::Turn;
use tracing::Span;

use super::{ActiveTurn, NextTurn, Pending};
use crate::groundwork::spans;

impl ActiveTurn {
    /// Returns whether nothing is left that could still send something.
    pub(super) fn may_rest(&self) -> bool {
        let is_dispatcher = |it: &Pending| matches!(it, Pending::Dispatcher);
        !self.has_timer
            && self.firing.is_none()
            && self.question.is_none()
            && self.running.is_empty()
            && self.pending.iter().all(|it| is_dispatcher(&it.1))
            && !self.scope.cancel.is_cancelled()
            && self.scope.tracker.is_empty()
    }

    /// Ends the turn and its spans.
    pub(super) fn rest(&mut self) {
        self.rests = true;
        (self.step_span, self.span) = (Span::none(), Span::none());
    }

    /// Takes on the next turn of the run. The dispatcher, idle now, is that of the turn before.
    pub(super) fn begin(&mut self, next: NextTurn) {
        let NextTurn { key, turn, scope, fingerprints, chosen, first_layers } = next;
        self.span = spans::turn(&self.session_context.span, turn.run.as_str(), turn.number);
        self.step_span = self.span.clone();
        *self.turn = Turn::new(*turn);
        (self.key, self.scope) = (key, scope);
        (self.fingerprints, self.chosen, self.first_layers) = (fingerprints, chosen, first_layers);
        (self.passed, self.rests) = (None, false);
        self.slots.clear();
    }
}
