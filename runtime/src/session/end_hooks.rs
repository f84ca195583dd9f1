//! Hooks that the session fires itself, outside of any turn. Those at its end leave no record: nothing that is walked
//! again depends on them. This module chooses the handlers and makes the [`SessionFiring`] that `firing` defines.

use std::sync::Arc;

use super::{Machine, firing::SessionFiring};
use crate::{
    hook::{self, DEFAULT_TIMEOUT_MS, Firing, HookContext, HookEvent, HookHandler, HookInput},
    run::derived_settings::DerivedSettings,
};

/// Milliseconds that a handler may take which names no limit: the close of a session waits for it.
const LIMIT_MS: u64 = 1_500;

/// Milliseconds that a handler may take whatever limit it names.
const MAX_LIMIT_MS: u64 = 60_000;

impl Machine {
    /// Returns the hooks to run before the session is over; `None` where no prompt was answered in this process, in a
    /// sub-agent, and where no handler matches.
    pub fn end_hooks(&self) -> Option<SessionFiring> {
        let (facts, memory) = (&self.conversation.facts, &self.conversation.memory);
        let derived = memory.derived_settings.as_ref().or(memory.begun_by.as_ref());
        let derived = derived.filter(|_| memory.has_run && facts.agent.is_none())?;
        let firing = Firing::SessionEnd { reason: "other".into() };
        let table = &derived.settings().hooks;
        let found = hook::matching(table, HookEvent::SessionEnd, firing.subject(""));
        let handlers: Vec<HookHandler> = found.into_iter().map(limited).collect();
        if handlers.is_empty() {
            return None;
        }
        let cwd: Arc<str> = memory.tools.cwd.as_deref().unwrap_or(&facts.workspace).into();
        Some(self.session_firing(derived, cwd, handlers, firing))
    }

    /// Makes what runs handlers by these settings in a directory.
    pub(super) fn session_firing(
        &self,
        derived: &DerivedSettings,
        cwd: Arc<str>,
        handlers: Vec<HookHandler>,
        firing: Firing<'static>,
    ) -> SessionFiring {
        let (facts, memory) = (&self.conversation.facts, &self.conversation.memory);
        let context = HookContext {
            session: facts.session.clone(),
            transcript_path: Arc::clone(&facts.transcript),
            cwd: Arc::clone(&cwd),
            mode: derived.gate_with(&memory.overrides, facts).mode(),
            prompt: None,
            agent: None,
        };
        let input = HookInput { context, firing };
        let (env, sandbox) = (Arc::clone(&derived.env), derived.sandbox.clone());
        let certificates = derived.settings().certificates.clone();
        SessionFiring { handlers, input, cwd, env, sandbox, certificates }
    }
}

fn limited(handler: &HookHandler) -> HookHandler {
    let limit = match handler.timeout_ms {
        DEFAULT_TIMEOUT_MS => LIMIT_MS,
        limit => limit.min(MAX_LIMIT_MS),
    };
    HookHandler { timeout_ms: limit, ..handler.clone() }
}
