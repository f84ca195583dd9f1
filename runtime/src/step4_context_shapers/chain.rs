//! All five stages at once, for callers that have an answer at hand instead of waiting for one.
//!
//! Turns drive the stages one by one, each in its own actor; this is the same order over the same
//! functions, for evaluation, for cases and for tests.

use super::{
    ShapedContext, ShaperSetup, Stage, StageResult, SummaryRequest, apply_summary, run_stage,
};
use crate::{digest::Digest, ids::EntryId, tokens::Tokens};

/// How a request for a summary was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Summarised {
    /// The model answered with a summary.
    Text(String),
    /// No summary could be made.
    Failed {
        /// The reason of the failure, in words.
        why: String,
    },
}

/// What one stage did, as it is logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageLog {
    /// The stage that ran.
    pub stage: Stage,
    /// Whether it changed the context.
    pub fired: bool,
    /// Estimated tokens of the conversation before the stage.
    pub tokens_before: Tokens,
    /// Estimated tokens of the conversation after the stage.
    pub tokens_after: Tokens,
    /// Why it fired or did not.
    pub why: String,
}

/// What the stages made of a context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shaped {
    /// The context as it goes out.
    pub context: ShapedContext,
    /// One entry per stage, in order.
    pub log: Vec<StageLog>,
    /// Full texts of what was cut.
    pub stored: Vec<(Digest, String)>,
    /// Requests for a summary that were made.
    pub n_model_calls: u32,
}

impl Shaped {
    /// Returns the stages that changed something, in order.
    pub(crate) fn fired(&self) -> impl Iterator<Item = Stage> {
        self.log.iter().filter(|it| it.fired).map(|it| it.stage)
    }
}

/// Runs all stages in order. `id` names the summary's line, should there be one.
pub(crate) fn shape(
    context: ShapedContext,
    setup: &ShaperSetup,
    id: &EntryId,
    mut summarise: impl FnMut(&SummaryRequest) -> Summarised,
) -> Shaped {
    let mut shaped = Shaped { context, log: Vec::new(), stored: Vec::new(), n_model_calls: 0 };
    for stage in Stage::ALL {
        let result = match run_stage(stage, &shaped.context, setup) {
            StageResult::NeedsSummary(request) => {
                shaped.n_model_calls += 1;
                match summarise(&request) {
                    Summarised::Text(text) => {
                        apply_summary(&shaped.context, setup, &request, &text, id.clone())
                    }
                    Summarised::Failed { why } => StageResult::Unchanged { why },
                }
            }
            result => result,
        };
        let tokens_before = shaped.context.tokens;
        let (fired, why) = match result {
            StageResult::Changed { context, stored, why } => {
                shaped.context = context;
                shaped.stored.extend(stored);
                (true, why)
            }
            StageResult::Unchanged { why } => (false, why),
            StageResult::NeedsSummary(_) => (false, "the summary asked for another one".into()),
        };
        let tokens_after = shaped.context.tokens;
        shaped.log.push(StageLog { stage, fired, tokens_before, tokens_after, why });
    }
    shaped
}
