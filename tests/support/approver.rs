//! An approver that gives every question one answer.

use std::sync::Arc;

use ennead::{
    permission::{Approver, PermissionAnswer, Question},
    tool::BoxFuture,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Gives its answer, and passes each question on.
#[derive(Debug)]
pub(crate) struct OneAnswer {
    answer: PermissionAnswer,
    asked: UnboundedSender<Question>,
}

impl OneAnswer {
    /// Answers in this way; what it is asked comes out of the channel.
    pub(crate) fn new(allowed: bool, reason: &str) -> (Arc<Self>, UnboundedReceiver<Question>) {
        let mut answer = PermissionAnswer::deny(reason);
        answer.allowed = allowed;
        let (asked, questions) = unbounded_channel();
        (Arc::new(Self { answer, asked }), questions)
    }

    /// Allows everything, for tests that do not look at the questions.
    pub(crate) fn allow() -> Arc<Self> {
        Self::new(true, "").0
    }
}

impl Approver for OneAnswer {
    fn answer(&self, question: Question) -> BoxFuture<'static, PermissionAnswer> {
        let _unread = self.asked.send(question);
        let answer = self.answer.clone();
        Box::pin(async { answer })
    }
}
