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
    /// Whether the limit is reached.
    pub fn is_exceeded(self) -> bool {
        self.max.is_some_and(|max| max <= self.used)
    }
}

/// Why a run is over, as far as the transcript tells. The codes are stable.
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
    /// The code, as in transcripts.
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

    /// The run is over.
    pub fn end(reason: EndReason) -> Self {
        Self { done: true, reason: Some(reason) }
    }
}

/// Whether the run is over. The first that holds decides:
///
/// 1. a stop request after the last prompt: `explicit_stop`;
/// 2. an error after the last prompt and after every later answer: `error`;
/// 3. the budget is used up: `budget_exceeded`;
/// 4. no answer, or a prompt after the last one: not over;
/// 5. the last answer holds a tool use, or any tool use lacks a later result: not over;
/// 6. over: `no_pending_tools`.
///
/// Walks from the end. While tools are called it looks at one turn; only a run that may be over is
/// looked through to its beginning, in linear time, remembering only results whose calls it has
/// not met yet.
pub fn check_stop_condition(transcript: &[Arc<Message>], budget: RunBudget) -> StopDecision {
    let mut last_answer = None;
    let mut has_error = false;
    for message in transcript.iter().rev() {
        if is_prompt(message) {
            break;
        }
        for block in &message.blocks {
            match block.kind() {
                BlockKind::StopRequest => return StopDecision::end(EndReason::ExplicitStop),
                BlockKind::Error(_) => has_error |= last_answer.is_none(),
                _ => {}
            }
        }
        if message.role == Role::Assistant && last_answer.is_none() {
            last_answer = Some(message);
        }
    }
    if has_error {
        return StopDecision::end(EndReason::Error);
    }
    if budget.is_exceeded() {
        return StopDecision::end(EndReason::BudgetExceeded);
    }
    let Some(last_answer) = last_answer else { return StopDecision::GO_ON };
    if last_answer.tool_uses().next().is_some() || has_open_call(transcript) {
        return StopDecision::GO_ON;
    }
    StopDecision::end(EndReason::NoPendingTools)
}

/// Like [`Message::is_prompt`], but a message that holds only marks begins nothing.
fn is_prompt(message: &Message) -> bool {
    let is_mark = |kind: &BlockKind| matches!(kind, BlockKind::StopRequest | BlockKind::Error(_));
    message.is_prompt()
        && (message.blocks.is_empty() || !message.blocks.iter().all(|it| is_mark(it.kind())))
}

/// Whether some tool use lacks a result after it.
fn has_open_call(transcript: &[Arc<Message>]) -> bool {
    // A result is forgotten when its call is met, so that the set holds one turn and not the
    // history. That takes a second call of the same id for open; the thorough look settles it.
    finds_open_call(transcript, Results::Forget) && finds_open_call(transcript, Results::Keep)
}

#[derive(Clone, Copy, PartialEq)]
enum Results {
    Forget,
    Keep,
}

fn finds_open_call(transcript: &[Arc<Message>], results: Results) -> bool {
    let mut answered: BTreeSet<&ToolUseId> = BTreeSet::new();
    transcript.iter().rev().flat_map(|it| it.blocks.iter().rev()).any(|block| match block.kind() {
        BlockKind::ToolResult { id, .. } => {
            answered.insert(id);
            false
        }
        BlockKind::ToolUse { id, .. } if results == Results::Forget => !answered.remove(id),
        BlockKind::ToolUse { id, .. } => !answered.contains(id),
        _ => false,
    })
}

#[cfg(test)]
mod tests;
