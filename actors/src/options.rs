//! What an embedder chooses: for all sessions, and for one.

mod breakpoints;
mod clouds;
pub(crate) mod credentials;
mod endpoint;
mod error;
mod from_env;
mod mcp;
mod session;
mod settings;

use std::{fmt, sync::Arc};

use ennead_runtime::{
    governor::limits::GovernorLimits,
    ports::{Clock, Transport},
};
#[cfg(feature = "simulated")]
use ennead_simulated::Playbook;

pub use breakpoints::{Breakpoints, GoOn};
pub use endpoint::Endpoint;
pub use error::OptionError;
pub(crate) use from_env::ENDPOINT_VARIABLES;
pub use mcp::McpLimits;
pub use session::SessionOptions;
pub use settings::Settings;

#[cfg(feature = "simulated")]
use crate::world::simulated::{SimulatedTransport, Simulator};
use crate::{
    groundwork::scheduler,
    ports::transcript_store::{FileStore, TranscriptStore},
    world::{
        clock::{SystemClock, SystemTimer, Timer},
        environment::Environment,
        http_limits::HttpLimits,
        local_files::LocalFiles,
        source_files::{OfEmbedder, SourceFiles, SourceLookup},
    },
};

/// The threads that sessions run on.
///
/// ```
/// use ennead::{Options, Placement};
///
/// let options = Options::default().placement(Placement::Threads(2));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Placement {
    /// On threads of their own, one scheduler each; all actors of a session stay on one. Waking a
    /// sleeping thread costs more than a small turn, so this is what hosting many agents wants.
    Threads(usize),
    /// On the runtime that [`crate::Ennead::start`] is called from. For tests on paused
    /// time, and for embedders with one runtime.
    Ambient,
}

impl Placement {
    /// Returns the builder of a current-thread runtime with sockets and timers, for a thread of the embedder's own that
    /// hosts sessions: start an [`Ennead`](crate::Ennead) with [`Placement::Ambient`] on it.
    ///
    /// ```
    /// use ennead::{Endpoint, Ennead, Placement, SessionOptions};
    ///
    /// # let workspace = tempfile::tempdir()?;
    /// let thread = std::thread::spawn({
    ///     let workspace = workspace.path().to_owned();
    ///     move || -> std::io::Result<String> {
    ///         Placement::runtime_builder().build()?.block_on(async {
    ///             // `Ennead::start` with `Placement::Ambient` for a real model.
    ///             let ennead = Ennead::simulated().await.map_err(std::io::Error::other)?;
    ///             let options = SessionOptions::new(workspace, Endpoint::simulated());
    ///             let session = ennead.open(options).await.map_err(std::io::Error::other)?;
    ///             let outcome = session.prompt("What is 6 + 7?").await;
    ///             ennead.shutdown().await;
    ///             Ok(outcome.map_err(std::io::Error::other)?.text)
    ///         })
    ///     }
    /// });
    /// let text = thread.join().expect("it does not panic")?;
    /// assert!(text.starts_with("13"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn runtime_builder() -> tokio::runtime::Builder {
        scheduler::runtime_builder()
    }
}

/// What holds for all sessions of one [`crate::Ennead`].
///
/// Every field has a method of its name, which takes the value without an `Option` around it.
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use ennead::{Options, SystemClock, model::HttpLimits};
///
/// let options = Options::default()
///     .clock(Arc::new(SystemClock::new()))
///     .http(HttpLimits::default().within(Duration::from_secs(60)));
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// Where sessions run; one thread per core by default.
    pub placement: Placement,
    /// The key of all draws; from the operating system by default.
    pub seed: Option<u64>,
    /// Reads the wall clock and the monotonic clock.
    pub clock: Arc<dyn Clock>,
    /// Waits for what ends by time: see [`Timer`].
    pub timer: Arc<dyn Timer>,
    /// Reaches model servers; HTTP by default. Without the feature `http` it must be given.
    pub transport: Option<Arc<dyn Transport>>,
    /// Limits on HTTP exchanges; settings of a session may say otherwise.
    pub http: HttpLimits,
    /// What calls to one provider with one key may take together.
    pub governor: GovernorLimits,
    /// Reads settings and instruction files; the machine's own by default.
    pub(crate) lookup: Arc<dyn SourceLookup>,
    /// Keeps transcripts; the file system by default.
    pub transcript_store: Arc<dyn TranscriptStore>,
    /// Limits on MCP servers; `None`: as variables of the environment say.
    pub mcp: Option<McpLimits>,
    /// What is read of the process and the machine. Defaults to everything.
    pub environment: Environment,
    /// Stops turns at steps.
    pub(crate) breakpoints: Option<Arc<dyn Breakpoints>>,
    /// Hooks that this process hangs from, outermost first; `None`: as the environment says. Sessions do
    /// not run them again.
    pub hook_chain: Option<Vec<String>>,
}

/// Adds the servers of a plug-in, in the shape of `.mcp.json`. As with those of a project, no secret is put into them
/// unless the user named the server that gets it.
pub fn with_plugin_servers(mut options: SessionOptions, configuration: &str) -> SessionOptions {
    options.plugin_servers.push(configuration.into());
    options
}

/// Replaces the port by which sources are read.
pub fn with_lookup(options: Options, lookup: Arc<dyn SourceLookup>) -> Options {
    Options { lookup, ..options }
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
            lookup: Arc::new(LocalFiles::default()),
            transcript_store: Arc::new(FileStore::default()),
            mcp: None,
            environment: Environment::of_process(),
            breakpoints: None,
            hook_chain: None,
        }
    }
}

impl Options {
    /// Makes options by which all sessions talk to the simulated model, which plays this playbook in process. Whatever
    /// their endpoint, no packet leaves.
    #[cfg(feature = "simulated")]
    pub fn simulated(playbook: Playbook) -> Self {
        let transport = SimulatedTransport::new(Simulator::new(playbook));
        Self { transport: Some(Arc::new(transport)), ..Self::default() }
    }

    /// Sets which threads run the sessions.
    #[must_use]
    pub fn placement(self, placement: Placement) -> Self {
        Self { placement, ..self }
    }

    /// Replaces the clock that all sessions read.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Sets the timer that waits are made with.
    #[must_use]
    pub fn timer(self, timer: Arc<dyn Timer>) -> Self {
        Self { timer, ..self }
    }

    /// Sets the limits of exchanges with model servers.
    #[must_use]
    pub fn http(self, http: HttpLimits) -> Self {
        Self { http, ..self }
    }

    /// Sets the limits of what calls to one provider with one key may take together.
    #[must_use]
    pub fn governor(self, governor: GovernorLimits) -> Self {
        Self { governor, ..self }
    }

    /// Sets where settings and instructions are read from, in place of the machine's files.
    #[must_use]
    pub fn files(self, files: Arc<dyn SourceFiles>) -> Self {
        with_lookup(self, Arc::new(OfEmbedder(files)))
    }

    /// Sets what is read of the process and the machine.
    #[must_use]
    pub fn environment(self, environment: Environment) -> Self {
        Self { environment, ..self }
    }

    /// Sets the key that all draws are derived from, so that a run can be repeated.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed: Some(seed), ..self }
    }

    /// Sets the transport by which model servers are reached.
    #[must_use]
    pub fn transport(self, transport: Arc<dyn Transport>) -> Self {
        Self { transport: Some(transport), ..self }
    }

    /// Sets the limits of MCP servers.
    #[must_use]
    pub fn mcp(self, mcp: McpLimits) -> Self {
        Self { mcp: Some(mcp), ..self }
    }

    /// Sets the hooks that count as running already, outermost first.
    #[must_use]
    pub fn hook_chain(self, hook_chain: Vec<String>) -> Self {
        Self { hook_chain: Some(hook_chain), ..self }
    }

    /// Sets the store that transcripts are kept in.
    #[must_use]
    pub fn transcript_store(self, transcript_store: Arc<dyn TranscriptStore>) -> Self {
        Self { transcript_store, ..self }
    }

    /// Sets the breakpoints at which turns stop.
    #[must_use]
    pub fn breakpoints(self, breakpoints: Arc<dyn Breakpoints>) -> Self {
        Self { breakpoints: Some(breakpoints), ..self }
    }

    /// Returns the limits on MCP servers: those that were set, else those of the environment's variables.
    pub fn mcp_limits(&self) -> McpLimits {
        let variable = |name: &str| self.environment.variable(name);
        self.mcp.unwrap_or_else(|| McpLimits::from_variables(variable))
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("placement", &self.placement).finish_non_exhaustive()
    }
}
