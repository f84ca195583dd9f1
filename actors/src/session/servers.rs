//! MCP servers that were not ready when the session was opened.
//!
//! A leaf waits for them. Their tools are at hand when one has answered, and join with the next turn.

use std::sync::Arc;

use ennead_runtime::{event::Event, mcp::state::ServerState, ports::Tool, session::SessionInput};
use ractor::{ActorId, ActorRef, SpawnErr};

use super::{SessionMsg, SessionState, context::SessionContext};
use crate::{
    groundwork::{directory::ActorKind, supervision::spawn_leaf},
    services::mcp_server::{Answered, ServerFailure, StartingServers},
};

/// Starts a leaf that waits for servers.
pub(super) async fn wait(
    session_context: &SessionContext,
    starting: StartingServers,
    myself: &ActorRef<SessionMsg>,
) -> Result<ActorId, SpawnErr> {
    let back = myself.clone();
    let work = Box::pin(starting.wait(move |answered| {
        let _gone = back.cast(SessionMsg::ServerAnswered(Box::new(answered), None));
    }));
    let job = session_context.job(ActorKind::McpWaiter, work);
    Ok(spawn_leaf(job, myself.get_cell()).await?.get_id())
}

impl SessionState {
    /// Takes over the tools of a server, or reports why there are none.
    pub(super) fn server_answered(&mut self, answered: Answered) -> SessionInput {
        let server = answered.server();
        if self.session_context.servers.has_joined(&server) {
            // It was connected again: its tools are the session's.
            return SessionInput::ServerAnswered { tools: Vec::new(), notes: self.again(answered) };
        }
        let joining = answered.joining(&mut self.session_context.tools.names());
        self.session_context.tools.join(&joining.tools);
        self.became(&server, joining.error, &joining.tools);
        let tools = joining.tools.iter().map(|it| Arc::new(it.spec().clone())).collect();
        SessionInput::ServerAnswered { tools, notes: joining.notes }
    }

    /// Notes that the leaf which waited is gone: servers that have not answered are not waited for any more.
    pub(super) fn servers_lost(&mut self) -> Option<SessionInput> {
        let lost = self.session_context.servers.pending();
        let why: Arc<str> = "the wait for it crashed".into();
        let notes = |server: &Arc<str>| format!("MCP server `{server}` failed: {why}").into();
        let notes: Vec<_> = lost.iter().map(notes).collect();
        for server in &lost {
            self.became(server, Some(ServerFailure::new(Arc::clone(&why))), &[]);
        }
        (!notes.is_empty()).then_some(SessionInput::ServerAnswered { tools: Vec::new(), notes })
    }

    /// Notes what became of a server whose tools have joined; returns notices for listeners.
    fn again(&self, answered: Answered) -> Vec<Arc<str>> {
        let (server, failure) = (answered.server(), answered.into_failure());
        let failed = |it: &ServerFailure| format!("MCP server `{server}` failed: {}", it.why);
        let note = failure.as_ref().map(failed);
        let is_news = self.became(&server, failure, &[]);
        note.filter(|_| is_news).map(Into::into).into_iter().collect()
    }

    fn became(
        &self,
        server: &Arc<str>,
        failure: Option<ServerFailure>,
        tools: &[Arc<dyn Tool>],
    ) -> bool {
        let state = failure.as_ref().map_or(ServerState::Connected, ServerFailure::state);
        let error = failure.as_ref().map(|it| Arc::clone(&it.why));
        let is_news = self.session_context.servers.became(server, failure, tools);
        if is_news {
            let server = Arc::clone(server);
            self.session_context.hub.publish(Event::McpServer { server, state, error });
        }
        is_news
    }
}
