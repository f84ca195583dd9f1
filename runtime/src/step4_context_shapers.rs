//! Step 4: five shapers make the context fit, cheapest first.
//!
//! Every stage is a pure function of a context and a setup, so that each can be run by an actor of
//! its own, one after another; [`chain`] runs them all at once, without an actor. A shaper changes
//! what the model sees, never the conversation: messages are immutable, a changed one is built anew
//! under the same id, and a text that is cut is handed back whole to be stored under a reference.
//!
//! A context that was shaped is the one that later turns go on from. Shaping the whole transcript
//! anew each turn would move the cuts, and with them the provider's cache.

pub(crate) mod cap_watch;
pub(crate) mod overflow_reduction;
pub(crate) mod pressure;
pub(crate) mod recorded_view;

pub(crate) mod shaper1_budget_reduction;
pub(crate) mod shaper2_snip;
pub(crate) mod shaper3_microcompact;
pub(crate) mod shaper4_context_collapse;
pub(crate) mod shaper5_auto_compact;

#[cfg(any(test, feature = "conformance"))]
pub mod chain;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
pub(crate) mod fruitless;
mod history;
mod marker;
mod setup;
mod shaped;
mod superseded;

use serde::{Deserialize, Serialize};

pub(crate) use pressure::{Trigger, under_pressure};
pub use setup::{ColdCache, ShaperSetup, Sharing};
pub use shaped::{ShapedContext, StageResult};
pub use shaper5_auto_compact::SummaryRequest;
pub(crate) use shaper5_auto_compact::{apply_summary, shrink};

use self::{shaped::proven_smaller, shaper3_microcompact::Clearing};

/// One shaper. The order of the variants is the contract; no setting changes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// 1: results above their cap are cut.
    BudgetReduction,
    /// 2: the oldest history is dropped.
    Snip,
    /// 3: old results are cleared when the provider's cache is cold.
    Microcompact,
    /// 4: old texts are shown by their beginning.
    ContextCollapse,
    /// 5: a model call sums up what is old.
    AutoCompact,
    /// None of the five: cuts what they left where it does not fit the window. Runs after them
    /// only.
    OverflowReduction,
}

impl Stage {
    /// The five shapers in order.
    pub const ALL: [Stage; 5] = [
        Stage::BudgetReduction,
        Stage::Snip,
        Stage::Microcompact,
        Stage::ContextCollapse,
        Stage::AutoCompact,
    ];

    /// Returns the name used in transcripts, events and spans.
    pub fn name(self) -> &'static str {
        match self {
            Stage::BudgetReduction => "budget_reduction",
            Stage::Snip => "snip",
            Stage::Microcompact => "microcompact",
            Stage::ContextCollapse => "context_collapse",
            Stage::AutoCompact => "auto_compact",
            Stage::OverflowReduction => "overflow_reduction",
        }
    }
}

/// What a trigger found that its stage would look for again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Due(Option<Clearing>);

/// Checks whether this stage would do anything here. Pure and cheap: looks at kept counts, not at texts.
///
/// # Errors
///
/// Why it would not, for the log.
pub(crate) fn trigger(
    stage: Stage,
    context: &ShapedContext,
    setup: &ShaperSetup,
) -> Result<Due, &'static str> {
    let holds = match stage {
        Stage::BudgetReduction => shaper1_budget_reduction::trigger(context, setup),
        Stage::Snip => shaper2_snip::trigger(context, setup),
        Stage::Microcompact => {
            return shaper3_microcompact::due(context, setup).map(|it| Due(Some(it)));
        }
        Stage::ContextCollapse => shaper4_context_collapse::trigger(context, setup),
        Stage::AutoCompact => shaper5_auto_compact::trigger(context, setup),
        Stage::OverflowReduction => overflow_reduction::trigger(context, setup),
    };
    holds.map(|()| Due::default())
}

/// Runs one stage. Where its [`trigger()`] does not hold, the context comes back unchanged.
pub(crate) fn run_stage(stage: Stage, context: &ShapedContext, setup: &ShaperSetup) -> StageResult {
    match trigger(stage, context, setup) {
        Ok(due) => run_due(stage, context, setup, &due),
        Err(why) => StageResult::Unchanged { why: why.into() },
    }
}

/// Runs a stage whose [`trigger()`] found this for the same context and setup.
pub(crate) fn run_due(
    stage: Stage,
    context: &ShapedContext,
    setup: &ShaperSetup,
    due: &Due,
) -> StageResult {
    let result = match stage {
        Stage::BudgetReduction => shaper1_budget_reduction::run(context, setup),
        Stage::Snip => shaper2_snip::run(context, setup),
        Stage::Microcompact => match &due.0 {
            Some(clearing) => shaper3_microcompact::run(context, setup, clearing),
            None => return run_stage(stage, context, setup),
        },
        Stage::ContextCollapse => shaper4_context_collapse::run(context, setup),
        Stage::AutoCompact => shaper5_auto_compact::run(context, setup),
        Stage::OverflowReduction => overflow_reduction::run(context, setup),
    };
    proven_smaller(context, result)
}

#[cfg(test)]
mod tests;
