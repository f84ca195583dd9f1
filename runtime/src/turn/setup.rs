//! What a turn starts from, and how a conversation gives it.

use std::sync::Arc;

use crate::{
    entropy::EntropyStream,
    ids::{EntryId, RunId},
    run::{
        Run,
        conversation::{Conversation, TurnMemory},
        facts::SessionFacts,
        history::History,
    },
    step9_stop_check::RunBudget,
};

/// What a turn starts from.
#[derive(Clone, Debug)]
pub struct TurnSetup {
    /// Fixed when the session was opened.
    pub facts: Arc<SessionFacts>,
    /// The key of all draws of the run.
    pub stream: EntropyStream,
    /// Id of the run that the turn belongs to.
    pub run: RunId,
    /// The line of its prompt.
    pub prompt: EntryId,
    /// What the run has after the session's system prompt.
    pub system: Option<Arc<str>>,
    /// The run sums up the conversation and answers nothing: what to keep in mind.
    pub compacts: Option<Arc<str>>,
    /// Whether the session began the run by itself, since an agent in the background has ended.
    pub is_woken: bool,
    /// Counted from 1 within the run.
    pub number: u32,
    /// The conversation so far.
    pub history: History,
    /// The last conversation line.
    pub last_entry: Option<EntryId>,
    /// What the turn before handed on.
    pub memory: TurnMemory,
    /// What the run has used. Its limit is read from the settings of the turn.
    pub budget: RunBudget,
}

impl Conversation {
    /// Returns what the next turn of a run starts from. What is counted over the turns of a run is handed over and not
    /// copied: a turn that does not hand it on ends its run.
    pub fn turn(&mut self, run: &Run, budget: RunBudget) -> TurnSetup {
        self.catch_up();
        let progress = std::mem::take(&mut self.memory.progress);
        TurnSetup {
            facts: Arc::clone(&self.facts),
            stream: self.stream.child(run.id.as_str()),
            run: run.id.clone(),
            prompt: run.prompt.clone(),
            system: run.system.clone(),
            compacts: run.compacts.clone(),
            is_woken: run.is_woken,
            number: run.turns,
            history: self.history.clone(),
            last_entry: self.last_entry.clone(),
            memory: TurnMemory { progress, ..self.memory.clone() },
            budget,
        }
    }
}
