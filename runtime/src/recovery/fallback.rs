//! Asking again: when, how, and whom.
//!
//! Waits grow, have jitter and honour what the provider asked for. A broken stream is asked for
//! again in one piece. When a model has had its retries, the next of the chain gets its own.

use super::{Remedy, Situation};
use crate::step5_model_call::FailureClass;

/// Retries per model and turn.
pub const MAX_RETRIES: u32 = 10;

/// The first wait, in milliseconds; each further one is twice as long.
pub const BACKOFF_BASE_MS: u64 = 500;

/// The longest wait of our own choosing, in milliseconds.
pub const BACKOFF_CAP_MS: u64 = 32_000;

/// The longest wait that a provider may ask a turn for, 10 minutes in milliseconds. A longer one is
/// no pause but a quota: the chain is tried, or the failure stands.
pub const MAX_RETRY_AFTER_MS: u64 = 600_000;

/// The overload in a row that switches the model.
pub const OVERLOADS_TO_SWITCH: u32 = 3;

/// The output ceiling of an answer in one piece, in tokens. More would take longer than the 10
/// minutes that providers keep a silent connection open (128,000 tokens an hour).
pub const WHOLE_MAX_TOKENS: u32 = 21_333;

/// Counts of retries and the place in the chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fallback {
    model: usize,
    /// Of the model in use.
    n_retries: u32,
    n_overloads: u32,
}

/// A failure, as far as asking again is concerned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub(super) retry_after_ms: Option<u64>,
    pub(super) situation: &'a Situation,
}

impl Fallback {
    pub(super) fn model(&self) -> usize {
        self.model
    }

    /// Any other failure ends a row of overloads.
    pub(super) fn note(&mut self, class: FailureClass) {
        let is_overload = class == FailureClass::Overloaded;
        self.n_overloads = if is_overload { self.n_overloads + 1 } else { 0 };
    }

    /// The same again after a wait.
    pub(super) fn retry(&mut self, place: Place<'_>) -> Remedy {
        self.ask_again(place, place.situation.streamed)
    }

    /// Again in one piece (MDL-7).
    pub(super) fn retry_whole(&mut self, place: Place<'_>) -> Remedy {
        self.ask_again(place, false)
    }

    /// The third overload in a row switches, if there is whom to switch to.
    pub(super) fn overloaded(&mut self, place: Place<'_>) -> Remedy {
        let has_next = self.model + 1 < place.situation.n_models;
        if OVERLOADS_TO_SWITCH <= self.n_overloads && has_next {
            return self.switch(place.situation);
        }
        self.retry(place)
    }

    /// The next model of the chain, if there is one.
    pub(super) fn switch(&mut self, situation: &Situation) -> Remedy {
        let index = self.model + 1;
        if situation.n_models <= index {
            return Remedy::Surface;
        }
        *self = Self { model: index, ..Self::default() };
        Remedy::SwitchModel { index }
    }

    fn ask_again(&mut self, place: Place<'_>, streamed: bool) -> Remedy {
        let Place { retry_after_ms, situation } = place;
        let is_quota = retry_after_ms.is_some_and(|it| MAX_RETRY_AFTER_MS < it);
        if MAX_RETRIES <= self.n_retries || is_quota {
            return self.switch(situation);
        }
        let delay_ms =
            retry_after_ms.unwrap_or_else(|| backoff(self.n_retries, situation.jitter_draw));
        self.n_retries += 1;
        let ceiling = if streamed { u32::MAX } else { WHOLE_MAX_TOKENS };
        Remedy::RetryAfter { delay_ms, streamed, max_tokens: situation.max_tokens.min(ceiling) }
    }
}

/// The wait before retry `n`, counted from 0: between half and all of the exponential step.
fn backoff(n: u32, draw: u64) -> u64 {
    let step = BACKOFF_BASE_MS.checked_shl(n.min(16)).unwrap_or(u64::MAX).min(BACKOFF_CAP_MS);
    let half = step / 2;
    half + draw % (step - half + 1)
}
