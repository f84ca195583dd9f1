//! Runs that the session begins by itself when an agent in the background has ended, for those who wait for them.

use std::collections::VecDeque;

use ennead_runtime::run::outcome::{RunError, RunOutcome};
use tokio::sync::oneshot;

use super::{SessionState, WokenEnd, state::Starting};

/// Outcomes that are kept until they are asked for; the oldest give way.
const KEPT: usize = 16;

/// The outcomes that were not asked for yet, and who waits for the next one.
#[derive(Debug, Default)]
pub(super) struct WokenRuns {
    ended: VecDeque<Result<RunOutcome, RunError>>,
    waiting: VecDeque<oneshot::Sender<WokenEnd>>,
}

impl SessionState {
    /// Keeps who waits for the next such run. Nothing is to be waited for here.
    pub(super) fn wait_for_woken(&mut self, reply: oneshot::Sender<WokenEnd>) -> Starting<'static> {
        self.woken.waiting.push_back(reply);
        self.answer_woken();
        Ok(None)
    }

    /// Keeps how such a run ended.
    pub(super) fn woken_ended(&mut self, result: Result<RunOutcome, RunError>) {
        if KEPT <= self.woken.ended.len() {
            self.woken.ended.pop_front();
        }
        self.woken.ended.push_back(result);
    }

    /// Answers those that wait, as far as it is known what to.
    pub(super) fn answer_woken(&mut self) {
        // Who has left takes no outcome from the others.
        self.woken.waiting.retain(|it| !it.is_closed());
        while !self.woken.waiting.is_empty() {
            let next = self.woken.ended.pop_front();
            if next.is_none() && !self.machine.is_at_rest() {
                return;
            }
            let Some(reply) = self.woken.waiting.pop_front() else { return };
            if let Err(Some(next)) = reply.send(next) {
                self.woken.ended.push_front(next);
            }
        }
    }
}
