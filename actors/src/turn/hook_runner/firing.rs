//! Handlers of an event of the session itself, which no turn waits for.

use std::sync::Arc;

use ennead_runtime::{
    hook::{Firing, HandlerEnd, HookHandler, HookInput},
    ports::WorkGuard,
    session::SessionFiring,
};
use ractor::ActorRef;

use super::{HookMsg, HookRunnerState, detached::ended};
use crate::{session::context::SessionContext, world::hook_process::HandlerContext};

/// Handlers to be started, with what they run in.
pub(crate) struct FiringRequest {
    pub(crate) handlers: Vec<HookHandler>,
    pub(crate) input: HookInput,
    pub(crate) context: HandlerContext,
    /// The file that they run for, where they run for one.
    pub(crate) file: Option<String>,
}

impl FiringRequest {
    pub(crate) fn new(session_context: &SessionContext, firing: SessionFiring) -> Self {
        let SessionFiring { handlers, input, cwd, env, sandbox, certificates } = firing;
        let facts = &session_context.facts;
        let temporary = session_context.dirs.temporary.to_string_lossy();
        let sandbox = sandbox.map(|it| Arc::new(it.with_temporary(&env, &temporary)));
        let context = HandlerContext {
            cwd: cwd.to_string(),
            project: facts.within.first().unwrap_or(&facts.workspace).to_string(),
            env: env.iter().chain(session_context.secret_variables.iter()).cloned().collect(),
            event: input.firing.event(),
            chain: Arc::clone(&session_context.hook_chain),
            sandbox,
            certificates,
        };
        let file = match &input.firing {
            Firing::FileChanged { path, .. } => Some(path.to_string()),
            _ => None,
        };
        Self { handlers, input, context, file }
    }
}

impl HookRunnerState {
    /// Starts handlers that are not waited for. One for which there is no room is reported as not run.
    pub(super) async fn fire(&self, request: FiringRequest, myself: &ActorRef<HookMsg>) {
        let FiringRequest { handlers, input, context, file } = request;
        let event = context.event;
        let launcher = self.launcher(context, myself).for_file(file.clone());
        // It names a file and no more, so it is short.
        let launcher = launcher.with_input(input.to_json().into());
        for handler in handlers {
            let output = launcher.run(handler.clone(), WorkGuard::new(())).await;
            if output.ended != HandlerEnd::Detached {
                self.detached.report(ended(event, &handler, file.clone(), output));
            }
        }
    }
}
