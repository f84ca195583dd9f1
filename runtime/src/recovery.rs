//! What to do when a model call fails: a ledger per turn, pure.
//!
//! Each failure has a class, each class one strategy, and each strategy a fixed count, so a turn
//! that keeps failing ends. The ledger decides; who asks carries the remedy out and asks again when
//! it fails. Once it has said [`Remedy::Surface`], it says nothing else.

use crate::step5_model_call::{FailureClass, ModelFailure};

pub mod fallback;
pub mod path1_output_escalation;
pub mod path2_reactive_compaction;
pub mod path3_prompt_too_long;

use fallback::{Fallback, Place};
use path1_output_escalation::OutputCeiling;
use path3_prompt_too_long::Overflow;

/// Decisions of one turn, whatever happens. Above what the counts of all strategies allow together
/// with the longest chain of models (3) in use.
pub const MAX_DECISIONS: u32 = 64;

/// What to do about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Ask again after a while.
    RetryAfter {
        /// The wait, in milliseconds.
        delay_ms: u64,
        /// Whether as a stream. What a broken stream has shown is withdrawn first.
        streamed: bool,
        /// The output ceiling, in tokens.
        max_tokens: u32,
    },
    /// Ask again with a higher output ceiling; the cut answer is not kept.
    EscalateOutput {
        /// The ceiling, in tokens.
        max_tokens: u32,
    },
    /// Ask again with a lower output ceiling, so that input and output fit the window.
    ReduceOutput {
        /// The ceiling, in tokens.
        max_tokens: u32,
    },
    /// Collapse the context, then ask again.
    CollapseContext,
    /// Have the conversation summarised, then ask again.
    CompactReactively,
    /// Ask another model of the chain.
    SwitchModel {
        /// Its place in the chain; 0 is the model that was asked first.
        index: usize,
    },
    /// Nothing is left: the failure stands. An answer that was cut is taken as it is.
    Surface,
}

impl Remedy {
    /// The code, as in records and events. Stable.
    pub fn code(self) -> &'static str {
        match self {
            Self::RetryAfter { streamed: true, .. } => "retry",
            Self::RetryAfter { streamed: false, .. } => "retry_without_streaming",
            Self::EscalateOutput { .. } => "max_output_escalation",
            Self::ReduceOutput { .. } => "output_reduction",
            Self::CollapseContext => "context_collapse",
            Self::CompactReactively => "reactive_compaction",
            Self::SwitchModel { .. } => "model_fallback",
            Self::Surface => "surface",
        }
    }
}

/// The call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Situation {
    /// Its output ceiling, in tokens.
    pub max_tokens: u32,
    /// The highest ceiling that the model takes, in tokens.
    pub model_max_tokens: u32,
    /// Whether it was a stream.
    pub streamed: bool,
    /// Models in the chain, the first one included.
    pub n_models: usize,
    /// A draw for the jitter of waits, made for this attempt.
    pub jitter_draw: u64,
}

/// The counts of one turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    ceiling: OutputCeiling,
    overflow: Overflow,
    fallback: Fallback,
    decided: Vec<(FailureClass, Remedy)>,
    is_over: bool,
}

impl Ledger {
    /// At the start of a turn.
    pub fn new() -> Self {
        Self::default()
    }

    /// Decides what to do about a failure and counts it.
    ///
    /// An answer that the output ceiling cut comes as [`FailureClass::MaxOutput`], a refusal as
    /// [`FailureClass::Refusal`]; see `step5_model_call::failure::of_answer`.
    pub fn decide(&mut self, failure: &ModelFailure, situation: &Situation) -> Remedy {
        let has_room = self.decided.len() < MAX_DECISIONS as usize;
        let remedy = match !self.is_over && has_room {
            true => self.choose(failure, situation),
            false => Remedy::Surface,
        };
        self.is_over |= remedy == Remedy::Surface;
        if has_room {
            self.decided.push((failure.class, remedy));
        }
        remedy
    }

    fn choose(&mut self, failure: &ModelFailure, situation: &Situation) -> Remedy {
        let place = Place { retry_after_ms: failure.retry_after_ms, situation };
        self.fallback.note(failure.class);
        match failure.class {
            FailureClass::MaxOutput => self.ceiling.escalate(situation),
            FailureClass::OutputOverflow => {
                self.ceiling.reduce(situation).unwrap_or_else(|| self.overflow.next())
            }
            FailureClass::ContextOverflow => self.overflow.next(),
            FailureClass::Overloaded => self.fallback.overloaded(place),
            FailureClass::RateLimit | FailureClass::Network => self.fallback.retry(place),
            FailureClass::StreamBroken => self.fallback.retry_whole(place),
            FailureClass::Refusal => self.fallback.switch(situation),
            // Asking again cannot help, and no other model is to be tried (MDL-13).
            FailureClass::Auth | FailureClass::InvalidRequest | FailureClass::Internal => {
                Remedy::Surface
            }
        }
    }

    /// What was decided so far, oldest first; at most [`MAX_DECISIONS`].
    pub fn decided(&self) -> &[(FailureClass, Remedy)] {
        &self.decided
    }

    /// Retries so far, for the counter of the session (MDL-6).
    pub fn n_retries(&self) -> usize {
        let is_retry = |(_, it): &&(_, Remedy)| matches!(it, Remedy::RetryAfter { .. });
        self.decided.iter().filter(is_retry).count()
    }

    /// The model in use: its place in the chain.
    pub fn model(&self) -> usize {
        self.fallback.model()
    }
}

#[cfg(test)]
mod tests;
