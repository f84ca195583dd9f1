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
mod superseded;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub(crate) use pressure::{Trigger, under_pressure};
pub use shaper5_auto_compact::SummaryRequest;
pub(crate) use shaper5_auto_compact::{apply_summary, shrink};

use self::shaper3_microcompact::Clearing;
use crate::{
    digest::Digest,
    ids::ToolName,
    message::{Messages, estimate_of},
    step1_settings_resolution::ShaperSettings,
    tokens::{Counting, Tokens},
};

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

/// What the stages go by. The settings are those of the start of the session; making the rest is
/// up to the caller, once per shaping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShaperSetup {
    /// Gates and caps, frozen when the session starts.
    pub settings: Arc<ShaperSettings>,
    /// What the request may hold: the model's window less the output ceiling.
    pub context_budget: Tokens,
    /// Pressure above this many tokens instead of what settings and budget say; for recovery, when
    /// the provider knows better than the estimate.
    pub trigger_override: Option<Tokens>,
    /// What of the request no stage can free: system prompt, tools, and the messages in front of the
    /// conversation. 0 in turns that were recorded before stages were given the conversation alone.
    pub fixed: Tokens,
    /// Paid since the last compaction, in millionths of a US dollar.
    pub spent_micro_usd: u64,
    /// The directory where full texts are kept. The reference to one is `<prefix>/<digest>.txt`,
    /// the digest being that of the text.
    pub reference_prefix: Arc<str>,
    /// Milliseconds since the last answer of the model.
    pub idle_ms: u64,
    /// Tools that declare their results exempt, in addition to those that the settings name.
    pub exempt_tools: Arc<[ToolName]>,
    /// Characters of a result, for tools whose own cap is larger than the setting and holds instead.
    pub own_caps: Arc<[(ToolName, u64)]>,
    /// Which results have a cap together.
    pub sharing: Sharing,
    /// Whether results that say what later ones say better go first, and pressure by number counts
    /// exchanges. Not so in turns that were recorded before.
    pub grades: bool,
    /// Whether pressure alone clears old results. Not so in turns that were recorded before.
    pub clears: bool,
    /// Whether a cut ends the frames of the harness that it is in. Not so in turns that were recorded before.
    pub keeps_frames: bool,
    /// Whether superseded results count as what is left of them when others are chosen to be cleared. Not so in
    /// turns that were recorded before.
    pub counts_cleared: bool,
    /// Messages from which on a summary is made again where the last one did not help and the context fits
    /// the window; 0 where every summary helped.
    pub summary_pause: usize,
    /// Whether it waits only while the context fits the window.
    pub pauses_where_it_fits: bool,
    /// A summary was asked for, whatever the pressure: what to keep in mind.
    pub asked: Option<Arc<str>>,
    /// How tokens are estimated.
    pub(crate) counting: Counting,
}

/// Which results have a cap together when there is pressure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// Results in one message.
    Message,
    /// Those that answer one answer of the model, however many messages they are in.
    #[default]
    Turn,
}

impl ShaperSetup {
    /// Returns whether results of this tool are never cut.
    pub(crate) fn is_exempt(&self, tool: &ToolName) -> bool {
        self.exempt_tools.contains(tool)
            || self.settings.exempt_tools.iter().any(|it| it == tool.as_str())
    }
}

/// A context between two stages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapedContext {
    /// The conversation as the model will see it.
    pub messages: Messages,
    /// What the whole request is thought to take; the caller anchors it on the last reported usage. A
    /// stage takes off what it freed by its own estimate.
    pub tokens: Tokens,
}

impl ShapedContext {
    /// Makes a context whose size is that of its messages by characters alone.
    #[cfg(test)]
    pub(crate) fn estimated(messages: Messages) -> Self {
        let tokens = crate::message::tokens_of(&messages);
        Self { messages, tokens }
    }

    /// The same context with other messages. What the estimate says they save is taken off.
    fn with(&self, messages: Messages, counting: Counting) -> Self {
        let (before, after) = (estimate_of(&self.messages), estimate_of(&messages));
        let freed = counting.tokens(before.saturating_sub(after));
        Self { messages, tokens: self.tokens.saturating_sub(freed) }
    }
}

/// What a stage did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StageResult {
    /// The stage changed nothing.
    Unchanged {
        /// Why, for the log.
        why: String,
    },
    /// The context got smaller.
    Changed {
        /// The context after the stage.
        context: ShapedContext,
        /// Full texts of what was cut, by digest; to be kept before the context is used.
        stored: Vec<(Digest, String)>,
        /// What was done, for the log.
        why: String,
    },
    /// The stage needs a model call, whose answer `apply_summary` takes.
    NeedsSummary(Box<SummaryRequest>),
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

/// A change that freed nothing is not a change.
fn proven_smaller(before: &ShapedContext, result: StageResult) -> StageResult {
    match result {
        StageResult::Changed { context, .. } if !is_smaller(&context, before) => {
            StageResult::Unchanged { why: "did not make the context smaller".into() }
        }
        result => result,
    }
}

fn is_smaller(after: &ShapedContext, before: &ShapedContext) -> bool {
    // Counted in characters and messages: tokens are rounded, and an anchored count can be at 0.
    let chars = |it: &ShapedContext| -> u64 {
        it.messages.iter().flat_map(|it| &it.blocks).map(crate::block::Block::chars).sum()
    };
    let (after_chars, before_chars) = (chars(after), chars(before));
    after_chars < before_chars
        || (after_chars == before_chars && after.messages.len() < before.messages.len())
}

#[cfg(test)]
mod tests;
