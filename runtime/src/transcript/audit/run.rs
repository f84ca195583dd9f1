//! A run while its story is checked. Alone, because how it may end is a question of its own.

use super::{Wrong, story::Turn};
use crate::ids::RunId;

/// A run that has no end yet.
pub(super) struct Run {
    pub(super) id: Option<RunId>,
    pub(super) max_tokens: Option<u64>,
    pub(super) used: u64,
    pub(super) turns: u32,
    pub(super) turn: Option<Turn>,
    /// How the last turn ended.
    pub(super) last: Last,
}

/// How the last turn of a run ended.
pub(super) enum Last {
    NoTurn,
    GoOn,
    Done(String),
    /// By a `turn_end` before its ninth step.
    Early(String),
}

impl Run {
    /// Whether a run may end like this.
    pub(super) fn end(&self, reason: &str, turns: u32) -> Result<(), Wrong> {
        if self.turn.is_some() {
            return Err(Wrong::OutOfPlace);
        }
        if turns != self.turns {
            let (recorded, counted) = (turns.into(), self.turns.into());
            return Err(Wrong::WrongCount { of: "turns", recorded, counted });
        }
        // Limits, hooks and people end a run, too, whatever its last turn came to; but what only
        // the stop check or the turn itself can say must be what it said.
        let is_said = match &self.last {
            Last::Early(code) => return if reason == code { Ok(()) } else { Err(Wrong::WrongEnd) },
            Last::Done(code) => reason == code,
            Last::NoTurn | Last::GoOn => false,
        };
        let decided = ["explicit_stop", "error", "budget_exceeded", "no_pending_tools"];
        let follows = is_said || !decided.contains(&reason);
        if follows { Ok(()) } else { Err(Wrong::WrongEnd) }
    }
}
