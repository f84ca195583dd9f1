//! The first model call of a session's first turn, which may have to wait for the tree of agents.
//!
//! Before each turn its worst case is set aside. That of the first turn is known when its settings
//! are, in the middle of it; so the session is asked for it when the model is to be called.

use ennead_runtime::{ports::BoxFuture, tokens::Tokens, turn::effect::ModelCallOrder};
use tokio::sync::oneshot;

use super::State;
use crate::session::{SessionMsg, agents::FirstCall};

/// Done when a call may begin.
pub(super) type LetGo = oneshot::Receiver<()>;

/// The work of a call, begun when it is let go. A call that is not let go waits until it falls with
/// its turn.
pub(super) fn when_let_go(
    let_go: Option<LetGo>,
    work: BoxFuture<'static, ()>,
) -> BoxFuture<'static, ()> {
    match let_go {
        None => work,
        Some(let_go) => Box::pin(async move {
            if let_go.await.is_err() {
                std::future::pending::<()>().await;
            }
            work.await;
        }),
    }
}

impl State {
    /// Asks the session, where that has to be. A call that is repeated asks again.
    pub(super) fn let_go(&self, order: &ModelCallOrder) -> Option<LetGo> {
        let limits = self.turn.agent_limits();
        if !self.first_of_session || !limits.bounds_calls() {
            return None;
        }
        let (go, let_go) = oneshot::channel();
        let worst = self.turn.worst_case(Tokens::from_chars(order.request.body.len() as u64));
        let call = FirstCall { key: self.key, limits, worst, go };
        // A session that is gone takes its turn along.
        let _gone = self.session.cast(SessionMsg::FirstCall(Box::new(call)));
        Some(let_go)
    }
}
