//! The requests of a recorded session, shaped again.

use std::sync::Arc;

use super::{Recording, Request, WalkTotals, place_of, recording::TimedMessage};
use crate::{
    catalogue::{ModelFacts, Money},
    ids::EntryId,
    message::{Message, MessageKind, Messages, estimate_of},
    step4_context_shapers::{
        ColdCache, ShapedContext, ShaperSetup, Stage, StageResult, SummaryRequest, apply_summary,
        run_stage,
    },
    tokens::{Estimate, Size, Tokens, Usage},
};

/// Characters of a summary that the recorded session did not make: 1,000 tokens of English.
const MADE_UP_SUMMARY: usize = 4_000;

/// Sends the messages of a session through the stages again, without one of them or with all. Where the
/// stage that sums up fires, the next recorded summary is used, and where the session made no further
/// one, a text of `MADE_UP_SUMMARY` characters.
///
/// Takes time in the order of requests times messages that are still sent.
pub fn walk(recording: &Recording, without: Option<Stage>) -> (WalkTotals, Vec<Request>) {
    let context = ShapedContext { messages: Default::default(), tokens: recording.fixed };
    let mut walk = RecordingWalk {
        recording,
        without,
        setup: recording.setup.clone(),
        context,
        added: Tokens(0),
        sent_before: Messages::new(),
        n_summaries: 0,
        answered_at: None,
        saved: [Tokens(0); 6],
        totals: WalkTotals { cost: Some(Money::default()), ..WalkTotals::default() },
        requests: Vec::new(),
    };
    let mut asks = false;
    for (at, timed) in recording.messages.iter().enumerate() {
        if timed.message.kind == MessageKind::Answer {
            // An answer that was recorded in several lines is one.
            if asks {
                walk.request(&recording.messages[at - 1], timed);
            }
            walk.answered_at = Some(timed.at);
        }
        asks = timed.message.kind != MessageKind::Answer;
        walk.context.messages.push(timed.message.clone());
        walk.count();
        walk.added = walk.added + walk.tokens([&timed.message]);
    }
    (walk.totals, walk.requests)
}

struct RecordingWalk<'a> {
    recording: &'a Recording,
    without: Option<Stage>,
    setup: ShaperSetup,
    context: ShapedContext,
    /// Tokens of all messages so far, as if no stage had changed any.
    added: Tokens,
    sent_before: Messages,
    n_summaries: usize,
    answered_at: Option<crate::time::Timestamp>,
    /// What each stage took off so far.
    saved: [Tokens; 6],
    totals: WalkTotals,
    requests: Vec<Request>,
}

impl RecordingWalk<'_> {
    /// The request that was answered by `answer`, after the message `last`.
    fn request(&mut self, last: &TimedMessage, answer: &TimedMessage) {
        self.setup.idle_ms = self.answered_at.map_or(0, |at| last.at.millis_since(at));
        self.setup.cold = self.cold_cache().filter(|_| self.recording.asks_cache);
        let mut fired = Vec::new();
        let stages = Stage::ALL.into_iter().filter(|it| Some(*it) != self.without);
        for stage in stages.collect::<Vec<_>>() {
            self.shape(stage, &mut fired);
        }
        if self.setup.context_budget < self.context.tokens {
            self.totals.overflows += 1;
            self.shape(Stage::OverflowReduction, &mut fired);
        }
        let cached = self.cached(&self.context.messages);
        let sent = self.context.tokens;
        let request =
            Request { conversation: self.recording.fixed + self.added, sent, cached, fired };
        self.pay(
            &request,
            answer.output.max(self.tokens([&answer.message]).0 * u64::from(answer.output == 0)),
        );
        self.sent_before = self.context.messages.to_vec();
        self.take_stock(&request);
        self.requests.push(request);
    }

    fn shape(&mut self, stage: Stage, fired: &mut Vec<(Stage, Tokens)>) {
        let before = self.context.tokens;
        let result = match run_stage(stage, &self.context, &self.setup) {
            StageResult::NeedsSummary(request) => self.sum_up(&request),
            result => result,
        };
        if let StageResult::Changed { context, .. } = result {
            self.context.messages = context.messages;
            self.count();
            let saved = before.saturating_sub(self.context.tokens);
            self.saved[place_of(stage)] = self.saved[place_of(stage)] + saved;
            fired.push((stage, saved));
        }
    }

    /// Counts the context anew. Counts of messages are kept, and rounding does not add up over them.
    fn count(&mut self) {
        self.context.tokens = self.recording.fixed + self.tokens(self.context.messages.walk());
    }

    fn tokens<'a>(&self, messages: impl IntoIterator<Item = &'a Arc<Message>>) -> Tokens {
        self.setup.counting.tokens(estimate_of(messages))
    }

    fn sum_up(&mut self, request: &SummaryRequest) -> StageResult {
        let made_up = || "summary ".repeat(MADE_UP_SUMMARY / 8);
        let text = self.recording.summaries.get(self.n_summaries).cloned().unwrap_or_else(made_up);
        self.n_summaries += 1;
        self.totals.summaries += 1;
        let (sent, cached) =
            (self.recording.fixed + self.tokens(&request.messages), self.cached(&request.messages));
        let asked = Request { conversation: sent, sent, cached, fired: Vec::new() };
        self.pay(&asked, self.setup.counting.tokens(Estimate::of(Size::of(&text))).0);
        self.setup.spent_micro_usd = 0;
        let id = EntryId::new(format!("summary-{}", self.n_summaries));
        apply_summary(&self.context, &self.setup, request, &text, id)
    }

    /// Why the provider's cache holds nothing; all requests of a walk count as those of one model.
    fn cold_cache(&self) -> Option<ColdCache> {
        match self.recording.keeps_ms {
            None => Some(ColdCache::Off),
            Some(keeps_ms) if keeps_ms < self.setup.idle_ms => Some(ColdCache::Expired),
            Some(_) => None,
        }
    }

    /// What of a request the provider's cache holds: the beginning that equals that of the request before.
    fn cached(&self, messages: &[Arc<Message>]) -> Tokens {
        if self.sent_before.is_empty() || self.cold_cache().is_some() {
            return Tokens(0);
        }
        let is_same = |(a, b): &(&_, &_)| a == b;
        let n_same = messages.iter().zip(&self.sent_before).take_while(is_same).count();
        self.recording.fixed + self.tokens(&messages[..n_same])
    }

    fn pay(&mut self, request: &Request, output: u64) {
        let usage = Usage {
            cache_creation_input_tokens: request.sent.saturating_sub(request.cached).0,
            cache_read_input_tokens: request.cached.0,
            output_tokens: output,
            ..Usage::default()
        };
        let prices = self.recording.model.as_deref().and_then(|it: &ModelFacts| it.prices);
        let cost = prices.and_then(|it| it.cost(&usage));
        self.setup.spent_micro_usd += cost.map_or(0, Money::micro_usd);
        self.totals.cost = self.totals.cost.zip(cost).map(|(a, b)| a + b);
    }

    fn take_stock(&mut self, request: &Request) {
        let totals = &mut self.totals;
        totals.requests += 1;
        totals.conversation = totals.conversation + request.conversation;
        totals.sent = totals.sent + request.sent;
        totals.cached = totals.cached + request.cached;
        for (stage, saved) in &request.fired {
            let of_stage = &mut totals.stages[place_of(*stage)];
            of_stage.fired += 1;
            of_stage.saved_once = of_stage.saved_once + *saved;
        }
        for (of_stage, saved) in totals.stages.iter_mut().zip(&self.saved) {
            of_stage.saved = of_stage.saved + *saved;
        }
    }
}
