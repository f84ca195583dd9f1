//! What a model call can cost at most, what it cost, and whether the provider's cache helped.
//!
//! Nothing here decides what the turn does next.

use super::Turn;
use crate::{
    block::Block,
    catalogue::{ModelFacts, Money},
    event::Event,
    hook::MAX_JUDGEMENT_TOKENS,
    lease::MaxCost,
    message::estimate_of,
    run::facts::ESTIMATES_BY_CLASS,
    step5_model_call::{cache_watch::PromptCacheEvent, model_name::is_same},
    tokens::{Counting, Estimate, Size, Tokens, Usage},
    tool::findings::MAX_SYNTHESIS_TOKENS,
    turn::{effect::Purpose, input::Answered},
};

impl Turn {
    /// Computes the most that the model call can use that was ordered last: by the model that is asked, up to the
    /// output ceiling of this very call. The input is at most what the same model has counted before, and a token for
    /// each character that came since; but no more than the model's window, if that is known, since a provider refuses
    /// what is longer.
    pub fn worst_case(&self) -> MaxCost {
        let (model, link) = (&self.state.model, self.link());
        if model.purpose == Some(Purpose::Classification) {
            return self.worst_classification();
        }
        let side = match model.purpose {
            Some(Purpose::Hook) => model.for_hook.as_ref().zip(Some(MAX_JUDGEMENT_TOKENS)),
            Some(Purpose::Synthesis) => model.synthesizing.as_ref().zip(Some(MAX_SYNTHESIS_TOKENS)),
            _ => None,
        };
        if let Some((asked, max_tokens)) = side {
            let (models, input) = (&self.settings().models, asked.estimate.at_most());
            return MaxCost::of_call(models, &asked.link.model, input, max_tokens);
        }
        let (input, max_tokens) = match model.purpose {
            Some(Purpose::Compaction) => {
                let messages = self.state.shaping.summary.iter().flat_map(|it| &it.messages);
                let estimate = model.fixed_estimate + estimate_of(messages);
                (estimate.at_most(), model.summarising.max_tokens)
            }
            _ => {
                // What was paused goes along, and is not among the messages.
                let paused = model.paused.iter().flatten().map(Block::size).sum();
                let estimate = model.raw_estimate + Estimate::of(paused);
                let anchor = self.memory.anchor.as_ref().filter(|it| it.model == link.model);
                let input = anchor.map_or(estimate.at_most(), |it| it.at_most(estimate));
                (input, model.answering.max_tokens)
            }
        };
        let settings = self.settings();
        let known = settings.models.find(&link.model);
        let window = known.map(|it| Tokens(it.window.max(settings.context_window)));
        let input = window.map_or(input, |it| input.min(it));
        MaxCost::of_call(&settings.models, &link.model, input, max_tokens)
    }

    /// Returns how tokens are estimated for the model that is asked.
    pub(super) fn counting(&self) -> Counting {
        self.memory.counting(self.facts.revision, &self.link().model)
    }

    /// Learns how far off the estimate of the request was that has just been answered. Returns that
    /// estimate, for the record by which a session that is opened again learns the same.
    pub(super) fn learn(&mut self, usage: &Usage) -> Option<Tokens> {
        if self.facts.revision < ESTIMATES_BY_CLASS {
            return None;
        }
        let model = self.history.last().and_then(|it| it.model.clone())?;
        let estimated = self.state.model.raw_estimate.by_class();
        self.memory.learned.learn(&model, |it| is_same(&model, it), estimated, usage.context());
        Some(estimated)
    }

    /// Counts the characters of this text that make this many tokens, where the whole is more. Before estimates went by
    /// the kinds of characters, no text of as many characters was.
    pub(super) fn chars_within(&self, text: &str, tokens: u64) -> Option<usize> {
        let (size, counting) = (Size::of(text), self.counting());
        let by_class = counting != Counting::Chars;
        let is_over = by_class && Tokens(tokens) < counting.tokens(Estimate::of(size));
        let fewer = is_over.then(|| counting.chars_of(Tokens(tokens), size));
        fewer.and_then(|it| usize::try_from(it).ok())
    }

    /// Returns a drop where the call read less from the provider's cache than was in it. Calls for a summary are not
    /// looked at: the next one for an answer goes on from the last one for an answer.
    pub(super) fn cache_drop(
        &mut self,
        purpose: Purpose,
        model: Option<&ModelFacts>,
        answered: &Answered,
    ) -> Option<PromptCacheEvent> {
        if purpose != Purpose::Turn || answered.result.is_err() {
            return None;
        }
        let min_cached = model.map_or(0, |it| it.min_cached);
        let (usage, took) = (&answered.usage, answered.duration_ms);
        let event = self.memory.cache.note_answer(usage, self.now, took, min_cached)?;
        self.publish(Event::PromptCacheDropped { event: event.clone() });
        Some(event)
    }

    /// Returns what a call cost, if its price is known.
    pub(super) fn cost_of(&mut self, model: Option<&ModelFacts>, usage: &Usage) -> Option<Money> {
        let cost = model.and_then(|it| it.prices).and_then(|it| it.cost(usage));
        self.memory.spent = self.memory.spent + cost.unwrap_or_default();
        cost
    }
}
