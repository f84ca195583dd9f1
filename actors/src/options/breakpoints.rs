//! Stops on the way of a turn, for looking around in a live tree.

use std::fmt;

use ennead_runtime::{ids::SessionId, step::Step};

/// Lets a turn go on from a breakpoint. Calling it after the turn is gone does nothing.
pub type GoOn = Box<dyn FnOnce() + Send>;

/// Makes turns stand still when they reach a step, for looking around in a live tree.
///
/// The turn does not block: it serves interrupts and status while it waits.
pub trait Breakpoints: Send + Sync + fmt::Debug {
    /// Handles that a turn has reached a step. Keep `go_on` to hold it there; return it to let it pass.
    fn reached(&self, session: &SessionId, step: Step, go_on: GoOn) -> Option<GoOn>;
}
