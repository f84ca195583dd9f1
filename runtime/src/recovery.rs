//! What to do when a model call fails: a ledger per turn, pure.
//!
//! Each failure has a class, each class one strategy, and each strategy a fixed count, so a turn
//! that keeps failing ends. All of that is in [`table`]; the ledger is what was decided so far,
//! and every count is counted from it. Who asks carries the remedy out and asks again when it fails.
//! Once it has returned `Remedy::Surface` about the turn's answer, it returns nothing else.

pub mod backoff;
pub mod chain;
pub(crate) mod path1_output_escalation;
pub(crate) mod path2_reactive_compaction;
pub(crate) mod path3_prompt_too_long;
mod remedy;
pub mod table;

pub(crate) use remedy::Remedy;

use backoff::{MAX_RETRY_AFTER_MS, backoff};
use path1_output_escalation::{WHOLE_MAX_TOKENS, lowered, raised};
use table::{Action, Cap, Condition, MAX_SILENT_MS, OVERLOADS_TO_SWITCH, RecoveryRow, rows};

use crate::saturating::Saturating as _;
use crate::step5_model_call::{FailureClass, ModelFailure, purpose::Purpose};

/// Decisions of one turn, whatever happens. Above what the counts of the table allow together:
/// with 15 retries for each of 4 models, for the answer and for summaries, 197.
pub(crate) const MAX_DECISIONS: usize = 200;

/// The call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Situation<'a> {
    /// What it was for. Counts are kept apart; the model in use is the same for both.
    pub purpose: Purpose,
    /// Its output ceiling, in tokens.
    pub max_tokens: u32,
    /// The highest ceiling that the model takes, in tokens.
    pub model_max_tokens: u32,
    /// Whether it was a stream. One that was not has a ceiling of `WHOLE_MAX_TOKENS` at most.
    pub streamed: bool,
    /// Whether the session streams where nothing speaks against it.
    pub streams: bool,
    /// The provider of each model of the chain, the first one included.
    pub providers: &'a [usize],
    /// Whether something is left of the context that can be cut.
    pub can_reduce: bool,
    /// Retries that each model may have.
    pub max_retries: u32,
    /// A draw for the jitter of waits, made for this attempt.
    pub jitter_draw: u64,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// Whether anything of the answer was shown.
    pub has_begun: bool,
    /// The highest output ceiling that fits, in tokens, if the failure names it.
    pub fits: Option<u32>,
}

/// The remedy that was chosen for one failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecoveryDecision {
    /// What the call was for.
    pub purpose: Purpose,
    /// The class of the failure.
    pub class: FailureClass,
    /// The model that was asked: its place in the chain.
    pub model: usize,
    /// The output ceiling that it was asked with, in tokens.
    pub max_tokens: u32,
    /// The row that was taken.
    pub action: Action,
    /// What came of it.
    pub remedy: Remedy,
}

/// What was decided in one turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecoveryLedger {
    model: usize,
    /// Milliseconds of attempts that ended in silence, of both purposes.
    silent_ms: u64,
    decided: Vec<RecoveryDecision>,
}

impl RecoveryLedger {
    /// Decides what to do about a failure and counts it.
    ///
    /// An answer that the output ceiling cut comes as [`FailureClass::MaxOutput`], a refusal as
    /// [`FailureClass::Refusal`], and so on; see `step5_model_call::failure::of_answer`.
    pub(crate) fn decide(&mut self, failure: &ModelFailure, situation: &Situation<'_>) -> Remedy {
        if failure.class == FailureClass::Timeout {
            self.silent_ms = self.silent_ms.saturating_add(situation.took_ms);
        }
        let has_room = self.decided.len() < MAX_DECISIONS;
        let (action, remedy) = if has_room && !self.is_over(situation.purpose) {
            self.choose(failure, situation)
        } else {
            (Action::Surface, Remedy::Surface)
        };
        if has_room {
            self.decided.push(RecoveryDecision {
                purpose: situation.purpose,
                class: failure.class,
                model: self.model,
                max_tokens: situation.max_tokens,
                action,
                remedy,
            });
        }
        if let Remedy::SwitchModel { index } = remedy {
            self.model = index;
        }
        remedy
    }

    /// Returns the place in the chain of the model in use.
    pub(crate) fn model(&self) -> usize {
        self.model
    }

    /// Returns whether another provider is left in the chain, to be asked next when the one in use is away. `providers`
    /// is as in [`Situation`].
    pub(crate) fn has_other_provider(&self, providers: &[usize]) -> bool {
        self.next_provider(providers).is_some()
    }

    /// Returns how long the next attempt may be silent, in milliseconds, if the settings alone do not determine it: it
    /// is made after silence, within `MAX_SILENT_MS`.
    pub(crate) fn patience_ms(&self) -> Option<u64> {
        let left = MAX_SILENT_MS.saturating_sub(self.silent_ms);
        (0 < self.silent_ms && 0 < left).then_some(left)
    }

    /// Counts the retries of the model in use.
    pub(crate) fn n_retries(&self, purpose: Purpose) -> u32 {
        self.count(purpose, |it| it.model == self.model && it.action.is_retry())
    }

    /// The end of a turn's answer is final. A summary that was given up may be asked for again, with
    /// what is left of its counts.
    fn is_over(&self, purpose: Purpose) -> bool {
        let is_end = |it: &RecoveryDecision| it.purpose == purpose && it.remedy == Remedy::Surface;
        purpose == Purpose::Turn && self.decided.iter().any(is_end)
    }

    fn choose(&self, failure: &ModelFailure, situation: &Situation<'_>) -> (Action, Remedy) {
        rows()
            .filter(|row| row.class == failure.class)
            .filter(|row| self.has_left(row, situation))
            .find_map(|row| {
                let holds = row.when.iter().all(|it| self.holds(*it, failure, situation));
                let remedy =
                    holds.then(|| self.remedy(row.action, failure, situation)).flatten()?;
                Some((row.action, remedy))
            })
            .unwrap_or((Action::Surface, Remedy::Surface))
    }

    /// Whether no count of the row is used up.
    fn has_left(&self, row: &RecoveryRow, situation: &Situation<'_>) -> bool {
        let purpose = situation.purpose;
        row.caps.iter().all(|cap| match *cap {
            Cap::Retries => self.n_retries(purpose) < situation.max_retries,
            Cap::PerModel(most) => {
                let is_same = |it: &RecoveryDecision| {
                    it.model == self.model && it.class == row.class && it.action.is_retry()
                };
                self.count(purpose, is_same) < most
            }
            Cap::PerTurn(most) => self.count(purpose, |it| it.action == row.action) < most,
        })
    }

    fn holds(
        &self,
        condition: Condition,
        failure: &ModelFailure,
        situation: &Situation<'_>,
    ) -> bool {
        match condition {
            Condition::ForTurn => situation.purpose == Purpose::Turn,
            Condition::ForSummary => situation.purpose == Purpose::Compaction,
            Condition::WaitNamed => {
                failure.retry_after_ms.is_some_and(|it| it <= MAX_RETRY_AFTER_MS)
            }
            Condition::NoWaitNamed => failure.retry_after_ms.is_none(),
            Condition::ThirdInARow => {
                let of_purpose =
                    self.decided.iter().rev().filter(|it| it.purpose == situation.purpose);
                let before = of_purpose
                    .take_while(|it| it.class == failure.class && it.model == self.model)
                    .count();
                OVERLOADS_TO_SWITCH as usize <= before + 1
            }
            Condition::TimeLeft => self.silent_ms < MAX_SILENT_MS,
            Condition::HasBegun => situation.has_begun,
            Condition::NextModel => self.next_model(situation).is_some(),
            Condition::NextProvider => self.has_other_provider(situation.providers),
            Condition::CeilingCanRise => self.raised(situation).is_some(),
            Condition::FitNamed => fitting(situation).is_some(),
            Condition::ContextCanShrink => situation.can_reduce,
            Condition::CeilingAboveFloor => lowered(situation.max_tokens).is_some(),
        }
    }

    /// `None` when the row turns out not to apply; its conditions make sure that it does.
    fn remedy(
        &self,
        action: Action,
        failure: &ModelFailure,
        situation: &Situation<'_>,
    ) -> Option<Remedy> {
        let retry = |delay_ms, streamed: bool| {
            let ceiling = if streamed { u32::MAX } else { WHOLE_MAX_TOKENS };
            let max_tokens = situation.max_tokens.min(ceiling);
            Remedy::RetryAfter { delay_ms, streamed, max_tokens }
        };
        let wait = || backoff(self.n_retries(situation.purpose), situation.jitter_draw);
        Some(match action {
            Action::WaitAsNamed => {
                let named = failure.retry_after_ms?;
                // A call that may come back at once does so as after a failure that names no time, and
                // one that has the same moment as all others does not come with them.
                let spread = situation.jitter_draw % (named / 10 + 1);
                let least = backoff(0, situation.jitter_draw);
                retry(named.saturating_add(spread).max(least), situation.streamed)
            }
            Action::BackOff => retry(wait(), situation.streamed),
            Action::BackOffWhole => retry(wait(), false),
            Action::AskAgain => Remedy::AskAgain,
            Action::Continue => Remedy::Continue,
            Action::RaiseCeiling => Remedy::EscalateOutput { max_tokens: self.raised(situation)? },
            Action::FitCeiling => Remedy::ReduceOutput { max_tokens: fitting(situation)? },
            Action::LowerCeiling => {
                Remedy::ReduceOutput { max_tokens: lowered(situation.max_tokens)? }
            }
            Action::Collapse => Remedy::CollapseContext,
            Action::Compact => Remedy::CompactReactively,
            Action::Reduce => Remedy::ReduceContext,
            Action::ShrinkSummary => Remedy::ShrinkSummary,
            Action::SwitchModel => Remedy::SwitchModel { index: self.next_model(situation)? },
            Action::SwitchProvider => {
                Remedy::SwitchModel { index: self.next_provider(situation.providers)? }
            }
            Action::Surface => Remedy::Surface,
        })
    }

    fn next_model(&self, situation: &Situation<'_>) -> Option<usize> {
        let next = self.model + 1;
        (next < situation.providers.len()).then_some(next)
    }

    fn next_provider(&self, providers: &[usize]) -> Option<usize> {
        let here = providers.get(self.model)?;
        let is_other = |it: &usize| providers.get(*it).is_some_and(|it| it != here);
        (self.model + 1..providers.len()).find(is_other)
    }

    fn raised(&self, situation: &Situation<'_>) -> Option<u32> {
        let did_not_fit = |it: &&RecoveryDecision| {
            it.purpose == situation.purpose
                && it.model == self.model
                && it.class == FailureClass::OutputOverflow
        };
        let too_high = self.decided.iter().filter(did_not_fit).map(|it| it.max_tokens).min();
        // More than fits in one piece is asked for as a stream, whatever broke the last one.
        let most = if situation.streams { u32::MAX } else { WHOLE_MAX_TOKENS };
        raised(situation.max_tokens, situation.model_max_tokens.min(most), too_high)
    }

    fn count(&self, purpose: Purpose, is: impl Fn(&RecoveryDecision) -> bool) -> u32 {
        let found = self.decided.iter().filter(|it| it.purpose == purpose && is(it)).count();
        u32::saturating(found)
    }
}

fn fitting(situation: &Situation<'_>) -> Option<u32> {
    situation.fits.filter(|it| *it < situation.max_tokens)
}

#[cfg(test)]
mod tests;
