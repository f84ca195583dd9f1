//! Why an `Ennead` cannot start, and why it cannot open a session.

use std::{io, path::PathBuf, sync::Arc};

use thiserror::Error;

use crate::ports::transcript_store::{Holder, guard};

/// Why an `Ennead` cannot start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// A thread or a runtime cannot be made.
    #[error("cannot start a scheduler thread")]
    Thread(#[source] io::Error),
    /// The HTTP client cannot be made.
    #[cfg(feature = "http")]
    #[error(transparent)]
    Http(crate::world::http::HttpSetupError),
    /// The options name no transport, and this build has none of its own.
    #[error("no transport is given, and this build has no HTTP client (feature `http`)")]
    NoTransport,
    /// The playbook of the simulated model cannot be played.
    #[cfg(feature = "simulated")]
    #[error(transparent)]
    Playbook(ennead_simulated::PlaybookError),
    /// The roots of the tree cannot be spawned.
    #[error("cannot start the actors: {0}")]
    Actor(String),
}

/// Why a session cannot be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The working directory cannot be used.
    #[error("cannot use the directory {path}")]
    Workspace {
        /// Path of the workspace, as it was given.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        cause: io::Error,
    },
    /// The id is not a UUID.
    #[error("{0} is not a session id: it must be a UUID")]
    BadId(String),
    /// The directory of the transcripts cannot be believed.
    #[error(transparent)]
    UnsafeTranscripts(guard::UnsafeTranscripts),
    /// A session of this process has the transcript open.
    #[error("the transcript is open already")]
    AlreadyOpen,
    /// Another process, or another `Ennead` of this one, writes the transcript.
    #[error("the session is written by {}", .holder.as_ref().map_or("an unknown process".into(), ToString::to_string))]
    Locked {
        /// Who, if the text of the lock can be read.
        holder: Option<Holder>,
    },
    /// The lock file of the transcript cannot be used.
    #[error("cannot use the lock file")]
    LockFile(#[source] io::Error),
    /// The files of the transcript cannot be used.
    #[error("the transcript cannot be opened")]
    File(#[source] io::Error),
    /// The writer of the transcript could not be started, or crashed time and again.
    #[error("the writer of the transcript keeps crashing")]
    Crashed,
    /// No model is named, and those of this provider have names of their own.
    #[error(
        "no model is named for {provider}: give one with --model, or as `model` in the settings"
    )]
    NoModel {
        /// Name of the provider without a model.
        provider: Arc<str>,
    },
    /// The settings require the sandbox, and this system cannot confine.
    #[error("the settings require a sandbox (`sandbox.required`): {why}")]
    NoSandbox {
        /// What is missing, in words.
        why: String,
    },
    /// The settings ask for a sandbox that there is not.
    #[error(
        "the sandbox does not support {}; without it, `sandbox.network` is `off`, `open` or has allowedDomains and deniedDomains, and \
         `sandbox.filesystem` has allowWrite, allowRead and denyRead",
        .keys.join(", ")
    )]
    UnsupportedSandbox {
        /// The keys that ask for it, in the order of the alphabet.
        keys: Vec<String>,
    },
    /// The shard has ended.
    #[error("the runtime has ended")]
    Ended,
}
