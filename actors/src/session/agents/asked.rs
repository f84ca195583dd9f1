//! What calls ask about the sub-agents of a session that work in the background.

use std::sync::Arc;

use ennead_runtime::{
    ids::AgentId,
    ports::{
        BoxFuture,
        agents::{BackgroundAgent, EndedAgent, KeepAgents},
    },
};
use tokio::sync::oneshot;

use crate::session::{SessionMsg, SessionState, processes::ProcessPort, state::Starting};

impl KeepAgents for ProcessPort {
    fn running(&self) -> Vec<BackgroundAgent> {
        self.session_context.agents.running()
    }

    fn find(&self, agent: &AgentId) -> Option<BackgroundAgent> {
        self.session_context.agents.find(agent).map(|it| it.0)
    }

    fn ended(&self, agent: &AgentId) -> BoxFuture<'static, Option<EndedAgent>> {
        let (agents, agent) = (Arc::clone(&self.session_context.agents), agent.clone());
        Box::pin(async move { agents.ended(&agent).await })
    }

    fn last_words(&self, agent: &AgentId) -> BoxFuture<'static, String> {
        let (reply, words) = oneshot::channel();
        let _gone = self.session.cast(SessionMsg::LastWords { of: Some(agent.clone()), reply });
        Box::pin(async move { words.await.unwrap_or_default() })
    }

    fn stop(&self, agent: &AgentId) {
        if let Some((agent, None)) = self.session_context.agents.find(agent) {
            // A session that is gone has ended its agents.
            let _gone = self.session.cast(SessionMsg::StopAgent(agent.call));
        }
    }
}

impl SessionState {
    /// Returns what the session said last, or has a sub-agent do so. The one that asks waits, and not the session.
    pub(in crate::session) fn send_last_words(
        &self,
        of: Option<&AgentId>,
        reply: oneshot::Sender<String>,
    ) -> Starting<'static> {
        match of {
            None => _ = reply.send(self.machine.last_words()),
            Some(agent) => self.children.ask_last_words(agent, reply),
        }
        Ok(None)
    }
}
