//! The ports of `runtime`, brought by the operating system.

pub mod clock;
pub mod hook_process;
pub mod http;
pub mod local_files;
pub(crate) mod real_paths;
pub(crate) mod regular_file;
mod rules;
pub mod simulated;
mod sources;
mod without;

use std::sync::Arc;

use ennead_runtime::ports::{Clock, Transport};

use crate::world::{clock::Timer, http::HttpLimits, local_files::SourceFiles};

/// Everything that a session takes from outside. Clones share it.
#[derive(Clone, Debug)]
pub struct World {
    /// Reads clocks.
    pub clock: Arc<dyn Clock>,
    /// Waits.
    pub timer: Arc<dyn Timer>,
    /// Reaches model servers.
    pub transport: Arc<dyn Transport>,
    /// How long model servers are waited for, unless settings say otherwise.
    pub http: HttpLimits,
    /// Reads settings and instruction files.
    pub files: Arc<dyn SourceFiles>,
}
