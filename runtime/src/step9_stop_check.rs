//! Step 9: is the run over?
//!
//! Reads only its arguments. A stop check that looks at live state answers differently on replay,
//! and that is how turns run away. Stop requests and terminal errors are therefore written to the
//! transcript before it is asked.

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;

use std::{collections::BTreeSet, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{block::BlockKind, ids::ToolUseId, message::Message, message::Role};

/// What a run has used and may use, in one unit of the caller's choice (tokens, by default).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunBudget {
    /// Tokens that the run has used so far.
    pub used: u64,
    /// The limit; reaching it ends the run. `None` means no limit.
    pub max: Option<u64>,
}

impl RunBudget {
    /// Returns whether the limit is reached.
    pub(crate) fn is_exceeded(self) -> bool {
        self.max.is_some_and(|max| max <= self.used)
    }
}

/// Why a run is over, as far as the transcript shows. The codes are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// Somebody asked for it.
    ExplicitStop,
    /// An error that no remedy removed.
    Error,
    /// The run budget is used up.
    BudgetExceeded,
    /// The model has answered and wants no tool.
    NoPendingTools,
}

impl EndReason {
    /// Returns the code, as in transcripts.
    pub fn code(self) -> &'static str {
        match self {
            EndReason::ExplicitStop => "explicit_stop",
            EndReason::Error => "error",
            EndReason::BudgetExceeded => "budget_exceeded",
            EndReason::NoPendingTools => "no_pending_tools",
        }
    }
}

/// The answer of step 9.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopDecision {
    /// Whether the run is over.
    pub done: bool,
    /// Why; `None` exactly when it is not over.
    pub reason: Option<EndReason>,
}

impl StopDecision {
    /// The run goes on.
    pub const GO_ON: Self = Self { done: false, reason: None };

    /// Makes the decision that the run is over.
    pub fn end(reason: EndReason) -> Self {
        Self { done: true, reason: Some(reason) }
    }
}

/// Decides whether the run is over. The first that holds decides:
///
/// 1. a stop request after the last prompt: `explicit_stop`;
/// 2. an error after the last prompt and after every later answer: `error`;
/// 3. the budget is used up: `budget_exceeded`;
/// 4. no answer, or a prompt after the last one: not over;
/// 5. the last answer holds a tool use, or any tool use lacks a later result: not over;
/// 6. over: `no_pending_tools`.
///
/// Takes time linear in the transcript. A turn that has one more message each time keeps a
/// `StopState` in place of asking about all of them again.
pub fn check_stop_condition(transcript: &[Arc<Message>], budget: RunBudget) -> StopDecision {
    let mut state = StopState::default();
    transcript.iter().for_each(|it| state.note(it));
    state.decision(budget)
}

/// What the stop check goes by, brought up to date message by message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StopState {
    /// A stop request after the last prompt.
    is_stop_requested: bool,
    /// An error after the last prompt, and after every later answer.
    has_error: bool,
    /// Of the last answer after the last prompt, whether it holds a tool use.
    last_answer_calls: Option<bool>,
    /// Tool uses, of the whole transcript, that lack a later result.
    open: BTreeSet<ToolUseId>,
}

impl StopState {
    /// Notes the next message.
    pub(crate) fn note(&mut self, message: &Message) {
        let is_prompt = is_prompt(message);
        if is_prompt {
            self.is_stop_requested = false;
            self.has_error = false;
            self.last_answer_calls = None;
        }
        if message.role == Role::Assistant {
            self.last_answer_calls = Some(message.tool_uses().next().is_some());
            self.has_error = false;
        }
        for block in &message.blocks {
            match block.kind() {
                BlockKind::ToolUse { id, .. } => {
                    self.open.insert(id.clone());
                }
                BlockKind::ToolResult { id, .. } => {
                    self.open.remove(id);
                }
                // A block of a prompt is not a mark.
                BlockKind::StopRequest => self.is_stop_requested |= !is_prompt,
                BlockKind::Error(_) => self.has_error |= !is_prompt,
                _ => {}
            }
        }
    }

    /// Decides whether the run is over, as [`check_stop_condition`] does for the messages so far.
    pub(crate) fn decision(&self, budget: RunBudget) -> StopDecision {
        let reason = match self.last_answer_calls {
            _ if self.is_stop_requested => EndReason::ExplicitStop,
            _ if self.has_error => EndReason::Error,
            _ if budget.is_exceeded() => EndReason::BudgetExceeded,
            Some(false) if self.open.is_empty() => EndReason::NoPendingTools,
            None | Some(_) => return StopDecision::GO_ON,
        };
        StopDecision::end(reason)
    }
}

/// Like [`Message::is_prompt`], but a message that holds only marks begins nothing.
fn is_prompt(message: &Message) -> bool {
    let is_mark = |kind: &BlockKind| matches!(kind, BlockKind::StopRequest | BlockKind::Error(_));
    message.is_prompt()
        && (message.blocks.is_empty() || !message.blocks.iter().all(|it| is_mark(it.kind())))
}

#[cfg(test)]
mod tests;
