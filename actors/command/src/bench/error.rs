//! Why nothing could be measured.

use std::io;

use ennead::{OpenError, OptionError, RunError, StartError, serve::ServeError};
use ennead_simulated::PlaybookError;
use ennead_tools::custom::CustomToolError;
use thiserror::Error;

/// Why nothing could be measured.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BenchError {
    /// Settings cannot be given, or a tool cannot be named in a rule.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// No temporary directory, or no runtime.
    #[error("cannot prepare the measurement")]
    Prepare(#[from] io::Error),
    /// The playbook cannot be played.
    #[error(transparent)]
    Playbook(#[from] PlaybookError),
    /// The tools cannot be made.
    #[error(transparent)]
    Tool(#[from] CustomToolError),
    /// The host cannot start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The server cannot start.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// A session cannot be opened.
    #[error("cannot open a session")]
    Open(#[from] OpenError),
    /// A run left no outcome.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A run ended otherwise than the playbook has it.
    #[error("a run ended with {0}")]
    Ended(&'static str),
    /// A stage was due in a conversation that none is to shape: what was measured is not what was asked.
    #[error("a shaper ran in a session that is measured without them")]
    Shaped,
    /// The server did not make a session.
    #[error("the server refused a session with status {status}: {text}")]
    Refused {
        /// The status of its answer.
        status: u16,
        /// What the answer says.
        text: String,
    },
    /// The session or the thread that was measured is gone.
    #[error("what was measured is gone")]
    Gone,
}
