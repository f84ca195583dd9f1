//! How far the servers of a session are, for a surface to show.

use std::sync::{Arc, Mutex, MutexGuard};

use ennead_runtime::mcp::state::ServerState;

use ennead_tools::locked::Locked as _;

/// One MCP server of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpServerStatus {
    /// Its name in the configuration.
    pub name: Arc<str>,
    /// How far it is. One that ends later is started again and stays `Connected`.
    pub state: ServerState,
    /// Why it cannot be had, in words; only when it has failed.
    pub error: Option<Arc<str>>,
}

/// The servers of one session.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionServers(Arc<Mutex<Vec<McpServerStatus>>>);

impl SessionServers {
    /// Returns the states of all servers, in the order in which they were configured.
    pub(crate) fn all(&self) -> Vec<McpServerStatus> {
        self.lock().clone()
    }

    /// Returns the names of servers that have not answered yet.
    pub(crate) fn pending(&self) -> Vec<Arc<str>> {
        let all = self.lock();
        let pending = all.iter().filter(|it| it.state == ServerState::Pending);
        pending.map(|it| Arc::clone(&it.name)).collect()
    }

    /// Sets the state of a server. An error is there only if it has failed.
    pub(crate) fn became(&self, name: &Arc<str>, state: ServerState, error: Option<Arc<str>>) {
        let mut all = self.lock();
        match all.iter_mut().find(|it| it.name == *name) {
            Some(known) => (known.state, known.error) = (state, error),
            None => all.push(McpServerStatus { name: Arc::clone(name), state, error }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<McpServerStatus>> {
        // Nothing in here can be left half done.
        self.0.locked()
    }
}
