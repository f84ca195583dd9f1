//! What an embedder chooses: for all sessions, and for one.

mod clouds;
pub(crate) mod credentials;
mod mcp;

use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc};

use ennead_runtime::{
    governor::limits::GovernorLimits,
    ids::{SessionId, TenantId},
    mcp::config::ServerConfig,
    permission::PermissionMode,
    ports::{Clock, Tool, Transport},
    step::Step,
    step1_settings_resolution::{
        Durability,
        trust::{SettingSources, Trust},
    },
    step5_model_call::wire_format::WireFormat,
};

#[cfg(feature = "simulated")]
use ennead_simulated::Playbook;
pub use mcp::McpLimits;

#[cfg(feature = "simulated")]
use crate::world::simulated::{SimulatedTransport, Simulator};
use crate::{
    approval::Approver,
    transcript_writer::{FileOps, RealFiles},
    world::{
        clock::{SystemClock, SystemTimer, Timer},
        hook_process::inherited_chain,
        http_limits::HttpLimits,
        local_files::{LocalFiles, SourceFiles},
    },
};

/// The threads that sessions run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// On threads of their own, one scheduler each; all actors of a session stay on one. Waking a
    /// sleeping thread costs more than a small turn, so this is what hosting many agents wants.
    Threads(usize),
    /// On the runtime that [`crate::ennead::Ennead::start`] is called from. For tests on paused
    /// time, and for embedders with one runtime.
    Ambient,
}

/// What holds for all sessions of one [`crate::ennead::Ennead`].
#[derive(Clone)]
pub struct Options {
    /// Where sessions run; one thread per core by default.
    pub placement: Placement,
    /// The key of all draws; from the operating system by default.
    pub seed: Option<u64>,
    /// Reads the wall clock and the monotonic clock.
    pub clock: Arc<dyn Clock>,
    /// Waits out the pauses between two attempts at the model.
    pub timer: Arc<dyn Timer>,
    /// Reaches model servers; HTTP by default. Without the feature `http` it must be given.
    pub transport: Option<Arc<dyn Transport>>,
    /// Limits on HTTP exchanges; settings of a session may say otherwise.
    pub http: HttpLimits,
    /// What calls to one provider with one key may take together.
    pub governor: GovernorLimits,
    /// Reads settings and instruction files.
    pub files: Arc<dyn SourceFiles>,
    /// Writes and syncs the files of transcripts.
    pub file_ops: Arc<dyn FileOps>,
    /// Limits on MCP servers; from the environment by default.
    pub mcp: McpLimits,
    /// Makes turns stand still at steps.
    pub breakpoints: Option<Arc<dyn Breakpoints>>,
    /// Hooks that this process hangs from, outermost first; from the environment unless said
    /// otherwise. Sessions do not run them again.
    pub hook_chain: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            placement: Placement::Threads(cores),
            seed: None,
            clock: Arc::new(SystemClock::new()),
            timer: Arc::new(SystemTimer),
            transport: None,
            http: HttpLimits::default(),
            governor: GovernorLimits::default(),
            files: Arc::new(LocalFiles::default()),
            file_ops: Arc::new(RealFiles),
            mcp: McpLimits::default(),
            breakpoints: None,
            hook_chain: inherited_chain(),
        }
    }
}

impl Options {
    /// All sessions talk to the simulated model, which plays this playbook in process. Whatever
    /// their endpoint, no packet leaves.
    #[cfg(feature = "simulated")]
    pub fn simulated(playbook: Playbook) -> Self {
        let transport = SimulatedTransport::new(Simulator::new(playbook));
        Self { transport: Some(Arc::new(transport)), ..Self::default() }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("placement", &self.placement).finish_non_exhaustive()
    }
}

/// Lets a turn go on from a breakpoint. Calling it after the turn is gone does nothing.
pub type GoOn = Box<dyn FnOnce() + Send>;

/// Makes turns stand still when they reach a step, for looking around in a live tree.
///
/// The turn does not block: it serves interrupts and status while it waits.
pub trait Breakpoints: Send + Sync + fmt::Debug {
    /// A turn has reached a step. Keep `go_on` to hold it there; give it back to let it pass.
    fn reached(&self, session: &SessionId, step: Step, go_on: GoOn) -> Option<GoOn>;
}

/// A model server. Shown for people, it names its headers and not their values.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Names the provider in settings, records and outcomes.
    pub provider: Arc<str>,
    /// How it is spoken to.
    pub format: WireFormat,
    /// Its address, without the path that the format adds.
    pub base: Arc<str>,
    /// Headers of every request, credentials included; names in lower case.
    pub headers: Arc<[(String, String)]>,
}

impl Endpoint {
    /// A server of the Messages API at this base address (`https://api.anthropic.com`), with an API key if it wants
    /// one.
    pub fn messages(base: &str, api_key: Option<&str>) -> Self {
        let mut headers = vec![
            ("content-type".to_owned(), "application/json".to_owned()),
            ("anthropic-version".to_owned(), "2023-06-01".to_owned()),
        ];
        if let Some(key) = api_key {
            headers.push(("x-api-key".to_owned(), key.to_owned()));
        }
        Self {
            provider: "anthropic".into(),
            format: WireFormat::AnthropicMessages,
            base: base.into(),
            headers: headers.into(),
        }
    }

    /// A server of Chat Completions, with an API key if it wants one. The base address holds the
    /// version, as is the custom (`https://api.openai.com/v1`, `http://localhost:11434/v1`); where
    /// there is no path at all, `/v1` is added.
    pub fn openai_chat(base: &str, api_key: Option<&str>) -> Self {
        Self::openai("openai-chat", WireFormat::OpenAiChat, base, api_key)
    }

    /// A server of the Responses API; the address as in [`Endpoint::openai_chat`].
    pub fn openai_responses(base: &str, api_key: Option<&str>) -> Self {
        Self::openai("openai-responses", WireFormat::OpenAiResponses, base, api_key)
    }

    fn openai(provider: &str, format: WireFormat, base: &str, api_key: Option<&str>) -> Self {
        let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        if let Some(key) = api_key {
            headers.push(("authorization".to_owned(), format!("Bearer {key}")));
        }
        Self { provider: provider.into(), format, base: base.into(), headers: headers.into() }
    }

    /// For sessions of [`Options::simulated`], where nobody looks at the address. With another
    /// transport this host does not resolve.
    #[cfg(feature = "simulated")]
    pub fn simulated() -> Self {
        Self::messages("http://simulated.invalid", None)
    }
}

/// What holds for one session.
#[derive(Clone)]
pub struct SessionOptions {
    /// The working directory; made absolute when the session is opened.
    pub workspace: PathBuf,
    /// The model server that answers.
    pub endpoint: Endpoint,
    /// Servers to turn to when the first cannot answer, in order.
    pub fallbacks: Vec<Endpoint>,
    /// For whom the session works. Tenants take turns where a provider is short of something;
    /// sub-agents work for their parent's. Sessions that say nothing are one tenant together.
    pub tenant: Option<TenantId>,
    /// Names the session, a UUID; `None`: one is made. Naming an earlier one goes on with it.
    pub id: Option<SessionId>,
    /// Where transcripts lie; `None`: `.transcripts/` in the working directory, or the layout of
    /// existing SDKs when `CLAUDE_CONFIG_DIR` is set.
    pub transcripts: Option<PathBuf>,
    /// The tools, in the order they are offered.
    pub tools: Vec<Arc<dyn Tool>>,
    /// MCP servers whose tools the session has. Sessions in one directory with the same
    /// configuration share a server.
    pub mcp_servers: Vec<ServerConfig>,
    /// Whether the servers that `.mcp.json` of the working directory names are used, too; they are
    /// not. With [`Trust::Untrusted`] the file is left alone all the same.
    pub reads_mcp_json: bool,
    /// Answers questions; `None`: what would be asked is denied.
    pub approver: Option<Arc<dyn Approver>>,
    /// How far the workspace's own files are trusted; not at all by default.
    /// [`crate::permission::recorded_trust`] looks up what the user said of a directory.
    pub trust: Trust,
    /// Whose settings and instruction files are read next to those of the organisation; all.
    pub setting_sources: SettingSources,
    /// Whether settings files are read; they are.
    pub reads_settings: bool,
    /// Whether instruction files, git and memory are read; they are.
    pub reads_sources: bool,
    /// Whether answers are streamed; they are.
    pub streams: bool,
    /// Replaces the built-in system prompt.
    pub system_prompt: Option<String>,
    /// Follows the system prompt.
    pub append_system_prompt: Option<String>,
    /// The user's home; `None`: that of the process.
    pub home: Option<PathBuf>,
    /// Settings with the rank of flags: a JSON object as in a settings file. What cannot be read in
    /// it is ignored, and counted in the record of step 1.
    pub settings: serde_json::Value,
    /// Prompts that the session holds at once, the one that runs included; 16. One more is refused
    /// with `RunError::Busy`. 0 counts as 1.
    pub max_queued_prompts: u32,
}

impl SessionOptions {
    /// A session in this directory on that server, with the built-in tools.
    pub fn new(workspace: impl Into<PathBuf>, endpoint: Endpoint) -> Self {
        Self {
            workspace: workspace.into(),
            endpoint,
            fallbacks: Vec::new(),
            tenant: None,
            id: None,
            transcripts: None,
            tools: ennead_tools::registry::builtin_tools(),
            mcp_servers: Vec::new(),
            reads_mcp_json: false,
            approver: None,
            trust: Trust::Untrusted,
            setting_sources: SettingSources::default(),
            reads_settings: true,
            reads_sources: true,
            streams: true,
            system_prompt: None,
            append_system_prompt: None,
            home: None,
            settings: serde_json::json!({}),
            max_queued_prompts: 16,
        }
    }

    /// Reads no settings, no instruction files, no git and no memory, so that nothing but these
    /// options decides how the session behaves.
    #[must_use]
    pub fn isolated(self) -> Self {
        Self { reads_settings: false, reads_sources: false, ..self }
    }

    /// Asks for this model.
    #[must_use]
    pub fn model(self, model: &str) -> Self {
        self.setting("model", model.into())
    }

    /// Caps the turns of a run; 25 by default, and 0 says nothing.
    #[must_use]
    pub fn max_turns(self, max_turns: u32) -> Self {
        self.own_setting("maxTurns", max_turns.into())
    }

    /// Starts in this permission mode. Settings of an organisation may say otherwise.
    #[must_use]
    pub fn mode(mut self, mode: PermissionMode) -> Self {
        if let Ok(mode) = serde_json::to_value(mode) {
            self.permissions()["defaultMode"] = mode;
        }
        self
    }

    /// Allows what this rule matches, `Tool` or `Tool(specifier)`. A rule that
    /// [`Rule::parse`](ennead_runtime::step7_permission_gate::rule::Rule::parse) refuses is ignored.
    #[must_use]
    pub fn allow(self, rule: &str) -> Self {
        self.rule("allow", rule)
    }

    /// Denies what this rule matches, whatever allows it. A rule that cannot be read is ignored, as
    /// in [`Self::allow`].
    #[must_use]
    pub fn deny(self, rule: &str) -> Self {
        self.rule("deny", rule)
    }

    /// Forces lines to disk this often.
    #[must_use]
    pub fn durability(self, durability: Durability) -> Self {
        match serde_json::to_value(durability) {
            Ok(value) => self.own_setting("durability", value),
            Err(_) => self,
        }
    }

    /// Adds a tool, or replaces the one of the same name.
    #[must_use]
    pub fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        match self.tools.iter_mut().find(|it| it.spec().name == tool.spec().name) {
            Some(same) => *same = tool,
            None => self.tools.push(tool),
        }
        self
    }

    /// Adds an MCP server, or replaces the one of the same name.
    #[must_use]
    pub fn mcp_server(mut self, server: ServerConfig) -> Self {
        self.mcp_servers.retain(|it| it.name != server.name);
        self.mcp_servers.push(server);
        self
    }

    /// Sets a key of [`Self::settings`](SessionOptions#structfield.settings).
    #[must_use]
    pub fn setting(mut self, key: &str, value: serde_json::Value) -> Self {
        self.settings[key] = value;
        self
    }

    /// Sets a key of the settings that only ennead has, without its `ennead.` in front.
    #[must_use]
    pub fn own_setting(mut self, key: &str, value: serde_json::Value) -> Self {
        if !self.settings["ennead"].is_object() {
            self.settings["ennead"] = serde_json::json!({});
        }
        self.settings["ennead"][key] = value;
        self
    }

    fn rule(mut self, kind: &str, rule: &str) -> Self {
        let rules = &mut self.permissions()[kind];
        match rules.as_array_mut() {
            Some(rules) => rules.push(rule.into()),
            None => *rules = serde_json::json!([rule]),
        }
        self
    }

    fn permissions(&mut self) -> &mut serde_json::Value {
        if !self.settings["permissions"].is_object() {
            self.settings["permissions"] = serde_json::json!({});
        }
        &mut self.settings["permissions"]
    }

    /// The tools by name.
    pub(crate) fn tools_by_name(&self) -> BTreeMap<ennead_runtime::ids::ToolName, Arc<dyn Tool>> {
        self.tools.iter().map(|it| (it.spec().name.clone(), Arc::clone(it))).collect()
    }
}

impl fmt::Debug for SessionOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionOptions")
            .field("workspace", &self.workspace)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
