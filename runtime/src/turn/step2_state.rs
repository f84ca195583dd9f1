//! Step 2 of a turn: the state that lives as long as the turn.

use std::sync::Arc;

use super::Turn;
use crate::{step::Step, transcript::entry::StepDetail};

impl Turn {
    pub(super) fn initialize_state(&mut self) {
        if let Some(derived_settings) = &self.memory.derived_settings {
            self.state.model.chain = Arc::clone(&derived_settings.chain);
            self.state.settings = Some(Arc::clone(derived_settings.settings()));
        }
        self.update_gate();
        self.state.cwd = self.cwd().into();
        let settings = self.settings();
        // Gates are frozen when the session starts: what a tool writes later moves none of them.
        if self.memory.shapers.is_none() {
            self.memory.shapers = Some(Arc::new(settings.shapers.clone()));
        }
        self.begin_asking();
        self.submit_prompt();
    }

    /// Continues with the context: the prompt may be answered.
    pub(super) fn initialized(&mut self) {
        self.watch_files(None);
        self.record_state();
        self.next(Step::ContextAssembly);
    }

    pub(super) fn record_state(&mut self) {
        let detail = StepDetail::State {
            messages: self.history.len() as u64,
            session_retries: self.memory.retries,
            used: self.used,
        };
        self.record_step(detail);
    }
}
