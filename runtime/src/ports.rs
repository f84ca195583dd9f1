//! The world as traits. The rules name what they need; `tools` and `actors` bring it.

pub mod agents;
mod made;
pub mod messages;
pub mod shells;
#[doc(hidden)]
pub mod verified;
pub mod web;
mod work;

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_core::Stream;
use http::HeaderMap;
use serde_json::{Map, Value};

use self::{
    agents::KeepAgents,
    messages::{AgentMessage, Delivered, Undelivered},
    shells::{Detached, KeepShells},
    web::FetchPages,
};
use crate::{
    digest::Digest,
    ids::{AgentId, SessionId, ToolUseId},
    redaction::Redactor,
    sandbox::Sandbox,
    step1_settings_resolution::{Certificates, ShellSettings, WorktreeBase},
    step7_permission_gate::Permit,
    time::Timestamp,
    tokens::Usage,
    tool::{ToolMemory, ToolOutcome, ToolSpec},
    wire_body::WireBody,
};

pub use work::{CommittedOutcome, WorkGuard};

/// A future that can be sent between threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Reads the wall clock and the monotonic clock.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Returns the time of the wall clock.
    fn now(&self) -> Timestamp;

    /// Returns the time since some fixed moment, for durations. It never goes back.
    fn elapsed(&self) -> Duration;
}

/// Something a model can have done.
///
/// A tool runs only with a [`Permit`], and only the permission gate makes one.
pub trait Tool: Send + Sync + fmt::Debug {
    /// Returns what the tool declares. It is the same on every call.
    fn spec(&self) -> &ToolSpec;

    /// Checks an input against the schema, before any hook or rule sees it.
    ///
    /// # Errors
    ///
    /// What is wrong, in words for the model.
    fn check_input(&self, input: &str) -> Result<(), String>;

    /// Runs one call. Dropping the future cancels it; work on other threads polls
    /// [`ToolContext::cancel`] and holds [`ToolContext::guard`] until it is over.
    fn run(&self, permit: Permit, context: ToolContext) -> BoxFuture<'static, ToolOutcome>;

    /// Calls the tool at its MCP server for the user's own configuration, such as a hook: the model did not ask for the
    /// call, and no rule is asked about it. Returns the texts of the result or why there is none, in words; `None`
    /// for a tool that is not one of a server.
    fn call_at_server(
        &self,
        _arguments: Map<String, Value>,
    ) -> Option<BoxFuture<'static, Result<String, String>>> {
        None
    }
}

/// What a call may use of its session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolContext {
    /// Id of the session that the call belongs to.
    pub session: SessionId,
    /// The directory the session was started in; absolute.
    pub workspace: Arc<str>,
    /// Further directories that count as workspace; absolute.
    pub additional_directories: Arc<[String]>,
    /// Where output too long for the model is kept, one file per output. Made when first needed.
    pub spill_directory: Arc<str>,
    /// The directory for temporary files; absolute.
    pub temporary: Arc<str>,
    /// What the session remembers, as of the start of the call.
    pub memory: Arc<ToolMemory>,
    /// Variables that replace inherited ones in child processes; an empty value removes one.
    pub env: Arc<[(String, String)]>,
    /// Says when to give up.
    pub cancel: Arc<dyn Cancel>,
    /// Kept by whatever still works on the call, blocking work included. When the last clone is
    /// gone, the call can no longer touch the world.
    pub guard: WorkGuard,
    /// Takes the outcome of a call once it can no longer be undone, from whatever thread did it.
    pub committed: CommittedOutcome,
    /// Runs sub-agents. `None` where nesting is not allowed.
    pub agents: Option<Arc<dyn SpawnAgent>>,
    /// Runs child processes outside the call. `None`: the call runs them itself.
    pub processes: Option<Arc<dyn HostProcess>>,
    /// Fetches pages from the web for the tool WebFetch. `None` for other tools, and where nothing does.
    #[doc(hidden)]
    pub pages: Option<Arc<dyn FetchPages>>,
    /// What holds for commands that go on in the background.
    pub shell: ShellSettings,
    /// What confines its commands. `None`: nothing does.
    pub sandbox: Option<Arc<Sandbox>>,
    /// Lines of shell that hooks have its commands begin with.
    pub exports: Arc<str>,
    /// Those for a command that leaves the sandbox: without those of a repository's hooks.
    pub unconfined_exports: Arc<str>,
    /// Takes secrets out of what is kept on disk for the model. `None`: nothing does.
    pub redactor: Option<Redactor>,
    /// Whether results, too, are without secrets.
    pub redacts_results: bool,
    /// Receives how far the call is. `None` if there is no listener.
    pub progress: Option<Arc<dyn ReportProgress>>,
    /// Measures how long the call takes.
    pub clock: Arc<dyn Clock>,
}

/// Publishes how far a call is.
pub trait ReportProgress: Send + Sync + fmt::Debug {
    /// Reports where the call is; a later report replaces it. Never waits.
    fn report(&self, progress: Progress);
}

/// How far a call is, as its tool says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// The share that is done, 0 to 100; `None` where the whole is not known.
    pub percent: Option<u8>,
    /// For people, on one line, at most 500 characters.
    pub text: Arc<str>,
}

/// Says when to give up.
pub trait Cancel: Send + Sync + fmt::Debug {
    /// Returns whether the call was cancelled. It is cheap: polled between slices of work, and last before a rename.
    fn is_cancelled(&self) -> bool;

    /// Ends when the call is cancelled.
    fn cancelled(&self) -> BoxFuture<'static, ()>;
}

/// Runs sub-agents for the Agent tool.
pub trait SpawnAgent: Send + Sync + fmt::Debug {
    /// Starts one and waits for its end, or for its beginning in the background. Dropping the future stops it.
    fn spawn(&self, order: AgentOrder) -> BoxFuture<'static, AgentReport>;

    /// Sends a message to a sub-agent, and waits until the agent has it on record. One that has ended goes on.
    #[doc(hidden)]
    fn send(&self, _message: AgentMessage) -> BoxFuture<'static, Result<Delivered, Undelivered>> {
        Box::pin(std::future::ready(Err(Undelivered::NotHere)))
    }

    /// Returns where the branch of an agent's worktree begins.
    fn worktree_base(&self) -> WorktreeBase;
}

/// Runs what owns a child process.
pub trait HostProcess: Send + Sync + fmt::Debug {
    /// Runs this work in an actor of its own below the session. Work for a turn that is over is
    /// dropped; so is work whose actor is killed, at its next await. Work that is detached ends with
    /// the session and not with its turn.
    fn host(&self, work: BoxFuture<'static, ()>, detached: Detached);

    /// Returns the commands of the session that run in the background.
    #[doc(hidden)]
    fn shells(&self) -> &dyn KeepShells;

    /// Returns the sub-agents of the session that work in the background.
    /// `None`: it has none.
    #[doc(hidden)]
    fn agents(&self) -> Option<&dyn KeepAgents> {
        None
    }
}

/// What a sub-agent is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentOrder {
    /// The tool use that asks.
    pub tool_use: ToolUseId,
    /// A few words for people.
    pub description: String,
    /// The task, as the prompt of the sub-agent.
    pub prompt: String,
    /// Its place among the sub-agents of the same tool use, where that asks for several.
    pub part: Option<u32>,
    /// Its type; `None` means `general-purpose`.
    pub agent_type: Option<String>,
    /// Its model; `None` means its parent's.
    pub model: Option<String>,
    /// The worktree that it works in; `None` means the workspace itself.
    pub worktree: Option<AgentPlace>,
    /// Whether it works in the background; `None`: if its type says so. One in a worktree is waited for.
    pub in_background: Option<bool>,
}

/// A worktree for a sub-agent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentPlace {
    /// The directory below the workspace that it works in.
    pub directory: String,
    /// Kept until nothing of the sub-agent can touch the worktree any more.
    pub guard: WorkGuard,
}

/// How a sub-agent ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentReport {
    /// How it ended. `None` when it was started and works in the background: its end is reported later, and the
    /// text is the path of its transcript.
    pub status: Option<AgentStatus>,
    /// Which; `None` when none was started.
    pub agent: Option<AgentId>,
    /// The text of its last answer, or what represents it.
    pub text: String,
    /// Tool calls it made.
    pub n_tool_uses: u64,
    /// What it used, its own sub-agents included.
    pub usage: Usage,
    /// Hash of the last record of its transcript.
    pub head: Option<Digest>,
    /// Whether a message has it go on.
    pub can_go_on: bool,
}

/// How a sub-agent ended. The codes are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AgentStatus {
    /// The sub-agent ended with an answer.
    Completed,
    /// It ended with an error.
    Failed,
    /// A limit ended it.
    Cut,
    /// It made no progress.
    Stalled,
    /// The sub-agent was stopped before its end.
    Cancelled,
    /// It was never started: a limit of the tree.
    Refused,
}

/// Sends requests to model servers.
pub trait Transport: Send + Sync + fmt::Debug {
    /// Sends one request and waits for the head of the answer. Dropping the future or the answer
    /// closes the exchange.
    fn send(
        &self,
        request: WireRequest,
    ) -> BoxFuture<'static, Result<WireResponse, TransportError>>;
}

/// One HTTP request to a model server, or to an MCP server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WireRequest {
    /// `POST`, as all model servers want it; MCP servers are sent others, too.
    pub method: http::Method,
    /// Absolute address that the request goes to.
    pub url: Arc<str>,
    /// In order; names in lower case.
    pub headers: Arc<[(String, String)]>,
    /// Body of the request, as JSON, in pieces.
    pub body: WireBody,
    /// Until the connection is open. Who needs no connection does not look at it.
    pub connect_timeout: std::time::Duration,
    /// Who vouches for the server. Who needs no connection does not look at it.
    pub certificates: Certificates,
}

/// The head of an answer, and its body to be read.
#[non_exhaustive]
pub struct WireResponse {
    /// Status of the HTTP response.
    pub status: u16,
    /// All headers of the response.
    pub headers: HeaderMap,
    /// The body, which arrives in pieces.
    pub body: ResponseBody,
}

impl fmt::Debug for WireResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WireResponse")
            .field("status", &self.status)
            .field("headers", &self.headers)
            .finish_non_exhaustive()
    }
}

/// A body, in chunks as they arrive. Nothing comes after an error.
pub type ResponseBody = Pin<Box<dyn Stream<Item = Result<Bytes, TransportError>> + Send>>;

/// Why there was no (whole) answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// No connection could be made.
    #[error("cannot connect to {url}: {why}")]
    Connect {
        /// Address that the request went to.
        url: String,
        /// The cause in words.
        why: String,
    },
    /// The certificate or the handshake was refused. Never tried again.
    #[error("secure connection to {url} refused: {why}")]
    Tls {
        /// Address that the request went to.
        url: String,
        /// The cause in words.
        why: String,
    },
    /// The answer did not begin in time.
    #[error("no answer for {ms} ms")]
    FirstByte {
        /// The limit that was reached, in milliseconds.
        ms: u64,
    },
    /// The request cannot be sent as it is: an address or a header that is none. Never tried again.
    #[error("the request cannot be sent: {why}")]
    Unsendable {
        /// The cause in words.
        why: String,
    },
    /// Nothing came for too long.
    #[error("no byte for {ms} ms")]
    Idle {
        /// The limit that was reached, in milliseconds.
        ms: u64,
    },
    /// Bytes came, but for too long none that say anything: comments and pings.
    #[error("no event for {ms} ms")]
    NoEvent {
        /// The limit that was reached, in milliseconds.
        ms: u64,
    },
    /// The answer was not whole in time.
    #[error("the answer took longer than {ms} ms")]
    Total {
        /// The limit that was reached, in milliseconds.
        ms: u64,
    },
    /// The connection broke while the response arrived.
    #[error("the connection broke: {why}")]
    Broken {
        /// The cause in words.
        why: String,
    },
}
