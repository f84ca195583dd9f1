//! What a tool of a parent sees of sub-agents: the way to order one, and the report of its end.
//!
//! This side runs in the executor of a call and not
//! in the session.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use ennead_runtime::{
    ids::{AgentId, ToolUseId},
    output::{OutputSettings, answer_in},
    ports::{
        AgentOrder, AgentReport, AgentStatus, BoxFuture, SpawnAgent,
        messages::{AgentMessage, Delivered, Undelivered},
    },
    run::outcome::{RunError, RunOutcome},
    session::TurnKey,
    step1_settings_resolution::{AgentLimits, LayerText, WorktreeBase},
};
use ennead_tools::locked::Locked as _;
use ractor::ActorRef;
use tokio::sync::oneshot;

use crate::{
    session::{SessionContext, SessionMsg, SpawnRequest},
    world::verifiers::Verify,
};

pub(super) fn refuse(reply: oneshot::Sender<AgentReport>, why: String) {
    let _gone = reply.send(AgentReport::new(AgentStatus::Refused, None, why));
}

/// Answers the call of a sub-agent that works in the background.
pub(super) fn started(reply: oneshot::Sender<AgentReport>, agent: &AgentId, transcript: String) {
    let _gone = reply.send(AgentReport::new(None, Some(agent.clone()), transcript));
}

/// Makes the report that a parent gets of its sub-agent: its answer as a channel delivers it, without reasoning and
/// heartbeats (OUT-1, OUT-2).
pub(super) fn report(
    agent: &AgentId,
    result: Result<RunOutcome, RunError>,
    output: &OutputSettings,
) -> AgentReport {
    let agent = Some(agent.clone());
    match result {
        Ok(outcome) => {
            let text = match (answer_in(&outcome.text, output), outcome.error) {
                (text, Some(error)) if text.is_empty() => error,
                (text, _) => text,
            };
            let mut report = AgentReport::new(outcome.end.agent_status(), agent, text);
            report.n_tool_uses =
                outcome.messages.iter().map(|it| it.tool_uses().count() as u64).sum();
            (report.usage, report.head) = (outcome.usage, outcome.head);
            report
        }
        Err(error) => {
            let status = match error {
                RunError::Ended => AgentStatus::Cancelled,
                _ => AgentStatus::Failed,
            };
            AgentReport::new(status, agent, error.to_string())
        }
    }
}

/// The way from a tool to its session.
#[derive(Debug)]
pub(crate) struct AgentPort {
    pub(crate) session: ActorRef<SessionMsg>,
    pub(crate) key: TurnKey,
    pub(crate) limits: AgentLimits,
    pub(crate) layers: Arc<[LayerText]>,
    pub(crate) worktree_base: WorktreeBase,
    pub(crate) session_context: Arc<SessionContext>,
}

impl AgentPort {
    fn start(
        &self,
        order: AgentOrder,
        verifies_for: Option<Duration>,
    ) -> BoxFuture<'static, AgentReport> {
        let session = self.session.clone();
        let (key, limits) = (self.key, self.limits);
        let layers = Arc::clone(&self.layers);
        Box::pin(async move {
            let guard = StopOnDrop(Mutex::new(Some((session.clone(), order.tool_use.clone()))));
            let (reply, report) = oneshot::channel();
            let request = SpawnRequest { key, limits, layers, order, verifies_for, reply };
            let _gone = session.cast(SessionMsg::SpawnAgent(Box::new(request)));
            let report = report.await;
            guard.disarm();
            report.unwrap_or_else(|_| {
                AgentReport::new(AgentStatus::Cancelled, None, "the session has ended")
            })
        })
    }
}

impl Verify for AgentPort {
    fn verify(&self, order: AgentOrder, limit: Duration) -> BoxFuture<'static, AgentReport> {
        self.start(order, Some(limit))
    }
}

impl SpawnAgent for AgentPort {
    fn spawn(&self, order: AgentOrder) -> BoxFuture<'static, AgentReport> {
        self.start(order, None)
    }

    fn send(&self, message: AgentMessage) -> BoxFuture<'static, Result<Delivered, Undelivered>> {
        self.send_message(message)
    }

    fn worktree_base(&self) -> WorktreeBase {
        self.worktree_base
    }
}

/// Ends the sub-agent of a call whose future is dropped.
struct StopOnDrop(Mutex<Option<(ActorRef<SessionMsg>, ToolUseId)>>);

impl StopOnDrop {
    fn disarm(&self) {
        self.0.locked().take();
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        let armed = self.0.locked().take();
        if let Some((session, call)) = armed {
            let _gone = session.cast(SessionMsg::StopAgent(call));
        }
    }
}
