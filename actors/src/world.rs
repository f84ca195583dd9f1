//! The ports of `runtime`, brought by the operating system.

pub(crate) mod agent_files;
pub(crate) mod agent_memory;
pub(crate) mod clock;
mod compiled_patterns;
pub(crate) mod environment;
mod file_states;
mod git;
pub(crate) mod hook_exports;
pub(crate) mod hook_http;
pub(crate) mod hook_process;
pub(crate) mod hook_tool;
#[cfg(feature = "http")]
pub(crate) mod http;
pub(crate) mod http_limits;
pub(crate) mod kept_sources;
mod kept_trees;
pub(crate) mod local_files;
mod negative_dir_cache;
pub(crate) mod plugin_files;
pub(crate) mod real_paths;
mod rules;
#[cfg(feature = "simulated")]
pub(crate) mod simulated;
pub(crate) mod skill_files;
pub(crate) mod source_files;
pub(crate) mod sources;
mod tree;
pub(crate) mod verifiers;
pub(crate) mod watched_files;
#[cfg(feature = "web")]
pub(crate) mod web_pages;

use std::sync::Arc;

use ennead_runtime::ports::{Clock, Transport};

use crate::{
    ports::{errors::StartError, transcript_store::TranscriptStore},
    world::{
        clock::Timer, environment::Environment, hook_http::HookServers, http_limits::HttpLimits,
        source_files::SourceLookup,
    },
};

/// Returns the transport of those who name none: HTTP, with a pool of connections of its own.
#[cfg(feature = "http")]
pub(crate) fn own_transport(environment: &Environment) -> Result<Arc<dyn Transport>, StartError> {
    Ok(Arc::new(http::Http::with_environment(environment).map_err(StartError::Http)?))
}

/// Fails always: without the feature `http` there is none.
#[cfg(not(feature = "http"))]
pub(crate) fn own_transport(_: &Environment) -> Result<Arc<dyn Transport>, StartError> {
    Err(StartError::NoTransport)
}

/// Returns the way to an MCP server over HTTP, with connections of its own; `None` without the feature `http`. Reads
/// files of certificates.
#[cfg(feature = "http")]
pub(crate) fn server_transport(
    environment: &Environment,
    url: &str,
) -> Result<Option<Arc<dyn Transport>>, String> {
    let made = http::Http::for_address(environment, url);
    made.map(|it| Some(Arc::new(it) as Arc<dyn Transport>)).map_err(|it| http::in_words(&it))
}

/// Returns `None`, as a build without the feature `http` has no client.
#[cfg(not(feature = "http"))]
pub(crate) fn server_transport(
    _: &Environment,
    _: &str,
) -> Result<Option<Arc<dyn Transport>>, String> {
    Ok(None)
}

/// Everything that a session takes from outside. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct World {
    /// Reads the wall clock and the monotonic clock.
    pub clock: Arc<dyn Clock>,
    /// Waits for a length of time.
    pub timer: Arc<dyn Timer>,
    /// Sends requests to model servers.
    pub transport: Arc<dyn Transport>,
    /// Reaches the servers of hooks.
    pub hook_servers: HookServers,
    /// Makes the clients that fetch pages.
    #[cfg(feature = "web")]
    pub page_clients: web_pages::PageClients,
    /// How long model servers are waited for, unless settings say otherwise.
    pub http: HttpLimits,
    /// Reads settings and instruction files.
    pub files: Arc<dyn SourceLookup>,
    /// The store that holds the transcripts.
    pub transcripts: Arc<dyn TranscriptStore>,
}
