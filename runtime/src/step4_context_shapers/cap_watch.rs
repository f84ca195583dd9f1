//! Remembers which results were found within their caps.
//!
//! Without pressure a result is held against a cap that depends on nothing that comes after it, so one
//! that was within it stays so while the messages in front of it are the same.

use std::sync::Arc;

use super::{
    ShapedContext, ShaperSetup, pressure::under_pressure, shaper1_budget_reduction::trigger_from,
};
use crate::message::SharedMessages;

/// The messages of a context whose results are within their caps. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct CapWatch {
    messages: SharedMessages,
    /// What they were held against.
    setup: Option<Arc<ShaperSetup>>,
    looks: u64,
}

impl CapWatch {
    /// Checks the trigger of [`super::Stage::BudgetReduction`]; looks at new messages only where it can.
    ///
    /// # Errors
    ///
    /// As [`trigger`](super::trigger()).
    pub(crate) fn trigger(
        &mut self,
        context: &ShapedContext,
        setup: &Arc<ShaperSetup>,
    ) -> Result<(), &'static str> {
        let is_same = self.setup.as_ref().is_some_and(|it| {
            it.settings == setup.settings
                && it.exempt_tools == setup.exempt_tools
                && it.own_caps == setup.own_caps
        });
        if !is_same || !self.messages.shares(&context.messages, self.messages.len()) {
            *self = Self { looks: self.looks, ..Self::default() };
        }
        let due = trigger_from(context, setup, self.messages.len());
        if due.is_err() && under_pressure(context, setup).is_none() {
            self.looks += (context.messages.len() - self.messages.len()) as u64;
            self.messages = context.messages.clone();
            self.setup = Some(Arc::clone(setup));
        }
        due
    }

    /// Counts the messages that were found within their caps so far, each time that one was looked at.
    pub fn looks(&self) -> u64 {
        self.looks
    }
}
