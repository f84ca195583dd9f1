//! How far the servers of a session are, for a surface to show, and the way to have one connected again.

use std::sync::{Arc, Mutex, MutexGuard};

use ennead_runtime::{mcp::state::ServerState, ports::Tool};

use super::{ServerFailure, starting::AskedAgain};
use ennead_tools::locked::Locked as _;

/// One MCP server of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpServerStatus {
    /// Its name in the configuration.
    pub name: Arc<str>,
    /// How far it is. One that ends later is started again and stays `Connected`, unless it was to be
    /// connected again and could not be.
    pub state: ServerState,
    /// Why it cannot be had, in words; only when it has failed.
    pub error: Option<Arc<str>>,
    /// Names of the session's tools that are its, as a model calls them; none before it has answered.
    pub tools: Arc<[String]>,
}

/// The servers of one session.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionServers(Arc<Mutex<Vec<ServerOfSession>>>);

#[derive(Debug)]
struct ServerOfSession {
    status: McpServerStatus,
    /// Its tools are the session's, whatever became of it later.
    has_joined: bool,
    again: AskedAgain,
}

impl SessionServers {
    /// Adds a server that has not answered yet.
    pub(super) fn add(&self, name: Arc<str>, again: AskedAgain) {
        let status = McpServerStatus {
            name,
            state: ServerState::Pending,
            error: None,
            tools: Arc::default(),
        };
        self.lock().push(ServerOfSession { status, has_joined: false, again });
    }

    /// Returns the states of all servers, in the order in which they were configured.
    pub(crate) fn all(&self) -> Vec<McpServerStatus> {
        self.lock().iter().map(|it| it.status.clone()).collect()
    }

    /// Returns the names of servers that have not answered yet.
    pub(crate) fn pending(&self) -> Vec<Arc<str>> {
        let all = self.lock();
        let pending = all.iter().filter(|it| it.status.state == ServerState::Pending);
        pending.map(|it| Arc::clone(&it.status.name)).collect()
    }

    /// Returns the way to have a server connected again.
    pub(crate) fn again(&self, name: &str) -> Option<AskedAgain> {
        let all = self.lock();
        all.iter().find(|it| *it.status.name == *name).map(|it| it.again.clone())
    }

    /// Returns whether the tools of a server are the session's.
    pub(crate) fn has_joined(&self, name: &str) -> bool {
        self.lock().iter().any(|it| *it.status.name == *name && it.has_joined)
    }

    /// Sets the state of a server by what it answered; of one whose tools have joined, these stay. Returns whether
    /// that is news.
    pub(crate) fn became(
        &self,
        name: &str,
        failure: Option<ServerFailure>,
        tools: &[Arc<dyn Tool>],
    ) -> bool {
        let mut all = self.lock();
        let Some(known) = all.iter_mut().find(|it| *it.status.name == *name) else { return false };
        let before = (known.status.state, known.status.error.clone());
        known.status.state = failure.as_ref().map_or(ServerState::Connected, ServerFailure::state);
        known.status.error = failure.map(|it| it.why);
        if known.status.state == ServerState::Connected && !known.has_joined {
            known.has_joined = true;
            known.status.tools = tools.iter().map(|it| it.spec().name.to_string()).collect();
        }
        before != (known.status.state, known.status.error.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<ServerOfSession>> {
        // Nothing in here can be left half done.
        self.0.locked()
    }
}
