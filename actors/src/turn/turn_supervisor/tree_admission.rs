//! A model call under limits of the tree of agents waits until the tree admits it.
//!
//! Asked for each call, repeated ones and those for summaries included, since only then its size, its
//! model and its output ceiling are known, and the limits under which it is made. Where nothing is
//! limited no question is sent.

use ennead_runtime::{
    ports::BoxFuture,
    session::CallName,
    turn::{TurnInput, effect::ModelCallOrder},
};
use tokio::sync::oneshot;

use super::ActiveTurn;
use crate::{
    session::{SessionMsg, WaitingCall},
    turn::model_call::SentMark,
};

/// What a call under limits has.
pub(super) struct Admission {
    /// Done when it may begin.
    go: oneshot::Receiver<()>,
    /// Set when it was sent.
    pub(super) sent: SentMark,
}

/// Wraps the work of a call, so that it begins when it is admitted. A call that is not admitted waits until it ends
/// with its turn.
pub(super) fn when_admitted(
    tree_admission: Option<Admission>,
    work: BoxFuture<'static, TurnInput>,
) -> BoxFuture<'static, TurnInput> {
    match tree_admission {
        None => work,
        Some(Admission { go, .. }) => Box::pin(async move {
            if go.await.is_err() {
                std::future::pending::<()>().await;
            }
            work.await
        }),
    }
}

impl ActiveTurn {
    /// Asks the session, where that has to be.
    pub(super) fn tree_admission(&self, order: &ModelCallOrder) -> Option<Admission> {
        let limits = self.turn.agent_limits();
        if !limits.bounds_calls() {
            return None;
        }
        let ((go, tree_admission), sent) = (oneshot::channel(), SentMark::default());
        let name = CallName { turn: self.key, attempt: order.attempt };
        let max_cost = self.turn.worst_case();
        let call = WaitingCall { name, limits, max_cost, go, sent: sent.clone() };
        // A session that is gone takes its turn along.
        let _gone = self.session.cast(SessionMsg::CallWaits(Box::new(call)));
        Some(Admission { go: tree_admission, sent })
    }
}
