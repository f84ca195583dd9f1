//! What each shaper of step 4 is worth: recorded sessions, walked again with one stage left out.
//!
//! A transcript holds every message of its session as it was received, whatever the shapers made of it.
//! [`Recording`] reads those messages and the settings that held; [`walk()`] sends them through the
//! stages again, request by request, and counts what goes out. The model is not asked: its recorded
//! answers come as they came, so what is compared is the size and the price of the requests, and not
//! how good an answer would have been with less context.
//!
//! Tokens are the estimates of the harness, so that a saving that a stage logs and the size of a
//! request are counted alike: in every walk the savings of all stages, each counted again in every
//! later request, add up to the difference between the messages and what was sent of them. That is so by
//! the way a walk counts. Whether it is so of the session as it ran, its lines say: [`Recording::logged`] adds
//! up what the stages logged then, and the gap to what the recorded requests were smaller by.

mod recording;
mod walk;

use serde::Serialize;

pub use recording::{LoggedTotals, NoRecording, Recording};
pub use walk::walk;

use crate::{catalogue::Money, step4_context_shapers::Stage, tokens::Tokens};

/// One request of a walk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Request {
    /// What it would take if no stage had ever changed anything.
    pub conversation: Tokens,
    /// Tokens of the request as it is sent.
    pub sent: Tokens,
    /// The part of it that equals the beginning of the request before, sent while the provider keeps that.
    pub cached: Tokens,
    /// Stages that changed something for it, in order, with the tokens that each took off.
    pub fired: Vec<(Stage, Tokens)>,
}

/// What one stage did in a walk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StageTotals {
    /// Requests for which it changed something.
    pub fired: u64,
    /// Tokens that it took off, each counted once.
    pub saved_once: Tokens,
    /// The same, each counted in every request that is smaller for it.
    pub saved: Tokens,
}

impl StageTotals {
    fn add(&mut self, other: &Self) {
        self.fired += other.fired;
        self.saved_once = self.saved_once + other.saved_once;
        self.saved = self.saved + other.saved;
    }
}

/// What a walk came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WalkTotals {
    /// Requests for answers of the model.
    pub requests: u64,
    /// Requests to a model for a summary of what is old.
    pub summaries: u64,
    /// Requests that are larger than the window less the output, after all five stages.
    pub overflows: u64,
    /// Tokens of all requests if no stage had ever changed anything.
    pub conversation: Tokens,
    /// Tokens of all requests for answers.
    pub sent: Tokens,
    /// Tokens of all requests for answers that a provider's cache would hold.
    pub cached: Tokens,
    /// Of all requests; `None` where the price of a model is not known.
    pub cost: Option<Money>,
    /// By stage, in their order; the last one is the cut of what does not fit the window.
    pub stages: [StageTotals; 6],
}

impl WalkTotals {
    /// Returns whether the savings of the stages are the measured difference, which they are in every walk: both are
    /// counted by it.
    pub fn adds_up(&self) -> bool {
        let saved: u64 = self.stages.iter().map(|it| it.saved.0).sum();
        self.conversation.saturating_sub(self.sent).0 == saved
    }

    /// Adds what the walk of another session came to.
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        self.requests += other.requests;
        self.summaries += other.summaries;
        self.overflows += other.overflows;
        self.conversation = self.conversation + other.conversation;
        self.sent = self.sent + other.sent;
        self.cached = self.cached + other.cached;
        self.cost = self.cost.zip(other.cost).map(|(a, b)| a + b);
        for (own, other) in self.stages.iter_mut().zip(&other.stages) {
            own.add(other);
        }
        self
    }
}

/// Returns the place of a stage in [`WalkTotals::stages`].
pub fn place_of(stage: Stage) -> usize {
    Stage::ALL.iter().position(|it| *it == stage).unwrap_or(Stage::ALL.len())
}

#[cfg(test)]
mod tests;
