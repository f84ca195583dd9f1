//! Servers of the Model Context Protocol: the connection to one, and the tools that it gives.
//!
//! The protocol is rmcp's, the official library; its types stay in here. Who keeps a connection
//! alive, starts it again and lets several sessions share it is not known here: a tool reaches its
//! server through [`Server`].

#[cfg(feature = "mcp")]
mod caller;
#[cfg(feature = "mcp")]
mod connection;
#[cfg(feature = "mcp")]
mod http;
mod launch;
#[cfg(not(feature = "mcp"))]
mod left_out;
#[cfg(feature = "mcp")]
mod lines;
#[cfg(feature = "mcp")]
mod pipes;
#[cfg(feature = "mcp")]
mod program;
#[cfg(feature = "mcp")]
mod progress;
#[cfg(feature = "mcp")]
mod tasks;
mod tool;
#[cfg(feature = "mcp")]
mod wire;

use std::{fmt, sync::Arc};

use ennead_runtime::{
    mcp::result::CallResult,
    ports::{BoxFuture, ReportProgress},
};
use serde_json::{Map, Value};

#[cfg(feature = "mcp")]
pub use caller::Caller;
#[cfg(feature = "mcp")]
pub use connection::{Connection, connect};
pub use launch::{ConnectError, ServerLaunch};
#[cfg(not(feature = "mcp"))]
pub use left_out::{Caller, Connection, connect};
pub use tool::{McpTool, McpToolError};

/// The way to a server, which may be gone at the moment.
pub trait Server: Send + Sync + fmt::Debug {
    /// Calls a tool by its name there. Dropping the future cancels the call. What the server reports
    /// of its progress goes to `progress`.
    fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        progress: Option<Arc<dyn ReportProgress>>,
    ) -> BoxFuture<'static, Result<CallResult, CallError>>;
}

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The server was gone before the call came to it.
    #[error("MCP server `{server}` is not connected: {why}")]
    NotConnected {
        /// Whose tool it is.
        server: String,
        /// The cause in words.
        why: String,
    },
    /// The server ended during the call.
    #[error("MCP server `{server}` ended during the call; what it did until then stays done")]
    Gone {
        /// Whose tool it is.
        server: String,
    },
    /// The server wrote a message during the call that answers no known request. Its process
    /// is ended, and all calls under way fail.
    #[error(
        "MCP server `{server}` wrote {what} during the call, so it was ended; what it did until then stays done"
    )]
    Garbled {
        /// Whose tool it is.
        server: String,
        /// What it wrote, in words.
        what: String,
    },
    /// The server refused the call.
    #[error("{0}")]
    Refused(String),
    /// The server was silent for too long; the call was cancelled.
    #[error("MCP server `{server}` said nothing for {minutes} minutes, so the call was cancelled")]
    Silent {
        /// Whose tool it is.
        server: String,
        /// Length of the silence that was allowed, in minutes.
        minutes: u64,
    },
}
