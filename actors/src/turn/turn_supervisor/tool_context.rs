//! What tool calls and hooks of a turn may use: ports, directories, variables.

use std::sync::Arc;

use ennead_runtime::{
    hook::{HookAction, HookEvent, HookHandler},
    ports::{BoxFuture, Cancel, SpawnAgent, ToolContext, WorkGuard},
    sandbox::Sandbox,
    tool::ToolCall,
    turn::effect::HookFiring,
};
use tokio_util::sync::CancellationToken;

use super::{ActiveTurn, progress::ProgressPort};
use crate::{
    session::{agents::AgentPort, processes::ProcessPort},
    world::{hook_process::HandlerContext, verifiers::Verifiers},
};
#[cfg(feature = "web")]
use {crate::world::web_pages::PagePort, ennead_runtime::ports::web::FetchPages};

impl ActiveTurn {
    /// Returns what a call may use of its session.
    pub(super) fn tool_context(&self, call: &ToolCall) -> ToolContext {
        let facts = &self.session_context.facts;
        let nests = facts.tools.iter().any(|it| it.name.as_str() == "Agent");
        let agents = nests.then(|| Arc::new(self.agent_port()) as Arc<dyn SpawnAgent>);
        let mut context = ToolContext::new(
            facts.session.clone(),
            Arc::clone(&facts.workspace),
            self.session_context.dirs.temporary.to_string_lossy(),
            Arc::new(CancelFlag(self.scope.cancel.clone())),
            Arc::clone(&self.session_context.world.clock),
        );
        context.additional_directories = self.turn.additional_directories();
        context.spill_directory = self.turn.spill_directory();
        context.memory = Arc::clone(self.turn.memory());
        context.env = self.child_env();
        context.guard =
            WorkGuard::new((self.scope.tracker.token(), self.session_context.guard.clone()));
        context.agents = agents;
        context.processes = Some(Arc::new(ProcessPort {
            session_context: Arc::clone(&self.session_context),
            session: self.session.clone(),
            key: self.key,
        }));
        // Its variables and certificates are copied, which no other call pays for.
        #[cfg(feature = "web")]
        if call.name.as_str() == "WebFetch" {
            context.pages = Some(self.page_port());
        }
        context.shell = self.turn.shell_settings();
        context.sandbox = self.sandbox();
        let exports = self.session_context.exports.for_shell();
        (context.exports, context.unconfined_exports) = (exports.lines, exports.unconfined);
        context.redactor = Some(self.session_context.redaction.redactor().clone());
        context.redacts_results = self.session_context.redaction.is_for_model();
        context.progress = Some(Arc::new(ProgressPort {
            session_context: Arc::clone(&self.session_context),
            call: call.id.clone(),
            tool: call.name.clone(),
        }));
        context
    }

    /// Returns what fetches pages for the session.
    #[cfg(feature = "web")]
    fn page_port(&self) -> Arc<dyn FetchPages> {
        let context = &self.session_context;
        let (clients, clock) = (&context.world.page_clients, &context.world.clock);
        let certificates = self.turn.certificates();
        Arc::new(PagePort::new(clients, &context.pages, certificates, clock, &self.turn.env()))
    }

    /// Returns the way to the session, which starts sub-agents.
    fn agent_port(&self) -> AgentPort {
        AgentPort {
            session: self.session.clone(),
            key: self.key,
            limits: self.turn.agent_limits(),
            layers: self.turn.layers(),
            worktree_base: self.turn.worktree_base(),
            session_context: Arc::clone(&self.session_context),
        }
    }

    /// Returns what starts the agents that verify for these handlers; `None` where none of them wants one.
    pub(super) fn verifiers(&self, firing: &HookFiring) -> Option<Verifiers> {
        let is_agent = |it: &HookHandler| matches!(it.action, HookAction::Agent(_));
        firing.handlers.iter().any(is_agent).then(|| Verifiers {
            port: Arc::new(self.agent_port()),
            firing: format!("hook_{}_{}", self.turn.number(), firing.firing),
            model: self.turn.fast_model(),
        })
    }

    /// Returns the variables of child processes. A variable with an empty value is removed.
    fn child_env(&self) -> Arc<[(String, String)]> {
        let (env, secret) = (self.turn.env(), &self.session_context.secret_variables);
        if secret.is_empty() { env } else { env.iter().chain(secret.iter()).cloned().collect() }
    }

    /// Returns the directory and the variables that hooks of `event` run with.
    pub(super) fn handler_context(&self, event: HookEvent) -> HandlerContext {
        let facts = &self.session_context.facts;
        HandlerContext {
            cwd: self.turn.cwd().to_owned(),
            project: facts.within.first().unwrap_or(&facts.workspace).to_string(),
            env: self.child_env(),
            event,
            chain: Arc::clone(&self.session_context.hook_chain),
            sandbox: self.sandbox(),
            certificates: self.turn.certificates(),
        }
    }

    /// Returns what confines commands, with the temporary directory that they have.
    fn sandbox(&self) -> Option<Arc<Sandbox>> {
        let temporary = self.session_context.dirs.temporary.to_string_lossy();
        let sandbox = self.turn.sandbox()?;
        Some(Arc::new(sandbox.with_temporary(&self.child_env(), &temporary)))
    }
}

/// Implements the port of cancellation by the token of the turn.
#[derive(Debug)]
struct CancelFlag(CancellationToken);

impl Cancel for CancelFlag {
    fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    fn cancelled(&self) -> BoxFuture<'static, ()> {
        Box::pin(self.0.clone().cancelled_owned())
    }
}
