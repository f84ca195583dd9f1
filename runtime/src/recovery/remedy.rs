//! What can be done about a failed model call.

/// What to do about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// Ask again after a while.
    RetryAfter {
        /// The wait, in milliseconds; 0: at once.
        delay_ms: u64,
        /// Whether as a stream. What a broken stream has shown is withdrawn first.
        streamed: bool,
        /// The output ceiling, in tokens.
        max_tokens: u32,
    },
    /// Ask again at once; the answer was empty.
    AskAgain,
    /// Send back the answer so far, unchanged, and ask for the rest.
    Continue,
    /// Ask again with a higher output ceiling, as a stream again where the session streams; the cut
    /// answer is not kept.
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
    /// Cut results, the newest among them, to references, then ask again.
    ReduceContext,
    /// Leave out the oldest part of what is to be summarised, then ask again.
    ShrinkSummary,
    /// Ask another model of the chain.
    SwitchModel {
        /// Its place in the chain; 0 is the model that was asked first.
        index: usize,
    },
    /// Nothing is left: the failure remains. An answer that was cut, paused or empty is taken as it
    /// is.
    Surface,
}

impl Remedy {
    /// Returns the code, as in records and events. Stable.
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::RetryAfter { streamed: true, .. } => "retry",
            Self::RetryAfter { streamed: false, .. } => "retry_without_streaming",
            Self::AskAgain => "ask_again",
            Self::Continue => "continue",
            Self::EscalateOutput { .. } => "max_output_escalation",
            Self::ReduceOutput { .. } => "output_reduction",
            Self::CollapseContext => "context_collapse",
            Self::CompactReactively => "reactive_compaction",
            Self::ReduceContext => "overflow_reduction",
            Self::ShrinkSummary => "summary_shrink",
            Self::SwitchModel { .. } => "model_fallback",
            Self::Surface => "surface",
        }
    }
}
