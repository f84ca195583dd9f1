//! What a run left: its outcome, or why it has none.

use std::{collections::BTreeMap, sync::Arc};

use thiserror::Error;

use super::{InvalidRequest, RunEnd, RunRequest, Sender};
use crate::{
    approval::QuestionCounts,
    catalogue::{Catalogue, Money},
    cost::CostLedger,
    digest::Digest,
    ids::{EntryId, RunId, ToolName, ToolUseId},
    message::{Message, MessageKind, Messages},
    recovery::chain::FallbackUsed,
    step5_model_call::cache_watch::PromptCacheEvent,
    tokens::Usage,
};

/// What a run left.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunOutcome {
    /// Id of the run.
    pub run: RunId,
    /// Who asked for it, if the request names a sender.
    pub sender: Option<Sender>,
    /// Why the run ended.
    pub end: RunEnd,
    /// The text of its last answer; empty when there is none.
    pub text: String,
    /// All messages of the run, the prompt first.
    pub messages: Messages,
    /// Number of turns that the run took.
    pub turns: u32,
    /// Usage of all its model calls, sub-agents included.
    pub usage: Usage,
    /// Of all runs of the session so far, this one included.
    pub session_usage: Usage,
    /// The same calls by model and by what came of them, and what they cost.
    pub cost: CostLedger,
    /// The same for each turn, counted from 1; without sub-agents.
    pub turn_costs: BTreeMap<u32, CostLedger>,
    /// Of all runs of the session so far, this one included. Of those of earlier processes, all
    /// sub-agents are right below the session.
    pub session_cost: CostLedger,
    /// Of all runs of the session in this process so far, this one included.
    pub process_cost: CostLedger,
    /// What is known about models.
    pub models: Arc<Catalogue>,
    /// Lines of the summaries that were made in it; each represents the messages before it.
    pub compactions: Vec<EntryId>,
    /// Cached tokens that its model calls should have read and did not (CTX-7).
    pub cache_drops: Vec<PromptCacheEvent>,
    /// Turns of all runs of the session so far.
    pub session_turns: u64,
    /// How many of them had a compaction (SHP-9).
    pub compacted_turns: u64,
    /// What the caches of providers saved: what the tokens of this run that were read from a cache or written
    /// to one would have cost as any other input, less what they cost. Prices are those of the catalogue
    /// for short prompts; nothing where they are not known, or where writing cost more than reading saved.
    pub cache_saved: Money,
    /// Time from prompt to end, in milliseconds.
    pub duration_ms: u64,
    /// The error that ended it, in words.
    pub error: Option<String>,
    /// Calls that were denied.
    pub denials: Vec<Denial>,
    /// How many questions about calls were asked, sub-agents included, and who answered them.
    pub questions: QuestionCounts,
    /// The model that was asked.
    pub model: String,
    /// The last model that was turned to because that one could not answer.
    pub fallback: Option<FallbackUsed>,
    /// Hash of its last record.
    pub head: Option<Digest>,
}

impl RunOutcome {
    /// Returns the messages of the model, oldest first.
    pub fn answers(&self) -> impl Iterator<Item = &Arc<Message>> {
        self.messages.iter().filter(|it| it.kind == MessageKind::Answer)
    }

    /// Returns the results of its calls, oldest first: the call, what the model read, whether the call failed.
    pub fn tool_results(&self) -> impl Iterator<Item = (&ToolUseId, &str, bool)> {
        self.messages.iter().flat_map(|it| &it.blocks).filter_map(|it| it.as_tool_result())
    }
}

/// A call that was denied.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Denial {
    /// Name of the tool that the call uses.
    pub tool: ToolName,
    /// Id of the tool use, as the model issued it.
    pub call: ToolUseId,
    /// Its input, JSON text.
    pub input: Arc<str>,
}

/// Why a run left no outcome.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RunError {
    /// The session holds as many prompts as it may. This one comes back.
    #[error("the session is busy: its queue of prompts is full")]
    Busy(Box<RunRequest>),
    /// It cannot be asked for like this. Nothing was recorded.
    #[error("the run cannot begin: {0}")]
    Invalid(#[from] InvalidRequest),
    /// The session has ended.
    #[error("the session has ended")]
    Ended,
    /// The run could not be recorded, or could not begin.
    #[error("the run failed: {0}")]
    Failed(String),
}
