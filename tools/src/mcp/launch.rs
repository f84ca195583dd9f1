//! What to connect to, and why there may be no connection.

use std::{path::PathBuf, sync::Arc};

use ennead_runtime::{mcp::config::ServerConfig, sandbox::SandboxPolicy};

/// Tools that a server may list.
pub(super) const MAX_TOOLS: usize = 1000;

/// What to connect to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerLaunch {
    /// Configuration of the server to connect to.
    pub config: ServerConfig,
    /// The directory that it runs in and receives as the project's root; absolute.
    pub workspace: PathBuf,
    /// Names of variables of this process that the server does not inherit.
    pub withheld: Vec<String>,
    /// What confines it, where it is a program.
    pub confine: Option<Arc<SandboxPolicy>>,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The program cannot be started.
    #[error("cannot start {command}: {cause}")]
    Start {
        /// The command that could not be started.
        command: String,
        /// The error of the operating system.
        #[source]
        cause: std::io::Error,
    },
    /// It is reached in a way that is not spoken.
    #[error("its transport is not supported")]
    Transport,
    /// The feature `http` is off.
    #[error("this build of ennead has no HTTP client (feature `http`)")]
    HttpLeftOut,
    /// The HTTP client cannot be made.
    #[error("the HTTP client cannot be made: {why}")]
    HttpSetup {
        /// The cause in words.
        why: String,
    },
    /// The server cannot be reached over HTTP, or does not open a session.
    #[error("{why}")]
    Http {
        /// The cause in words.
        why: String,
        /// Another attempt may succeed.
        is_transient: bool,
    },
    /// The server answers only those who have logged in.
    #[error("{why}")]
    NeedsAuth {
        /// The cause in words.
        why: String,
    },
    /// The feature `mcp` is off.
    #[error("this build of ennead has no MCP client (feature `mcp`)")]
    LeftOut,
    /// The server did not speak the protocol.
    #[error("{why}{}", said_at_the_end(printed))]
    Handshake {
        /// The cause in words.
        why: String,
        /// The end of its standard error.
        printed: String,
    },
    /// The server lists more tools than a session may have.
    #[error("it lists more than {MAX_TOOLS} tools")]
    TooManyTools,
}

pub(super) fn said_at_the_end(printed: &str) -> String {
    match printed.trim() {
        "" => String::new(),
        printed => format!("; it said: {printed}"),
    }
}
