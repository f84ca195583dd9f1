//! Hosts many agents in one process: every session, turn, model call, tool call and sub-agent is an
//! actor under supervision.
//!
//! An embedder starts an [`Ennead`], opens sessions and runs prompts. Events tell what happens while
//! it happens; transcripts keep what happened.
//!
//! ```
//! use ennead::{Endpoint, Ennead, SessionOptions};
//!
//! # let workspace = tempfile::tempdir()?;
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let ennead = Ennead::simulated().await?;
//! let session = ennead.open(SessionOptions::new(workspace.path(), Endpoint::simulated())).await?;
//! let outcome = session.prompt("What is 6 + 7?").await?;
//! assert!(outcome.text.starts_with("13"));
//! ennead.shutdown().await;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Ennead::simulated`] answers from a playbook, without a network or a key. A real model is
//! [`Ennead::start`] with an [`Endpoint::messages`].
//!
//! The rules themselves (nine steps, permissions, recovery, transcripts) are pure functions in
//! [`runtime`]; what tools do to the world is in [`tools`]; this crate is everything that waits.
//! ARCHITECTURE.md describes the whole.

// What an embedder holds.
pub mod approval;
pub mod channel;
pub mod ennead;
pub mod errors;
pub mod events;
pub mod options;
pub mod scheduler;
pub mod session;
mod shard;
pub mod trust;

// One turn and its leaves.
mod gate_worker;
mod hook_runner;
mod model_call;
mod shaper_stage;
mod source_reader;
mod tool_dispatcher;
mod turn_supervisor;

// What outlives a session.
pub mod archive;
pub mod checkpoint;
pub mod directory;
mod governor;
mod mcp_server;
pub mod transcript_writer;
pub mod transcripts;

// Groundwork.
pub mod mailbox;
mod supervision;
pub mod world;

pub use ennead_runtime as runtime;
/// The simulated model: playbooks, and the engine that plays them.
#[cfg(feature = "simulated")]
pub use ennead_simulated as simulated;
pub use ennead_tools as tools;

// What most embedders need, without the way to it.
pub use approval::{Approver, Question};
pub use channel::Channel;
pub use ennead::Ennead;
pub use ennead_runtime::{
    event::Event,
    output::{ChannelPolicy, Payload},
};
pub use ennead_tools::custom::CustomTool;
pub use errors::{OpenError, StartError};
pub use options::{Endpoint, Options, Placement, SessionOptions};
pub use session::{Answer, RunError, RunFailed, RunOutcome, SessionHandle};

/// Makes the Rust of README.md a test: it must compile.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
