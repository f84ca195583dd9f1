//! Asks those that can answer whether a call may run.
//!
//! A question that a policy has no word for is put into the book of open questions ([`pending`]). An
//! approver is asked by a leaf of the turn supervisor; others answer through a handle. In either case the
//! turn takes the first answer that fits. Nothing runs while a question is open but the leaf of an
//! approver, if there is one.

mod files;
pub(crate) mod pending;

use std::sync::Arc;

use ennead_runtime::{
    approval::{AnsweredBy, GivenAnswer, PermissionAnswer, PolicyVerdict, Question, QuestionKey},
    digest::Digest,
    ids::ToolUseId,
    ports::BoxFuture,
    turn::TurnInput,
};

use self::pending::Approvals;
use crate::ports::{approver::Approver, policy::PermissionPolicy};

/// The name under which answers of an approver are recorded.
const APPROVER: &str = "approver";

/// Asks an approver, and hands on what it answers. An answer that cannot be taken as it is counts as
/// no, since an approver has no way to learn what is wrong with it.
pub(crate) async fn ask(approver: Arc<dyn Approver>, question: Question, approvals: Approvals) {
    let key: QuestionKey = question.key();
    let answer = approver.answer(question).await;
    let Err(wrong) = approvals.answer(None, &key, APPROVER, answer).await else { return };
    let refusal = PermissionAnswer::deny(format!("the answer could not be taken: {wrong}"));
    // Somebody else may have answered meanwhile.
    let _answered = approvals.answer(None, &key, APPROVER, refusal).await;
}

/// Asks a policy, and returns what the turn is to be given.
pub(crate) fn consult(
    policy: Option<&Arc<dyn PermissionPolicy>>,
    question: &Question,
) -> BoxFuture<'static, TurnInput> {
    let (call, epoch) = (question.call.id.clone(), question.epoch);
    let verdict = policy.map(|it| it.decide(question));
    Box::pin(async move {
        let verdict = match verdict {
            Some(verdict) => verdict.await,
            None => PolicyVerdict::Abstain,
        };
        TurnInput::PolicyAnswered { call, epoch, verdict }
    })
}

/// Makes the input of a turn whose policy crashed. A call that it might have denied does not run.
pub(crate) fn policy_crashed(call: ToolUseId, epoch: Digest) -> TurnInput {
    let reason = "the policy that decides about calls crashed".into();
    TurnInput::PolicyAnswered { call, epoch, verdict: PolicyVerdict::Deny { reason } }
}

/// Makes the answer of a question that gets none.
pub(crate) fn unanswered(call: ToolUseId, by: AnsweredBy) -> TurnInput {
    let reason = match by {
        AnsweredBy::Expiry => "nobody answered in time",
        _ => "nobody is there to answer",
    };
    let given = GivenAnswer { answer: PermissionAnswer::deny(reason), by, surface: None };
    TurnInput::PermissionAnswered { call, given: Box::new(given) }
}
