//! What a model call cost, and whether the provider's cache helped.
//!
//! Apart from the call itself, because nothing about what happens next is decided here.

use super::Turn;
use crate::{
    catalogue::{ModelFacts, Money},
    event::Event,
    step5_model_call::cache_watch::PromptCacheEvent,
    tokens::Usage,
    turn::{effect::Purpose, input::Answered},
};

impl Turn {
    /// Whether the call read less from the provider's cache than lay there. Calls for a summary are
    /// not looked at: the next one for an answer goes on from the last one for an answer.
    pub(super) fn cache_drop(
        &mut self,
        purpose: Purpose,
        model: Option<&ModelFacts>,
        answered: &Answered,
    ) -> Option<PromptCacheEvent> {
        if purpose == Purpose::Compaction || answered.result.is_err() {
            return None;
        }
        let min_cached = model.map_or(0, |it| it.min_cached);
        let (usage, took) = (&answered.usage, answered.duration_ms);
        let event = self.carry.cache.answered(usage, self.now, took, min_cached)?;
        self.tell(Event::PromptCacheDropped { event: event.clone() });
        Some(event)
    }

    /// What a call cost, if its price is known.
    pub(super) fn cost_of(&mut self, model: Option<&ModelFacts>, usage: &Usage) -> Option<Money> {
        let cost = model.and_then(|it| it.prices).map(|it| it.cost(usage));
        self.carry.spent = self.carry.spent + cost.unwrap_or_default();
        cost
    }
}
