//! Step 2: the state that lives as long as one turn.
//!
//! Nothing in here reaches the next turn except through the transcript and what the turn hands on
//! by name. The actor that owns it is stopped when the turn ends, so the rule holds by
//! construction.

use std::{collections::VecDeque, sync::Arc};

use crate::{
    approval::{AnsweredBy, GivenAnswer, Question},
    hook::{HandlerOutput, HookEvent, HookHandler, LoadedInstructions},
    ids::ToolUseId,
    permission::PermissionMode,
    recovery::{
        RecoveryLedger,
        chain::{ChainModel, FallbackUsed},
    },
    step1_settings_resolution::{LayerText, Settings},
    step3_context_assembly::Assembled,
    step4_context_shapers::{ShapedContext, ShaperSetup, SummaryRequest},
    step5_model_call::{
        FailureClass, ModelAnswer, ModelFailure, purpose::Purpose, view::GrownView,
    },
    step7_permission_gate::{Gate, GateSetup, Permit},
    step8_tool_execution::schedule::Schedule,
    tokens::{Estimate, Tokens, Usage},
    tool::{ToolCall, ToolOutcome, ToolSpec},
    transcript::entry::Stored,
};

/// Everything one turn remembers while it lasts.
#[derive(Debug, Default)]
pub(crate) struct TurnState {
    /// Step 1: what holds.
    pub settings: Option<Arc<Settings>>,
    /// Step 1: settings files that have changed, while hooks are asked about them.
    pub config: Option<ConfigChanges>,
    /// Step 1: files whose changes were refused, as they are recorded.
    pub refused: Vec<String>,
    /// Step 1: tools have joined since the turn before.
    pub tools_joined: bool,
    /// Step 1: the settings are others than those of the turn before.
    pub settings_changed: bool,
    /// Step 1: what the gate works with.
    pub gate_setup: Option<Arc<GateSetup>>,
    /// Step 3: the source texts, if they were read in this turn.
    pub texts: Option<Stored>,
    /// Step 3: the nine sources, placed.
    pub assembled: Option<Assembled>,
    /// Step 4: the view, shaped so far.
    pub shaped: Option<ShapedContext>,
    /// Step 4: milliseconds since the last answer, when the context was put together.
    pub idle_ms: u64,
    /// Step 4: gates and caps.
    pub shaper_setup: Option<Arc<ShaperSetup>>,
    /// Steps 4 and 5: what shaping is under way.
    pub shaping: Shaping,
    /// Step 5: the view as it goes out.
    pub view: GrownView,
    /// Step 5: the model call.
    pub model: ModelState,
    /// Steps 6 to 8: the calls of the answer, in order.
    pub calls: Vec<CallState>,
    /// Step 7: the gate of the call that is being decided about.
    pub gate: Option<(usize, Gate)>,
    /// Step 7: what is found out now about that call is about a mode that does not hold any more.
    pub is_outrun: bool,
    /// Step 7: why that call is asked about, and rules that would settle it, while its plan is read.
    pub asking: Option<(String, Vec<String>)>,
    /// Step 7: the mode that somebody chose with a yes to that call.
    pub chosen_mode: Option<PermissionMode>,
    /// Step 7: the question about that call.
    pub question: Option<OpenQuestion>,
    /// Step 7: files that this turn changes without a question.
    pub unasked_changes: u32,
    /// Step 7: an answer ended the run, so nothing else runs.
    pub is_cut_off: bool,
    /// Firings of hooks so far.
    pub firings: u32,
    /// The firing that is awaited.
    pub firing: Option<AwaitedFiring>,
    /// Step 8: groups that have not begun, as places in `calls`.
    pub groups: VecDeque<Vec<usize>>,
    /// Step 8: the group that runs, as places in `calls`, and who of it may run when.
    pub group: Option<(Vec<usize>, Schedule)>,
    /// Step 8: results that are in the transcript.
    pub n_answered: usize,
    /// Step 8: hooks were fired for all calls together.
    pub has_fired_batch: bool,
    /// The working directory as hooks know it.
    pub cwd: Arc<str>,
    /// Instruction files that have entered the context, that hooks have not been fired for yet.
    pub loaded: VecDeque<LoadedInstructions>,
    /// Text that hooks, by their event, and watches add for the model, after the results.
    pub reminders: Vec<(Option<HookEvent>, String)>,
    /// Step 2: what a hook at the start has the user say with the prompt, until that is accepted.
    pub initial_message: Option<String>,
}

/// Settings files that have changed.
#[derive(Debug)]
pub(crate) struct ConfigChanges {
    /// What is to hold.
    pub read: Vec<LayerText>,
    /// What has held so far.
    pub before: Vec<LayerText>,
    /// Changes that nobody was asked about.
    pub left: VecDeque<LayerText>,
    /// The change that hooks are asked about.
    pub asked: Option<LayerText>,
    /// Files whose changes were refused.
    pub refused: Vec<String>,
}

/// A question that has no answer yet.
#[derive(Debug)]
pub(crate) struct OpenQuestion {
    /// The question, as those that can answer are shown it.
    pub question: Arc<Question>,
    /// Who is to be asked after the one that is asked now, in order.
    pub handlers: VecDeque<AnsweredBy>,
    /// Whether surfaces were shown it.
    pub is_shown: bool,
    /// Whether hooks were notified that somebody is to be asked.
    pub is_notified: bool,
    /// The denial that hooks are fired for before it counts.
    pub denial: Option<GivenAnswer>,
}

/// Which shaping is under way.
#[derive(Debug, Default)]
pub(crate) struct Shaping {
    /// Stages that fired so far.
    pub fired: u32,
    /// Nothing was left to cut when the provider refused the context.
    pub is_spent: bool,
    /// Step 4 has looked whether what the stages left fits the window.
    pub is_reduced: bool,
    /// The failure that made a stage run again inside step 5.
    pub failure: Option<ModelFailure>,
    /// The summary that is being asked for.
    pub summary: Option<SummaryRequest>,
    /// What the compaction of this turn freed.
    pub freed: Tokens,
    /// Why auto_compact left the conversation as it is, if it did.
    pub why_not: Option<String>,
}

/// How far the model call is.
#[derive(Debug, Default)]
pub(crate) struct ModelState {
    /// Who may be asked, in order.
    pub chain: Arc<[ChainModel]>,
    /// Attempts so far, of both purposes.
    pub attempt: u32,
    /// Attempts for the answer of the turn.
    pub turn_attempts: u32,
    /// Why the attempt under way was made.
    pub purpose: Option<Purpose>,
    /// Who was asked, where it was not the first of the chain.
    pub asked: Option<FallbackUsed>,
    /// The failure that made it necessary.
    pub cause: Option<&'static str>,
    /// How the next attempt for the answer is made.
    pub answering: RequestParams,
    /// How the next attempt for a summary is made.
    pub summarising: RequestParams,
    /// Digest and size of the request under way.
    pub request: (crate::digest::Digest, u64),
    /// What was tried, and how often.
    pub(crate) ledger: RecoveryLedger,
    /// The answer of the model, once it has come.
    pub answer: Option<ModelAnswer>,
    /// The line of the answer.
    pub answer_entry: Option<crate::ids::EntryId>,
    /// Tokens of all attempts together.
    pub usage: Usage,
    /// The estimate for system prompt and tools.
    pub(crate) fixed_estimate: Estimate,
    /// The estimate for the request under way, without correction by reports.
    pub(crate) raw_estimate: Estimate,
    /// Step 7: the call about which a model is asked.
    pub classifying: Option<Classifying>,
    /// The handler of a hook for which a model is asked.
    pub for_hook: Option<SideQuestion>,
    /// Step 8: the call for whose findings or page a model is asked.
    pub synthesizing: Option<SideQuestion>,
    /// What a wait under way is for.
    pub waiting: Option<Purpose>,
    /// The failure that no remedy removed.
    pub failed: Option<FailureClass>,
    /// Content of an answer that was paused.
    pub paused: Option<Vec<crate::block::Block>>,
    /// The attempts that it came from.
    pub paused_attempts: Vec<u32>,
    /// The last attempt whose content was taken back.
    pub withdrawn: u32,
}

/// A model is asked whether a call may run.
#[derive(Clone, Debug)]
pub(crate) struct Classifying {
    /// The model that is asked, and its provider.
    pub link: ChainModel,
    /// What its answer must hold.
    pub token: String,
    /// The estimate for the request.
    pub estimate: Tokens,
}

/// A model is asked for a handler of the firing that is awaited, or for a call.
#[derive(Clone, Debug)]
pub(crate) struct SideQuestion {
    /// The model that is asked, and its provider.
    pub link: ChainModel,
    /// Place of the handler in the firing, or of the call in the answer.
    pub index: usize,
    /// The estimate for the request.
    pub estimate: Tokens,
}

/// What an attempt is made with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestParams {
    /// Output ceiling, in tokens.
    pub max_tokens: u32,
    /// Whether the answer is streamed.
    pub streamed: bool,
}

impl ModelState {
    /// Returns the parameters of attempts for this purpose.
    pub(crate) fn parameters_for(&mut self, purpose: Purpose) -> &mut RequestParams {
        match purpose {
            Purpose::Turn => &mut self.answering,
            Purpose::Compaction | Purpose::Classification | Purpose::Hook | Purpose::Synthesis => {
                &mut self.summarising
            }
        }
    }
}

/// One call of the answer.
#[derive(Debug)]
pub struct CallState {
    /// As the model asked, or as a hook rewrote it.
    pub call: ToolCall,
    /// Whether the input is another than the one that was checked in step 6.
    pub is_rewritten: bool,
    /// The tool; `None` when there is none of that name.
    pub spec: Option<Arc<ToolSpec>>,
    /// How far it is.
    pub stage: CallStage,
}

/// How far a call is.
#[derive(Debug)]
pub enum CallStage {
    /// The gate has not decided yet.
    Open,
    /// It will not run; this is its answer.
    Refused(Box<ToolOutcome>),
    /// The gate allowed the call.
    Allowed(Box<Permit>),
    /// The call is under way.
    Running,
    /// It has ended, and waits for those before it.
    Ended(Box<ToolOutcome>),
    /// Its result is in the transcript.
    Answered,
}

/// A firing of hooks that is awaited.
#[derive(Debug)]
pub(crate) struct AwaitedFiring {
    /// Number of the firing within the turn.
    pub firing: u32,
    /// The event that was fired.
    pub event: HookEvent,
    /// The call, for tool events.
    pub call: Option<ToolUseId>,
    /// What waits for the answer.
    pub reason: FiringReason,
    /// The handlers that were started, in configuration order.
    pub handlers: Vec<HookHandler>,
    /// What they left, as far as it is known.
    pub outputs: Vec<HandlerOutput>,
}

/// What waits for the answer of hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FiringReason {
    /// The first prompt of a process is to be answered.
    SessionStart,
    /// A prompt, or the task of a sub-agent, is to be answered.
    Prompt,
    /// A call is to be decided about.
    PreToolUse,
    /// Somebody is to be asked about a call.
    PermissionRequest,
    /// Somebody who is to be asked is notified.
    Notification,
    /// The call at this place has run.
    AfterCall(usize),
    /// A summary is to be made.
    PreCompact,
    /// A summary was made.
    PostCompact,
    /// The conversation goes on after a compaction.
    CompactStart,
    /// An instruction file has entered the context.
    InstructionsLoaded,
    /// The call at the gate was denied.
    PermissionDenied,
    /// The working directory has moved.
    CwdChanged,
    /// All calls of the answer have their results.
    PostToolBatch,
    /// A settings file has changed.
    ConfigChange,
    /// The run would end.
    Stop,
    /// The run has failed.
    StopFailure,
}
