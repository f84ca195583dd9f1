//! A run: what one prompt sets off, turn after turn, and why it ends.
//!
//! A turn's state ends with the turn. What the turns of a run share is kept here by the session,
//! in addition to the turn: counts, usage, the watch for repetition.

pub mod agent_types;
pub mod answer;
pub mod conversation;
pub mod derived_settings;
pub mod facts;
pub mod history;
pub(crate) mod no_progress;
pub mod outcome;
pub mod request;

use std::{collections::BTreeSet, sync::Arc};

pub use request::{
    InvalidRequest, RunRequest, Sender,
    content::{ImageType, PromptBlock},
};
use serde::{Deserialize, Serialize};

use crate::{
    ids::{EntryId, RunId},
    lease::LimitUse,
    ports::AgentStatus,
    step1_settings_resolution::Settings,
    tokens::Usage,
};

/// Why a run ended. The codes are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunEnd {
    /// The model answered and wants nothing more.
    NoPendingTools,
    /// Somebody asked it to stop.
    ExplicitStop,
    /// It was to sum up the conversation, and did or could not.
    Compacted,
    /// An error that no remedy removed.
    Error,
    /// The run budget is used up.
    BudgetExceeded,
    /// The cap on turns was reached.
    MaxTurns,
    /// The run was interrupted.
    Interrupted,
    /// Its wall-clock limit was reached.
    TimedOut,
    /// A hook prevented continuation.
    HookStopped,
    /// A hook left a call until the session is resumed.
    ToolDeferred,
    /// The session has cost more than it may.
    CostLimit,
    /// The same call gave the same result too often.
    NoProgress,
    /// Too many calls were denied.
    TooManyDenials,
    /// The prompt is too long, after every remedy.
    PromptTooLong,
    /// A limit of the tree of agents was reached.
    TreeLimit,
    /// The turn's supervisor was killed or crashed.
    Crashed,
    /// What was to be recorded could not be.
    NotRecorded,
}

impl RunEnd {
    /// Returns the code, as on the wire.
    pub fn code(self) -> &'static str {
        match self {
            RunEnd::NoPendingTools => "no_pending_tools",
            RunEnd::ExplicitStop => "explicit_stop",
            RunEnd::Compacted => "compacted",
            RunEnd::Error => "error",
            RunEnd::BudgetExceeded => "budget_exceeded",
            RunEnd::MaxTurns => "max_turns",
            RunEnd::Interrupted => "interrupted",
            RunEnd::TimedOut => "timed_out",
            RunEnd::HookStopped => "hook_stopped",
            RunEnd::ToolDeferred => "tool_deferred",
            RunEnd::CostLimit => "cost_limit",
            RunEnd::NoProgress => "no_progress",
            RunEnd::TooManyDenials => "too_many_denials",
            RunEnd::PromptTooLong => "prompt_too_long",
            RunEnd::TreeLimit => "tree_limit",
            RunEnd::Crashed => "crashed",
            RunEnd::NotRecorded => "not_recorded",
        }
    }

    /// Returns what the end means for a sub-agent.
    pub fn agent_status(self) -> AgentStatus {
        match self {
            RunEnd::NoPendingTools | RunEnd::ExplicitStop | RunEnd::Compacted => {
                AgentStatus::Completed
            }
            RunEnd::BudgetExceeded
            | RunEnd::CostLimit
            | RunEnd::MaxTurns
            | RunEnd::TreeLimit
            | RunEnd::TimedOut => AgentStatus::Cut,
            RunEnd::NoProgress | RunEnd::TooManyDenials => AgentStatus::Stalled,
            RunEnd::Interrupted => AgentStatus::Cancelled,
            RunEnd::Error
            | RunEnd::HookStopped
            | RunEnd::ToolDeferred
            | RunEnd::PromptTooLong
            | RunEnd::Crashed
            | RunEnd::NotRecorded => AgentStatus::Failed,
        }
    }

    /// Reads a code; `None` for what is none.
    pub(crate) fn read(code: &str) -> Option<Self> {
        serde_json::from_value(code.into()).ok()
    }

    /// Returns whether the run did what it was for.
    pub fn is_success(self) -> bool {
        matches!(self, RunEnd::NoPendingTools | RunEnd::ExplicitStop | RunEnd::Compacted)
    }
}

/// Where a run comes from that a session at rest begins by itself.
pub(crate) const WOKEN_ORIGIN: &str = "task-notification";

/// Where a run comes from with which a sub-agent goes on that had ended.
#[doc(hidden)]
pub const MESSAGE_ORIGIN: &str = "agent-message";

/// A run under way.
#[derive(Clone, Debug)]
pub struct Run {
    /// Id of the run.
    pub id: RunId,
    /// The line of its prompt.
    pub prompt: EntryId,
    /// Follows the system prompt in its turns.
    pub system: Option<Arc<str>>,
    /// It sums up the conversation and answers nothing: what to keep in mind.
    pub compacts: Option<Arc<str>>,
    /// Whether the session began it by itself, since an agent in the background has ended.
    pub is_woken: bool,
    /// Number of turns that have begun.
    pub turns: u32,
    /// Tokens of all turns and sub-agents of the run.
    pub usage: Usage,
    /// Limits of which an alert has reported that 80 % are used.
    warned: BTreeSet<&'static str>,
}

/// What a run does after a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AfterTurn {
    /// Another turn; these alerts go out first.
    Next(Vec<String>),
    /// The run ends for this reason.
    End(RunEnd),
}

impl Run {
    /// Returns a run before its first turn.
    pub fn new(id: RunId, prompt: EntryId) -> Self {
        Self {
            id,
            prompt,
            system: None,
            compacts: None,
            is_woken: false,
            turns: 0,
            usage: Usage::default(),
            warned: BTreeSet::new(),
        }
    }

    /// Sets the text after the system prompt.
    #[must_use]
    pub(crate) fn with_system(self, system: Option<Arc<str>>) -> Self {
        Self { system, ..self }
    }

    /// Sets that the run only sums up the conversation.
    #[must_use]
    pub(crate) fn with_compaction(self, compacts: Option<Arc<str>>) -> Self {
        Self { compacts, ..self }
    }

    /// Sets where the run comes from.
    #[must_use]
    pub(crate) fn with_origin(self, origin: &str) -> Self {
        Self { is_woken: origin == WOKEN_ORIGIN, ..self }
    }

    /// Notes how a turn ended and returns what comes next. The cap on turns is looked at only when the turn itself
    /// wants to go on: an answer in the last turn is an answer. At 80 % of a limit, those that only others know
    /// included, there is an alert, once for each.
    pub(crate) fn after_turn(
        &mut self,
        end: Option<RunEnd>,
        used: Usage,
        settings: &Settings,
        others: &[LimitUse],
    ) -> AfterTurn {
        self.usage = self.usage + used;
        if let Some(end) = end {
            return AfterTurn::End(end);
        }
        let max = settings.max_turns.get();
        if max <= self.turns {
            return AfterTurn::End(RunEnd::MaxTurns);
        }
        let turns = LimitUse { of: "turns", used: self.turns.into(), max: max.into() };
        let tokens = settings.run_token_budget.map(|max| LimitUse {
            of: "tokens of the run",
            used: self.usage.total().0,
            max,
        });
        let all = [turns].into_iter().chain(tokens).chain(others.iter().copied());
        let due = all.filter(|it| it.is_near() && self.warned.insert(it.of));
        AfterTurn::Next(due.map(|it| it.to_string()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_of(turns: u32) -> Run {
        Run { turns, ..Run::new("r".into(), "p".into()) }
    }

    fn next(alerts: &[&str]) -> AfterTurn {
        AfterTurn::Next(alerts.iter().map(ToString::to_string).collect())
    }

    // REQ: TRN-7
    #[test]
    fn run_ends_at_the_cap_on_turns_and_warns_once_at_four_fifths() {
        let settings = Settings::default();
        let after = |run: &mut Run| run.after_turn(None, Usage::default(), &settings, &[]);
        assert_eq!(after(&mut run_of(19)), next(&[]));
        let mut run = run_of(20);
        assert_eq!(after(&mut run), next(&["20 of 25 turns are used"]));
        run.turns = 21;
        assert_eq!(after(&mut run), next(&[]));
        assert_eq!(after(&mut run_of(24)), next(&["24 of 25 turns are used"]));
        assert_eq!(after(&mut run_of(25)), AfterTurn::End(RunEnd::MaxTurns));
    }

    // REQ: TRN-7
    #[test]
    fn every_limit_warns_once_at_four_fifths_and_not_before() {
        let settings = Settings { run_token_budget: Some(1_000), ..Settings::default() };
        let used = |n| Usage { input_tokens: n, ..Usage::default() };
        let of_tree = |used| LimitUse { of: "tokens of the tree", used, max: 50 };
        let mut run = run_of(1);
        assert_eq!(run.after_turn(None, used(799), &settings, &[of_tree(39)]), next(&[]));
        let both =
            ["800 of 1000 tokens of the run are used", "40 of 50 tokens of the tree are used"];
        assert_eq!(run.after_turn(None, used(1), &settings, &[of_tree(40)]), next(&both));
        assert_eq!(run.after_turn(None, used(1), &settings, &[of_tree(41)]), next(&[]));
    }

    // REQ: TRN-7
    #[test]
    fn answer_in_the_last_turn_is_an_answer() {
        let end = Some(RunEnd::NoPendingTools);
        let after = run_of(25).after_turn(end, Usage::default(), &Settings::default(), &[]);
        assert_eq!(after, AfterTurn::End(RunEnd::NoPendingTools));
    }
}
