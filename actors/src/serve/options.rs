//! What the one that starts a server chooses.

use std::{path::PathBuf, time::Duration};

use super::TenantLimits;
use crate::SessionOptions;

/// What holds for a server.
///
/// ```
/// use std::time::Duration;
/// use ennead::{Endpoint, SessionOptions, serve::ServeOptions};
///
/// let session = SessionOptions::new(".", Endpoint::simulated());
/// let options = ServeOptions::new("/srv/work", "/srv/state", session)
///     .host("agents.example.org")
///     .passivate_after(Duration::from_secs(600));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServeOptions {
    /// Below it lie the directories of tenants, and in those the directories of their sessions.
    pub workspaces: PathBuf,
    /// Below it lie transcripts, what is known of sessions and runs, and the file of the tokens.
    pub state: PathBuf,
    /// What every session has in common. Its directory, id, tenant and place of transcripts are those
    /// of the request, and questions may be answered through the server.
    pub session: SessionOptions,
    /// Names of this server in addition to those of loopback, as browsers and clients write them, without
    /// a port.
    pub hosts: Vec<String>,
    /// Idle for so long, a session becomes no actor until it is asked again; 15 minutes.
    pub passivate_after: Duration,
    /// Prompts that wait in one session at most; 64.
    pub max_queued_runs: usize,
    /// Bytes of the body of a request at most; 1 MiB.
    pub max_body: usize,
    /// What tenants may use.
    pub limits: TenantLimits,
    /// The directory that all sessions work in, whatever their tenants; `None`: each works below
    /// `workspaces`. For a server of one person.
    pub workspace: Option<PathBuf>,
    /// Maximum readers of one session's events. Defaults to 64.
    pub max_readers: usize,
    /// Connections that are open at once at most; 4,096. Streams and other answers that take long have three quarters
    /// of them, so that some are left for short requests.
    pub max_connections: usize,
    /// Streams, waits for an outcome and transcripts that one tenant is sent at once at most; 1,024.
    pub max_streams: usize,
}

impl ServeOptions {
    /// Makes the options of a server with these directories, whose sessions are opened with `session`.
    pub fn new(
        workspaces: impl Into<PathBuf>,
        state: impl Into<PathBuf>,
        session: SessionOptions,
    ) -> Self {
        Self {
            workspaces: workspaces.into(),
            state: state.into(),
            session: session.answers_by_handle(true),
            hosts: Vec::new(),
            passivate_after: Duration::from_secs(15 * 60),
            max_queued_runs: 64,
            max_body: 1024 * 1024,
            limits: TenantLimits::default(),
            workspace: None,
            max_readers: 64,
            max_connections: 4096,
            max_streams: 1024,
        }
    }

    /// Adds a name of this server.
    #[must_use]
    pub fn host(mut self, name: impl Into<String>) -> Self {
        self.hosts.push(name.into());
        self
    }

    /// Sets how long a session is idle before it is not an actor any more.
    #[must_use]
    pub fn passivate_after(self, passivate_after: Duration) -> Self {
        Self { passivate_after, ..self }
    }

    /// Sets how many prompts may wait in one session.
    #[must_use]
    pub fn max_queued_runs(self, max_queued_runs: usize) -> Self {
        Self { max_queued_runs, ..self }
    }

    /// Sets how many bytes the body of a request may have.
    #[must_use]
    pub fn max_body(self, max_body: usize) -> Self {
        Self { max_body, ..self }
    }

    /// Sets what tenants may use.
    #[must_use]
    pub fn limits(self, limits: TenantLimits) -> Self {
        Self { limits, ..self }
    }

    /// Sets the directory that all sessions work in.
    #[must_use]
    pub fn workspace(self, workspace: impl Into<PathBuf>) -> Self {
        Self { workspace: Some(workspace.into()), ..self }
    }

    /// Sets how many may read the events of one session at once.
    #[must_use]
    pub fn max_readers(self, max_readers: usize) -> Self {
        Self { max_readers, ..self }
    }

    /// Sets how many connections may be open at once.
    #[must_use]
    pub fn max_connections(self, max_connections: usize) -> Self {
        Self { max_connections, ..self }
    }

    /// Sets how many answers that take long one tenant may be sent at once.
    #[must_use]
    pub fn max_streams(self, max_streams: usize) -> Self {
        Self { max_streams, ..self }
    }

    /// Returns how many answers that take long are sent at once, to all tenants.
    pub(crate) fn max_long_answers(&self) -> usize {
        self.max_connections - self.max_connections / 4
    }

    /// Returns the path of the token file.
    pub fn token_file(&self) -> PathBuf {
        self.state.join("tokens.json")
    }
}
