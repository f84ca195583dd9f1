//! What a turn wants done. The turn never does it itself.

use std::sync::Arc;

use crate::{
    approval::Question,
    event::Event,
    hook::{HookEvent, HookHandler, HookInput, WatchedFile},
    ids::{ToolName, ToolUseId},
    run::{
        RunEnd,
        derived_settings::{DeriveOrder, DerivedSettings},
    },
    step::Step,
    step1_settings_resolution::{Certificates, HttpSettings},
    step3_context_assembly::SourcesOrder,
    step4_context_shapers::{
        Due, ShapedContext, ShaperSetup, Stage, StageResult, SummaryRequest, apply_summary,
        run_due, run_stage,
    },
    step5_model_call::{request::EncodedRequest, wire_format::WireFormat},
    step7_permission_gate::{CommandOrder, Permit, hook_condition::CallOfHook},
    tokens::Usage,
    tool::{ToolCall, ToolSpec},
    transcript::entry::{Line, StoredText},
};
pub use crate::{
    recovery::chain::FallbackUsed, run::history::HistoryUpdate, step5_model_call::purpose::Purpose,
};

/// Something to be done. Effects of one input are carried out in order.
#[derive(Debug)]
pub enum Effect {
    /// Come back with [`super::TurnInput::Run`] for this step.
    Next(Step),
    /// Look at the settings files.
    ReadSettings,
    /// Merge settings that are long and compile their rules; answered by
    /// [`super::TurnInput::SettingsMerged`].
    MergeSettings(Box<DeriveOrder>),
    /// Read the world's part of the nine sources.
    ReadSources,
    /// Look at the sources again.
    LookAtSources(Box<SourcesOrder>),
    /// Run this shaper stage.
    Shape(Box<ShapeOrder>),
    /// Sends a request to the model.
    CallModel(Box<ModelCallOrder>),
    /// Come back with [`super::TurnInput::TimerFired`] after this many milliseconds.
    Wait {
        /// The attempt that waits.
        attempt: u32,
        /// Length of the wait, in milliseconds.
        ms: u64,
    },
    /// Let these calls in, in order, or refuse them; check their inputs.
    Dispatch(Vec<ToolCall>),
    /// Run hook handlers side by side.
    RunHooks(Box<HookFiring>),
    /// Find out what lies at a path.
    ResolvePath {
        /// Id of the tool use, as the model issued it.
        call: ToolUseId,
        /// As the model wrote it; empty means the working directory.
        given: String,
    },
    /// Judge a shell command. It may be long, so not where others wait.
    JudgeCommand {
        /// Id of the tool use, as the model issued it.
        call: ToolUseId,
        /// The command and the rules that apply to it.
        order: Box<CommandOrder>,
    },
    /// Read the plan of the session.
    ReadPlan {
        /// Id of the tool use that shows it to a person.
        call: ToolUseId,
        /// The absolute path of the file with the plan.
        file: String,
    },
    /// Ask the policy of the embedder; answered by [`super::TurnInput::PolicyAnswered`].
    ConsultPolicy(Arc<Question>),
    /// Asks those that can answer until the question expires; answered by
    /// [`super::TurnInput::PermissionAnswered`].
    AskPermission(Arc<Question>),
    /// Runs one tool call that the gate allowed.
    ExecuteTool {
        /// Lets exactly this call run.
        permit: Box<Permit>,
        /// The call, as the turn knows it; who runs it checks the permit against it.
        call: ToolCall,
        /// Declaration of the tool.
        spec: Arc<ToolSpec>,
        /// Whether the input is to be checked first, since it is another than the one of step 6. One that
        /// does not fit is answered by [`super::TurnInput::InputRefused`].
        must_check: bool,
    },
    /// Write these lines, then send [`super::TurnInput::Recorded`] if they are awaited.
    Append(Box<Append>),
    /// Sends an event to all listeners.
    Publish(Event),
    /// Watch files, as these settings have it; replaces what was watched before.
    WatchFiles(Box<WatchOrder>),
    /// The turn is over. Its last lines are in the report.
    Finish(Box<TurnReport>),
}

/// Lines of one input, written at once.
#[derive(Debug)]
pub struct Append {
    /// The lines, in the order in which they are written.
    pub lines: Vec<Line>,
    /// Texts that the lines refer to; written before them.
    pub stored: Vec<StoredText>,
    /// What the session is known by from now on. It follows the lines and is not a record of ours: nothing is decided by it.
    pub title: Option<Arc<str>>,
    /// Counts up within the turn.
    pub ticket: u64,
    /// Force to disk before answering, where the durability mode says so for such lines.
    pub sync: bool,
    /// Whether the turn waits for [`super::TurnInput::Recorded`]; such an append may have no lines.
    pub is_awaited: bool,
    /// What the session is to remember of the lines.
    pub updates: Vec<HistoryUpdate>,
}

/// What a shaper stage works on.
#[derive(Clone, Debug)]
pub struct ShapeOrder {
    /// The shaper stage to run.
    pub stage: Stage,
    /// What the stage before left.
    pub context: ShapedContext,
    /// Thresholds and caps of the stages.
    pub setup: Arc<ShaperSetup>,
    /// The second phase of auto_compact: the request and the summary that came of it.
    pub summary: Option<(SummaryRequest, String, crate::ids::EntryId)>,
    /// What the trigger of the stage found; `None` where the stage asks its trigger itself.
    pub due: Option<Due>,
}

impl ShapeOrder {
    /// Carries out the order.
    pub fn run(&self) -> StageResult {
        match (&self.summary, &self.due) {
            (Some((request, summary, id)), _) => {
                apply_summary(&self.context, &self.setup, request, summary, id.clone())
            }
            (None, Some(due)) => run_due(self.stage, &self.context, &self.setup, due),
            (None, None) => run_stage(self.stage, &self.context, &self.setup),
        }
    }
}

/// One attempt to get an answer from a model.
#[derive(Clone, Debug)]
pub struct ModelCallOrder {
    /// What the answer is for.
    pub purpose: Purpose,
    /// Counts up within the turn, over all purposes.
    pub attempt: u32,
    /// Who is asked: a place in [`SessionFacts::providers`](crate::run::facts::SessionFacts).
    pub provider: usize,
    /// The wire format of its requests and answers.
    pub format: WireFormat,
    /// The model, by its name there.
    pub model: Arc<str>,
    /// The encoded body and its digest.
    pub request: EncodedRequest,
    /// Whether it repeats a call that failed.
    pub is_retry: bool,
    /// Whether the turn asks another provider when this one cannot be asked now.
    pub has_other_provider: bool,
    /// What the settings say about waiting for it.
    pub http: HttpSettings,
    /// Where the call is asked again after a silence, the longest that it may be silent, in milliseconds.
    pub patience_ms: Option<u64>,
    /// The longest that the whole call may take, waiting at the governor included, in milliseconds.
    pub limit_ms: Option<u64>,
    /// What the settings say about who vouches for it.
    pub certificates: Certificates,
    /// Whether the answer is to be streamed.
    pub streamed: bool,
}

/// Handlers to be run for one event.
#[derive(Clone, Debug)]
pub struct HookFiring {
    /// Counted from 0 within the turn.
    pub firing: u32,
    /// The event that the hooks run on.
    pub event: HookEvent,
    /// The call, for tool events.
    pub call: Option<ToolUseId>,
    /// The tool, for tool events.
    pub tool: Option<ToolName>,
    /// What the handlers read on standard input.
    pub input: HookInput,
    /// The handlers to run, in configuration order.
    pub handlers: Vec<HookHandler>,
    /// The call that their conditions are held against, where some have one.
    pub call_of_hook: Option<CallOfHook>,
}

/// What files are watched by.
#[derive(Clone, Debug)]
pub struct WatchOrder {
    /// The settings in force, with the handlers.
    pub derived: Arc<DerivedSettings>,
    /// The working directory; absolute.
    pub cwd: Arc<str>,
    /// What hooks have named, in place of what they named before; `None`: that stays.
    pub named: Option<Vec<WatchedFile>>,
}

/// How a turn ended.
#[derive(Debug)]
pub struct TurnReport {
    /// Its last lines, to be written before anything else of the session is.
    pub append: Option<Box<Append>>,
    /// `None`: the run goes on with another turn.
    pub end: Option<RunEnd>,
    /// Tokens of all model calls of the turn.
    pub usage: Usage,
    /// What the next turn is to know.
    pub memory: crate::run::conversation::TurnMemory,
    /// An error that ended it, in words.
    pub error: Option<String>,
    /// The fallback that answered, if the first model did not.
    pub fallback: Option<FallbackUsed>,
}
