//! What an embedder chooses for one session.

mod approvals;
mod context;
mod hooks;
mod resuming;

use std::{collections::BTreeMap, fmt, num::NonZeroU32, path::PathBuf, sync::Arc};

use ennead_runtime::{
    ids::{SessionId, TenantId},
    mcp::config::ServerConfig,
    permission::PermissionMode,
    ports::Tool,
    run::agent_types::AgentType,
    step1_settings_resolution::{
        Durability,
        trust::{SettingSources, Trust},
    },
};

use ennead_tools::web_search::{SearchHit, SearchQuery, SearchWeb};

use super::{Endpoint, OptionError, Settings};
use crate::ports::{approver::Approver, in_process_hook::Hook, policy::PermissionPolicy};

/// What holds for one session.
///
/// Every field has a method of its name, which takes the value without an `Option` around it.
///
/// ```
/// use ennead::{Endpoint, SessionOptions, permission::PermissionMode};
///
/// let endpoint = Endpoint::messages("https://api.anthropic.com", Some("key"));
/// let options = SessionOptions::new("/home/me/project", endpoint)
///     .model("claude-sonnet-4-5")
///     .mode(PermissionMode::AcceptEdits)
///     .allow("Bash(cargo test *)")?
///     .append_system_prompt("Answer in one line.");
/// # Ok::<(), ennead::OptionError>(())
/// ```
#[derive(Clone)]
#[non_exhaustive]
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
    /// The message that an earlier session goes on from; `None`: its last one. What came after it stays on disk.
    pub goes_on_from: Option<String>,
    /// Where transcripts lie; `None`: `.transcripts/` in the working directory, or the layout of
    /// existing SDKs when `CLAUDE_CONFIG_DIR` is set.
    pub transcripts: Option<PathBuf>,
    /// The tools, in the order they are offered.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Finds pages on the web for the tool WebSearch.
    pub(crate) web_search: Option<Arc<dyn SearchWeb>>,
    /// MCP servers whose tools the session has. Sessions in one directory with the same
    /// configuration share a server.
    pub mcp_servers: Vec<ServerConfig>,
    /// Configurations of further servers, JSON, which plug-ins bring. They are read when the session is opened, since
    /// settings say which variables these may hold.
    pub(crate) plugin_servers: Vec<Arc<str>>,
    /// Whether the servers that `.mcp.json` of the working directory names are used, too. Defaults to
    /// false. With [`Trust::Untrusted`] the file is left alone all the same.
    pub reads_mcp_json: bool,
    /// Answers questions; `None`: what would be asked is denied.
    pub approver: Option<Arc<dyn Approver>>,
    /// Decides about calls before a question is asked. `None` asks at once.
    pub policy: Option<Arc<dyn PermissionPolicy>>,
    /// Whether questions may be answered through [`SessionHandle::answer`](crate::SessionHandle::answer)
    /// and [`Ennead::answer`](crate::Ennead::answer). Defaults to false: what would be
    /// asked is denied where there is no approver.
    pub answers_by_handle: bool,
    /// Whether the session may be put into the mode `bypassPermissions` while it runs. Defaults to
    /// false, unless it started in it.
    pub may_bypass: bool,
    /// How far the workspace's own files are trusted. Defaults to not at all.
    /// [`Environment::recorded_trust`](crate::Environment::recorded_trust) looks up the user's decision about a directory.
    pub trust: Trust,
    /// Whose settings and instruction files are read next to those of the organisation. Defaults to all.
    pub setting_sources: SettingSources,
    /// Whether settings files are read. Defaults to true.
    pub reads_settings: bool,
    /// Whether instruction files, git and memory are read. Defaults to true.
    pub reads_sources: bool,
    /// Whether answers are streamed. Defaults to true.
    pub streams: bool,
    /// Replaces the built-in system prompt.
    pub system_prompt: Option<String>,
    /// Follows the system prompt, whichever that is.
    pub append_system_prompt: Option<String>,
    /// Whether a system prompt that replaces the built-in one is all that a model gets as one, with what is
    /// appended, without the working directory and the names of tools. Defaults to false.
    pub bare_system_prompt: bool,
    /// Whether directories and the state of git go into the first message of the user and not into the
    /// system prompt, which is then the same for all users. Defaults to false.
    pub static_system_prompt: bool,
    /// The user's home; `None`: that of the process.
    pub home: Option<PathBuf>,
    /// Types of sub-agents in addition to those that are built in; of one name the first holds.
    pub agent_types: Vec<AgentType>,
    /// Settings with the rank of flags.
    pub settings: Settings,
    /// Prompts that wait after the one that runs; 16. One more is refused with `RunError::Busy`. With 0
    /// none waits.
    pub max_queued_prompts: u32,
    /// Hooks of this process, by the names that the settings call them by.
    pub(crate) hooks: BTreeMap<String, Arc<dyn Hook>>,
}

impl SessionOptions {
    /// Makes the options of a session in this directory, with this endpoint and the built-in tools.
    pub fn new(workspace: impl Into<PathBuf>, endpoint: Endpoint) -> Self {
        Self {
            workspace: workspace.into(),
            endpoint,
            fallbacks: Vec::new(),
            tenant: None,
            id: None,
            goes_on_from: None,
            transcripts: None,
            tools: ennead_tools::registry::builtin_tools(),
            web_search: None,
            mcp_servers: Vec::new(),
            plugin_servers: Vec::new(),
            reads_mcp_json: false,
            approver: None,
            policy: None,
            answers_by_handle: false,
            may_bypass: false,
            trust: Trust::Untrusted,
            setting_sources: SettingSources::default(),
            reads_settings: true,
            reads_sources: true,
            streams: true,
            system_prompt: None,
            append_system_prompt: None,
            bare_system_prompt: false,
            static_system_prompt: false,
            home: None,
            agent_types: Vec::new(),
            settings: Settings::new(),
            max_queued_prompts: 16,
            hooks: BTreeMap::new(),
        }
    }

    /// Reads no settings, no instruction files, no git and no memory, so that nothing but these
    /// options decides how the session behaves.
    #[must_use]
    pub fn isolated(self) -> Self {
        Self { reads_settings: false, reads_sources: false, ..self }
    }

    /// Sets the model that is asked.
    #[must_use]
    pub fn model(self, model: &str) -> Self {
        self.with_settings(|it| it.model(model))
    }

    /// Sets the maximum number of turns of a run. Defaults to 25.
    #[must_use]
    pub fn max_turns(self, max_turns: NonZeroU32) -> Self {
        self.with_settings(|it| it.max_turns(max_turns))
    }

    /// Sets the permission mode that the session starts in. Settings of an organisation may choose another.
    #[must_use]
    pub fn mode(self, mode: PermissionMode) -> Self {
        self.with_settings(|it| it.mode(mode))
    }

    /// Allows what this rule matches, `Tool` or `Tool(specifier)`.
    ///
    /// # Errors
    ///
    /// [`OptionError::Rule`] when the rule cannot be read.
    pub fn allow(mut self, rule: &str) -> Result<Self, OptionError> {
        self.settings = self.settings.allow(rule)?;
        Ok(self)
    }

    /// Denies what this rule matches, whatever allows it.
    ///
    /// # Errors
    ///
    /// As [`SessionOptions::allow`].
    pub fn deny(mut self, rule: &str) -> Result<Self, OptionError> {
        self.settings = self.settings.deny(rule)?;
        Ok(self)
    }

    /// Adds a rule whose calls the approver is asked about, whatever allows them.
    ///
    /// # Errors
    ///
    /// As [`SessionOptions::allow`].
    pub fn ask(mut self, rule: &str) -> Result<Self, OptionError> {
        self.settings = self.settings.ask(rule)?;
        Ok(self)
    }

    /// Sets when lines of the transcript are forced to disk.
    #[must_use]
    pub fn durability(self, durability: Durability) -> Self {
        self.with_settings(|it| it.durability(durability))
    }

    /// Merges these settings over those that are set, key by key.
    #[must_use]
    pub fn settings(self, settings: Settings) -> Self {
        self.with_settings(|it| it.over(settings))
    }

    /// Merges settings in the shape of a settings file over those that are set, key by key.
    ///
    /// # Errors
    ///
    /// [`OptionError::NotAnObject`]. Keys that cannot be read are ignored, as in a file.
    pub fn settings_json(self, settings: serde_json::Value) -> Result<Self, OptionError> {
        Ok(self.settings(Settings::from_json(settings)?))
    }

    /// Sets the working directory.
    #[must_use]
    pub fn workspace(self, workspace: impl Into<PathBuf>) -> Self {
        Self { workspace: workspace.into(), ..self }
    }

    /// Sets the model server that answers.
    #[must_use]
    pub fn endpoint(self, endpoint: Endpoint) -> Self {
        Self { endpoint, ..self }
    }

    /// Adds a server to turn to when those before it cannot answer.
    #[must_use]
    pub fn fallback(mut self, endpoint: Endpoint) -> Self {
        self.fallbacks.push(endpoint);
        self
    }

    /// Replaces the servers to turn to when the first cannot answer, in order.
    #[must_use]
    pub fn fallbacks(self, fallbacks: Vec<Endpoint>) -> Self {
        Self { fallbacks, ..self }
    }

    /// Sets the tenant that the session works for.
    #[must_use]
    pub fn tenant(self, tenant: impl Into<TenantId>) -> Self {
        Self { tenant: Some(tenant.into()), ..self }
    }

    /// Sets the name of the session, a UUID. An earlier session of this name is continued.
    #[must_use]
    pub fn id(self, id: impl Into<SessionId>) -> Self {
        Self { id: Some(id.into()), ..self }
    }

    /// Sets the directory that transcripts are kept in.
    #[must_use]
    pub fn transcripts(self, directory: impl Into<PathBuf>) -> Self {
        Self { transcripts: Some(directory.into()), ..self }
    }

    /// Replaces the whole list of tools.
    #[must_use]
    pub fn tools(self, tools: Vec<Arc<dyn Tool>>) -> Self {
        Self { tools, ..self }
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

    /// Adds the older tool MultiEdit, which makes several edits of a file or none.
    #[must_use]
    pub fn multi_edit(self) -> Self {
        ennead_tools::registry::optional_tools().into_iter().fold(self, Self::tool)
    }

    /// Adds the tool WebSearch, which finds pages by this closure: it gets what is searched for, and returns what was found, the
    /// best first, or why nothing was searched, in words for the model. A search that takes 60 s is dropped, and a panic is an error of
    /// the call; it must not block its thread. A session and its sub-agents make 200 searches at most.
    ///
    /// ```
    /// use ennead::{
    ///     Endpoint, SessionOptions,
    ///     data::{SearchHit, SearchQuery},
    /// };
    ///
    /// let options = SessionOptions::new(".", Endpoint::simulated()).web_search(
    ///     |query: SearchQuery| async move {
    ///         match query.text.as_str() {
    ///             "rust" => Ok(vec![SearchHit::new("Rust", "https://www.rust-lang.org/")]),
    ///             _ => Err("the index is not there yet".to_owned()),
    ///         }
    ///     },
    /// );
    /// ```
    #[must_use]
    pub fn web_search<F, R>(self, search: F) -> Self
    where
        F: Fn(SearchQuery) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Vec<SearchHit>, String>> + Send + 'static,
    {
        Self { web_search: Some(Arc::new(search)), ..self }
    }

    /// Adds an MCP server, or replaces the one of the same name.
    #[must_use]
    pub fn mcp_server(mut self, server: ServerConfig) -> Self {
        self.mcp_servers.retain(|it| it.name != server.name);
        self.mcp_servers.push(server);
        self
    }

    /// Adds a type of sub-agent, or replaces the one of the same name.
    #[must_use]
    pub fn agent_type(mut self, kind: AgentType) -> Self {
        self.agent_types.retain(|it| it.name != kind.name);
        self.agent_types.push(kind);
        self
    }

    /// Replaces the types of sub-agents in addition to those that are built in.
    #[must_use]
    pub fn agent_types(self, agent_types: Vec<AgentType>) -> Self {
        Self { agent_types, ..self }
    }

    /// Replaces the MCP servers whose tools the session has.
    #[must_use]
    pub fn mcp_servers(self, mcp_servers: Vec<ServerConfig>) -> Self {
        Self { mcp_servers, ..self }
    }

    /// Sets whether the servers that `.mcp.json` of the working directory names are used.
    #[must_use]
    pub fn reads_mcp_json(self, reads_mcp_json: bool) -> Self {
        Self { reads_mcp_json, ..self }
    }

    /// Sets whether answers are streamed. Defaults to `true`.
    #[must_use]
    pub fn streams(self, streams: bool) -> Self {
        Self { streams, ..self }
    }

    /// Sets the user's home directory.
    #[must_use]
    pub fn home(self, home: impl Into<PathBuf>) -> Self {
        Self { home: Some(home.into()), ..self }
    }

    /// Sets how many prompts wait after the one that runs.
    #[must_use]
    pub fn max_queued_prompts(self, max_queued_prompts: u32) -> Self {
        Self { max_queued_prompts, ..self }
    }

    fn with_settings(mut self, change: impl FnOnce(Settings) -> Settings) -> Self {
        self.settings = change(self.settings);
        self
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
