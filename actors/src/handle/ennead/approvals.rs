//! Questions about calls, of whichever session.

use ennead_runtime::approval::{AnswerError, PermissionAnswer, Question, QuestionKey};
#[cfg(feature = "serve")]
use ennead_runtime::ids::SessionId;

use super::Ennead;

impl Ennead {
    /// Returns the questions about calls of all its sessions that wait for an answer, oldest first.
    pub fn approvals(&self) -> Vec<Question> {
        self.approvals.list(None)
    }

    /// Returns the session of a question that is open no more, as long as it is remembered.
    #[cfg(feature = "serve")]
    pub(crate) fn ended_question(&self, id: &str) -> Option<SessionId> {
        self.approvals.ended(id)
    }

    /// Answers a question of whichever session, as
    /// [`SessionHandle::answer`](crate::SessionHandle::answer) does.
    ///
    /// # Errors
    ///
    /// [`AnswerError`] when the answer is not taken: the question is as it was.
    pub async fn answer(
        &self,
        key: &QuestionKey,
        surface: &str,
        answer: PermissionAnswer,
    ) -> Result<(), AnswerError> {
        self.approvals.answer(None, key, surface, answer).await
    }
}
