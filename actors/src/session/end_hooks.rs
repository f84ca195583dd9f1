//! Runs the hooks at the end of a session, before its transcript is closed.

use std::sync::Arc;

use ennead_runtime::{
    event::Event,
    hook::{HandlerEnd, HookHandler},
    ports::{BoxFuture, WorkGuard},
    session::SessionFiring,
};
use futures::future::join_all;

use super::{SessionContext, SessionState};
use crate::{
    turn::hook_runner::{FiringRequest, run_handler},
    world::hook_process::HookHold,
};

impl SessionState {
    /// Takes what is still to be run; at most once.
    pub(super) fn take_end_hooks(&mut self) -> Option<BoxFuture<'static, ()>> {
        if std::mem::replace(&mut self.has_ended_hooks, true) {
            return None;
        }
        let hooks = self.machine.end_hooks()?;
        Some(Box::pin(run(Arc::clone(&self.session_context), hooks)))
    }
}

/// Runs all handlers, each within its limit. A failure is published and changes nothing.
async fn run(session_context: Arc<SessionContext>, firing: SessionFiring) {
    let FiringRequest { handlers, input, context, .. } =
        FiringRequest::new(&session_context, firing);
    let input = input.to_json().into();
    let run = |handler: HookHandler| {
        let (session_context, context, input) = (&session_context, &context, &input);
        async move {
            let guard = WorkGuard::new(session_context.guard.clone());
            let hold = HookHold { guard, announce: None };
            let output = run_handler(session_context, &handler, context, input, hold).await;
            if output.ended != HandlerEnd::Exited(0) {
                let why = output.stderr.trim();
                let what = format!("the SessionEnd hook `{}` failed: {why}", handler.label());
                session_context.hub.publish(Event::Alert { what: what.into() });
            }
        }
    };
    join_all(handlers.into_iter().map(run)).await;
}
