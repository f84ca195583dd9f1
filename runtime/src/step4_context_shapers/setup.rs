//! What the stages go by: settings, the room that there is, and what was decided for earlier recordings.

use std::sync::Arc;

use crate::{
    block::Block,
    ids::ToolName,
    step1_settings_resolution::ShaperSettings,
    tokens::{Counting, Tokens},
};

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
    /// Why the provider's cache holds nothing of the conversation; `None` while it may hold it, and in turns that
    /// were recorded before this was asked.
    pub cold: Option<ColdCache>,
    /// Tools that declare no cap for their results, in addition to those that the settings exempt.
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
    /// Whether results of tools that declare no cap are cleared and collapsed as others are, since a missing cap says
    /// something about how they are cut. Not so in turns that were recorded before.
    pub clears_uncapped: bool,
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

/// Why a provider's cache holds nothing that a changed prefix could lose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColdCache {
    /// Requests are sent without marks to a provider that caches only what is marked.
    Off,
    /// More time has passed since the last answer than the cache lasts.
    Expired,
    /// The last answer is from another model, and each has a cache of its own.
    OtherModel,
}

impl ColdCache {
    /// Returns why there is nothing to lose, for the log.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Off => "the provider caches nothing",
            Self::Expired => "the provider's cache is over",
            Self::OtherModel => "another model is asked, which has nothing cached",
        }
    }
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
    /// Returns whether results of this tool are never cut to a cap.
    pub(crate) fn is_exempt(&self, tool: &ToolName) -> bool {
        self.exempt_tools.contains(tool) || self.is_exempt_by_settings(tool)
    }

    /// Returns whether a result of this tool stays as it is however old it is: settings exempt the tool, or the result
    /// has pictures, which no text in a file brings back, of a tool that declares no cap.
    pub(crate) fn is_kept(&self, tool: &ToolName, result: &Block) -> bool {
        if self.clears_uncapped && !result.has_media() {
            self.is_exempt_by_settings(tool)
        } else {
            self.is_exempt(tool)
        }
    }

    fn is_exempt_by_settings(&self, tool: &ToolName) -> bool {
        self.settings.exempt_tools.iter().any(|it| it == tool.as_str())
    }
}
