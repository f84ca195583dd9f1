//! The inputs of a turn.
//!
//! Together with the clock reading it was taken from the mailbox at, every input is recorded in the
//! transcript or can be computed from it, so a turn can be walked again from its record.

use std::num::NonZeroU32;

use crate::{
    approval::{GivenAnswer, PolicyVerdict},
    digest::Digest,
    hook::HandlerOutput,
    ids::ToolUseId,
    permission::PermissionMode,
    run::derived_settings::CompiledSettings,
    step::Step,
    step1_settings_resolution::LayerText,
    step3_context_assembly::{SourceTexts, SourcesLook},
    step4_context_shapers::{Stage, StageResult},
    step5_model_call::{ModelAnswer, ModelFailure},
    step6_tool_dispatch::Admission,
    step7_permission_gate::{Judged, ResolvedPath},
    tokens::Usage,
    tool::ToolOutcome,
};

/// Something that happened and that the turn reacts to.
#[derive(Debug)]
pub enum TurnInput {
    /// Do this step now.
    Run(Step),
    /// The settings files were looked at.
    SettingsRead(SettingsRead),
    /// The settings that were long are merged, and their rules compiled.
    SettingsMerged(Box<CompiledSettings>),
    /// The sources were read.
    SourcesRead(Box<SourceTexts>),
    /// The sources were looked at again.
    SourcesSeen(SourcesLook),
    /// A shaper stage has ended, after this many microseconds.
    Shaped {
        /// The shaper stage that ran.
        stage: Stage,
        /// What came of it; `Err` when its actor crashed.
        result: Result<Box<StageResult>, Crashed>,
        /// How long it took.
        elapsed_us: u64,
    },
    /// A model call has ended.
    ModelAnswered(Box<Answered>),
    /// The wait before the next model attempt is over.
    TimerFired {
        /// The attempt that waited.
        attempt: u32,
    },
    /// The calls of the answer were let in or refused, in order.
    Dispatched(Vec<Admission>),
    /// The handlers of a firing have ended, in configuration order.
    HooksAnswered {
        /// The firing, counted from 0 within the turn.
        firing: u32,
        /// What each of them did.
        outputs: Vec<HandlerOutput>,
    },
    /// The path of a call was looked at.
    PathResolved {
        /// Id of the tool use, as the model issued it.
        call: ToolUseId,
        /// What the path was resolved to.
        path: Box<ResolvedPath>,
    },
    /// The command of a call was judged.
    CommandJudged {
        /// Id of the tool use, as the model issued it.
        call: ToolUseId,
        /// What came of it.
        judged: Box<Judged>,
    },
    /// The plan that a call shows to a person was read.
    PlanRead {
        /// Id of the tool use, as the model issued it.
        call: ToolUseId,
        /// The text; `None` where there is none, or one that is too long.
        plan: Option<String>,
    },
    /// The policy of the embedder was asked about a call.
    PolicyAnswered {
        /// Id of the tool use, as the model issued it.
        call: ToolUseId,
        /// The rules and the mode under which it was asked.
        epoch: Digest,
        /// What the policy says.
        verdict: PolicyVerdict,
    },
    /// A question about a call was answered, or will not be.
    PermissionAnswered {
        /// Id of the tool use, as the model issued it.
        call: ToolUseId,
        /// The answer, and whose it is.
        given: Box<GivenAnswer>,
    },
    /// The session was put into another permission mode.
    ModeChanged(PermissionMode),
    /// The input that a hook gave a call does not fit the schema of the tool: the call does not run.
    InputRefused {
        /// Id of the tool use that was not run.
        call: ToolUseId,
        /// What is wrong with the input.
        why: String,
    },
    /// A call has ended.
    ToolFinished {
        /// Id of the tool use that ended.
        call: ToolUseId,
        /// The result of the call, or its failure.
        outcome: Box<ToolOutcome>,
    },
    /// Lines up to this ticket are as safe as their mode promises.
    Recorded {
        /// The ticket that came with [`super::effect::Effect::Append`].
        ticket: u64,
    },
    /// Somebody wants the run to end after this turn.
    StopRequested,
}

/// What a look at the settings files gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingsRead {
    /// All as before; what was resolved then still holds.
    Unchanged,
    /// These are the layers now.
    Layers(Vec<LayerText>),
}

/// The actor that did the work is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the worker crashed")]
pub struct Crashed;

/// The end of a model call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The attempt it belongs to; late answers of others are dropped.
    pub attempt: u32,
    /// The answer, or why there is none.
    pub result: Result<ModelAnswer, ModelFailure>,
    /// The usage that the provider reported, also of a call that failed on the way.
    pub usage: Usage,
    /// It was sent, and its usage stays unknown: the one that made it has crashed. Given where
    /// somebody counts it.
    pub is_in_doubt: bool,
    /// Milliseconds to the first token.
    pub first_token_ms: Option<u64>,
    /// Milliseconds from the request to the end of the answer.
    pub duration_ms: u64,
    /// Milliseconds that the call waited for its share before it was sent, not counted in the others; `None` if it did not wait.
    pub parked_ms: Option<NonZeroU32>,
}
