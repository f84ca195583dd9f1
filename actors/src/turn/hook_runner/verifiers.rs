//! Handlers that have an agent verify: a sub-agent of the session works until it has answered, or its time is up.

use std::time::Duration;

use ennead_runtime::{
    hook::{HandlerEnd, HandlerOutput, HookHandler, PromptHook},
    ports::{AgentOrder, verified::output_of_verifier},
    saturating::Saturating as _,
};

use super::detached::HookLauncher;
use crate::world::{clock::within, verifiers::Verifiers};

/// How long the end of an agent is waited for whose time is up. It ends by itself within two seconds; one that does not is
/// stopped.
const GRACE: Duration = Duration::from_secs(10);

impl HookLauncher {
    /// Has an agent verify for a handler, which is the one of this number among those of its firing.
    pub(super) async fn verify(
        &self,
        handler: &HookHandler,
        hook: &PromptHook,
        verifiers: Option<(&Verifiers, usize)>,
    ) -> HandlerOutput {
        let (session_context, event) = (self.session_context(), self.event());
        if session_context.facts.verifies {
            return HandlerOutput::new(HandlerEnd::Cycle, String::new(), handler.label(), 0);
        }
        let asked = hook.asked(self.input());
        let (HandlerEnd::ForModel, Some((verifiers, index))) = (asked.ended, verifiers) else {
            return asked;
        };
        let call = format!("{}_{index}", verifiers.firing);
        let about = format!("Verify for a {} hook", event.name());
        let mut order = AgentOrder::new(call.as_str().into(), about, asked.stdout);
        order.model = hook.model.clone().or_else(|| verifiers.model.clone());
        let limit = Duration::from_millis(handler.timeout_ms);
        let world = &session_context.world;
        let started = world.clock.elapsed();
        let mut working = verifiers.port.verify(order, limit);
        let (report, is_late) = match within(&*world.timer, limit, working.as_mut()).await {
            Some(report) => (Some(report), false),
            // It ends by itself, and what it has used is counted then.
            None => (within(&*world.timer, GRACE, working).await, true),
        };
        let took = world.clock.elapsed().saturating_sub(started);
        let duration_ms = u64::saturating(took.as_millis());
        match report {
            Some(report) => output_of_verifier(report, is_late, duration_ms),
            None => {
                let (ended, why) = (HandlerEnd::TimedOut, "the agent did not end by itself");
                HandlerOutput::new(ended, String::new(), why.into(), duration_ms)
            }
        }
    }
}
