//! Step 1: layers of settings become the settings that hold.
//!
//! A layer is what one file or flag says, all of it optional. [`merge()`] is a pure function of the
//! layers; the result remembers which layer each value came from.

mod certificates;
mod code_edit;
mod ennead_section;
mod explain;
mod fallback_model;
mod hooks;
pub mod instructions;
pub mod layer;
pub mod merge;
mod merged;
mod models;
#[cfg(test)]
mod page;
mod redact;
mod sandbox;
pub mod secrets;
pub mod trust;
mod worktree_base;

use std::{
    collections::BTreeMap,
    num::{NonZeroU32, NonZeroU64},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

pub use certificates::Certificates;
pub use code_edit::CodeEditSettings;
pub use explain::{Explained, explain};
pub use fallback_model::FallbackModel;
pub use merge::{Resolved, merge, merge_values, merge_with};
pub use merged::{MergeOrder, Merged};
pub use redact::RedactSettings;
pub use secrets::SecretEnv;
pub use worktree_base::WorktreeBase;

use crate::{
    catalogue::Catalogue,
    hook::HookTable,
    output::OutputSettings,
    permission::{PermissionMode, RuleText, Scope},
    recovery::backoff::DEFAULT_RETRIES,
    sandbox::SandboxSettings,
    step5_model_call::{adaptation::Parameters, request::PromptCaching},
};

/// The settings that hold for a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The model asked for.
    pub model: String,
    /// What is known about models, the user's own facts included.
    pub models: Arc<Catalogue>,
    /// Output ceiling of a model call, in tokens.
    pub max_output_tokens: u32,
    /// The most output the model can give, in tokens; escalation stops here.
    pub model_max_output_tokens: u32,
    /// The model's window, in tokens.
    pub context_window: u64,
    /// What is marked for the provider's cache.
    pub prompt_caching: PromptCaching,
    /// Models to turn to when the first cannot answer, in order (MDL-8).
    pub fallback: Vec<FallbackModel>,
    /// Retries per model and turn (MDL-6); 10, and 15 at most.
    pub max_retries: u32,
    /// Turns one run may take (TRN-7).
    pub max_turns: NonZeroU32,
    /// Calls one turn may make (TOL-3).
    pub max_tool_calls: u32,
    /// Calls of a turn that run at once (TOL-2).
    pub max_parallel_calls: u32,
    /// Tokens one run may use, sub-agents included; `None` means no limit (AGT-7).
    pub run_token_budget: Option<u64>,
    /// What a session may cost in one process, in millionths of a US dollar, sub-agents included;
    /// `None` means no limit. What is spent is looked at after each turn.
    pub max_cost_micro_usd: Option<u64>,
    /// What may be done.
    pub permissions: Permissions,
    /// What is run at fixed points.
    pub hooks: HookTable,
    /// A failing hook denies (`hooks.fail_closed`).
    pub hooks_fail_closed: bool,
    /// Variables for child processes.
    pub env: BTreeMap<String, String>,
    /// Variables that child processes do not get, and servers that get some all the same.
    pub secrets: SecretEnv,
    /// What is taken out of texts besides, and for whom.
    pub redact: RedactSettings,
    /// Feature gates and caps of the shapers; frozen when the session starts (SHP-10).
    pub shapers: ShaperSettings,
    /// Limits on the tree of sub-agents.
    pub agents: AgentLimits,
    /// Commands in the background.
    pub shell: ShellSettings,
    /// What confines shell commands.
    pub sandbox: SandboxSettings,
    /// What is read as instructions and kept as memory.
    pub instructions: InstructionSettings,
    /// Where the worktrees of sub-agents begin (`worktree.baseRef`).
    pub worktree_base: WorktreeBase,
    /// How long a model server is waited for.
    pub http: HttpSettings,
    /// Who vouches for a model server in addition to those whom the system trusts.
    pub certificates: Certificates,
    /// Who is asked about calls, and for how long.
    pub approvals: ApprovalSettings,
    /// How many files a turn changes before somebody is asked.
    pub code_edit: CodeEditSettings,
    /// How often lines are forced to disk.
    pub durability: Durability,
    /// Defaults of the channels.
    pub output: OutputSettings,
    /// Reasoning, effort, sampling and the like, as asked for; a model may take less.
    pub parameters: Parameters,
}

/// Permission rules and the permission mode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// The mode a session starts in.
    pub mode: PermissionMode,
    /// All rules of all layers, in the order of [`Scope`].
    pub rules: Vec<RuleText>,
    /// Modes that the settings switch off.
    pub off: Vec<PermissionMode>,
    /// Directories that count as workspace in addition to the working directory.
    pub additional_directories: Vec<String>,
    /// The directory of the plans that sessions write in the mode `plan` (`plansDirectory`), as written;
    /// `None`: `plans` next to the user's settings.
    pub plans_directory: Option<String>,
}

/// What is read as instructions and kept as memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstructionSettings {
    /// Globs of absolute paths of instruction files that are not read (`claudeMdExcludes`). They do not
    /// hold for files of the organisation.
    pub excludes: Arc<[String]>,
    /// Instructions of the organisation that its settings hold (`claudeMd`).
    pub managed: Option<Arc<str>>,
    /// Whether there is an auto memory (`autoMemoryEnabled`); true.
    pub has_memory: bool,
}

impl Default for InstructionSettings {
    fn default() -> Self {
        Self { excludes: Arc::default(), managed: None, has_memory: true }
    }
}

/// Gates and caps of the five shapers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShaperSettings {
    /// Characters of one tool result that the model sees at most; 50,000.
    pub per_result_cap_chars: u64,
    /// Tools whose results are never cut.
    pub exempt_tools: Vec<String>,
    /// Whether stage `HISTORY_SNIP` runs.
    pub history_snip: bool,
    /// Whether stage `CONTEXT_COLLAPSE` runs.
    pub context_collapse: bool,
    /// Has no effect; setting it gives a warning. Read for turns that were recorded when it changed a word.
    pub cached_microcompact: bool,
    /// The dearest stage; on unless switched off.
    pub auto_compact: bool,
    /// Fixed trigger in tokens; `None` means 70 % of the context budget.
    pub auto_compact_max_tokens: Option<u64>,
    /// Messages at which pressure begins whatever their size; 200.
    pub max_messages: u32,
    /// Newest messages that no stage drops or changes; 4.
    pub keep_newest: u32,
    /// Minutes without an answer after which a provider's cache is cold; 60.
    pub idle_minutes_threshold: u32,
}

impl Default for ShaperSettings {
    fn default() -> Self {
        Self {
            per_result_cap_chars: 50_000,
            exempt_tools: Vec::new(),
            history_snip: false,
            context_collapse: false,
            cached_microcompact: false,
            auto_compact: true,
            auto_compact_max_tokens: None,
            max_messages: 200,
            keep_newest: 4,
            idle_minutes_threshold: 60,
        }
    }
}

/// Limits on the tree of sub-agents below one session (AGT-7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentLimits {
    /// Generations below the top session; 3.
    pub max_depth: u32,
    /// Sub-agents of one session at once; 5.
    pub max_at_once: u32,
    /// Sub-agents of the whole tree, ended ones included; 50.
    pub max_in_tree: u32,
    /// Sub-agents of the whole tree that are started within a minute; 60.
    pub max_per_minute: NonZeroU32,
    /// Seconds from the start of a sub-agent to its end; `None` means as long as its parent has.
    pub max_agent_seconds: Option<u64>,
    /// Turns of the whole tree; `None` means no limit.
    pub max_tree_turns: Option<u64>,
    /// Tokens of the whole tree; `None` means no limit.
    pub max_tree_tokens: Option<u64>,
    /// Money of the whole tree, in millionths of a US dollar; `None` means no limit. A model whose
    /// price is not known is not asked under such a limit.
    pub max_tree_micro_usd: Option<u64>,
    /// Seconds that all runs of the top session may take together; `None` means no limit.
    pub max_tree_seconds: Option<u64>,
}

impl AgentLimits {
    /// Returns whether a model call or time of the tree can be refused at all.
    pub fn bounds_calls(&self) -> bool {
        let sums = [self.max_tree_turns, self.max_tree_tokens, self.max_tree_micro_usd];
        self.max_tree_seconds.is_some() || sums.iter().any(Option::is_some)
    }
}

impl Default for AgentLimits {
    fn default() -> Self {
        Self {
            max_depth: 3,
            max_at_once: 5,
            max_in_tree: 50,
            max_per_minute: NonZeroU32::MIN.saturating_add(59),
            max_agent_seconds: None,
            max_tree_turns: None,
            max_tree_tokens: None,
            max_tree_micro_usd: None,
            max_tree_seconds: None,
        }
    }
}

/// What holds for shell commands that go on after their call (TOL-8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ShellSettings {
    /// Whether a command that reaches its time limit goes on in the background; true. Otherwise it is
    /// killed.
    pub background_at_limit: bool,
    /// Commands of one session that run in the background at once; 16. With 0 there are none.
    pub max_background: u32,
    /// Seconds after which a command in the background is killed; `None` means with its session.
    pub max_background_seconds: Option<NonZeroU64>,
}

impl Default for ShellSettings {
    fn default() -> Self {
        Self { background_at_limit: true, max_background: 16, max_background_seconds: None }
    }
}

/// What holds for questions about calls (PRM-9).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ApprovalSettings {
    /// Seconds after which a question is answered with no; a day.
    pub expiry_seconds: NonZeroU64,
    /// The model that decides in the mode `auto`; `None`: a fast one.
    pub classifier_model: Option<String>,
    /// Milliseconds after which that model is not waited for any more; 10 s.
    pub classifier_timeout_ms: NonZeroU64,
}

impl Default for ApprovalSettings {
    fn default() -> Self {
        Self {
            expiry_seconds: NonZeroU64::MIN.saturating_add(24 * 60 * 60 - 1),
            classifier_model: None,
            classifier_timeout_ms: NonZeroU64::MIN.saturating_add(9_999),
        }
    }
}

/// How long a model server is waited for, in milliseconds (MDL-12). What is not set is as the
/// embedder has it; a wait cannot be without end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HttpSettings {
    /// Until the connection is open.
    pub connect_ms: Option<NonZeroU64>,
    /// Until a streamed answer begins.
    pub first_byte_ms: Option<NonZeroU64>,
    /// Between two pieces of an answer.
    pub idle_ms: Option<NonZeroU64>,
    /// Between two pieces of a stream that say something.
    pub event_idle_ms: Option<NonZeroU64>,
    /// Until the answer is whole.
    pub total_ms: Option<NonZeroU64>,
}

/// How often lines are forced to disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// Written: survives a killed process.
    Process,
    /// Also synced at the end of a turn and before a call with side effects.
    #[default]
    Turn,
    /// Every line is synced to disk before it is acknowledged.
    Entry,
}

impl Settings {
    /// Returns what is marked in requests of a session. A sub-agent waits for no person, so five minutes are enough for
    /// it.
    pub(crate) fn prompt_caching_of(&self, is_agent: bool) -> PromptCaching {
        match self.prompt_caching {
            PromptCaching::OneHour if is_agent => PromptCaching::FiveMinutes,
            caching => caching,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            model: "claude-sonnet-5".into(),
            models: Arc::default(),
            max_output_tokens: 32_000,
            model_max_output_tokens: 64_000,
            context_window: 200_000,
            prompt_caching: PromptCaching::default(),
            fallback: Vec::new(),
            max_retries: DEFAULT_RETRIES,
            max_turns: NonZeroU32::MIN.saturating_add(24),
            max_tool_calls: 25,
            max_parallel_calls: 10,
            run_token_budget: None,
            max_cost_micro_usd: None,
            permissions: Permissions::default(),
            hooks: HookTable::new(),
            hooks_fail_closed: false,
            env: BTreeMap::new(),
            secrets: SecretEnv::default(),
            redact: RedactSettings::default(),
            shapers: ShaperSettings::default(),
            agents: AgentLimits::default(),
            shell: ShellSettings::default(),
            sandbox: SandboxSettings::default(),
            instructions: InstructionSettings::default(),
            worktree_base: WorktreeBase::default(),
            http: HttpSettings::default(),
            certificates: Certificates::default(),
            approvals: ApprovalSettings::default(),
            code_edit: CodeEditSettings::default(),
            durability: Durability::default(),
            output: OutputSettings::default(),
            parameters: Parameters::default(),
        }
    }
}

/// What one layer says, as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LayerText {
    /// Whose layer it is.
    pub scope: Scope,
    /// Where the text came from: a path, or the name of a flag.
    pub source: String,
    /// The file's content, as JSON text.
    pub text: String,
}
