//! Asks the one that can answer whether a call may run. A leaf of the turn supervisor.

use std::{fmt, sync::Arc};

use ennead_runtime::{
    ports::BoxFuture, step7_permission_gate::PermissionAnswer, tool::ToolCall, turn::TurnInput,
};
/// A question about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Question {
    /// The call, with the input it would run with.
    pub call: ToolCall,
    /// Why it is asked.
    pub reason: String,
    /// Rules that would settle it for the future.
    pub suggestions: Vec<String>,
}

/// Answers questions: a person at a terminal, a client of a server, an embedder's policy.
pub trait Approver: Send + Sync + fmt::Debug {
    /// Answers one question. Dropped when the turn ends meanwhile.
    fn answer(&self, question: Question) -> BoxFuture<'static, PermissionAnswer>;
}

/// Asks, and returns what the turn is to be given.
pub(crate) fn ask(
    approver: Option<&Arc<dyn Approver>>,
    call: ToolCall,
    reason: String,
    suggestions: Vec<String>,
) -> BoxFuture<'static, TurnInput> {
    let id = call.id.clone();
    let answer = approver.map(|it| it.answer(Question { call, reason, suggestions }));
    Box::pin(async move {
        let answer = match answer {
            Some(answer) => answer.await,
            None => nobody(),
        };
        TurnInput::PermissionAnswered { call: id, answer }
    })
}

/// The answer in place of one that was not given.
pub(crate) fn nobody() -> PermissionAnswer {
    PermissionAnswer { allowed: false, reason: "nobody is there to answer".into() }
}
