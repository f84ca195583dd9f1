//! The question of a turn that surfaces may answer: how it opens, who answers, and how it ends.

use std::{sync::Arc, time::Duration};

use ennead_runtime::{
    approval::{AnswerError, AnsweredBy, Question},
    turn::TurnInput,
};
use ractor::ActorRef;

use super::{ActiveTurn, Pending, TurnMsg, outcome::Outcome};
use crate::{
    groundwork::directory::ActorKind,
    turn::approval::{
        self,
        pending::{AnswerRoute, SurfaceAnswer},
    },
};

impl ActiveTurn {
    /// Opens a question: it is listed, its time runs, and the approver is asked, if there is one.
    pub(super) fn open_question(
        &mut self,
        question: Arc<Question>,
        myself: &ActorRef<TurnMsg>,
    ) -> Outcome {
        let session_context = Arc::clone(&self.session_context);
        let approvals = session_context.approvals.clone();
        let token = self.scope.tracker.token();
        let route = AnswerRoute {
            turn: myself.clone(),
            clock: Arc::clone(&session_context.world.clock),
            tools: session_context.tools.clone(),
            dirs: session_context.dirs.clone(),
        };
        let hub = session_context.hub.clone();
        let open = approvals.raise(Arc::clone(&question), route, hub, token);
        let (number, cancel) = (open.number, open.cancel.clone());
        self.question = Some(open);
        self.registration.asks(true);
        let left = question.expires.millis_since(session_context.world.clock.now());
        let waiting = session_context.world.timer.deadline(Duration::from_millis(left));
        let (turn, over) = (myself.clone(), cancel.clone());
        let _timer = ractor::concurrency::spawn(async move {
            tokio::select! {
                () = waiting => {
                    // It is dropped when the turn is gone by then.
                    let _gone = turn.cast(TurnMsg::Expired(number));
                }
                () = over.cancelled() => {}
            }
        });
        let Some(approver) = session_context.approver.clone() else { return Outcome::Done };
        let asking = approval::ask(approver, Question::clone(&question), approvals);
        let work = Box::pin(async move {
            tokio::select! {
                () = asking => {}
                () = cancel.cancelled() => {}
            }
        });
        self.child(ActorKind::Approval, Pending::Approval(number), work)
    }

    /// Takes an answer if it fits the question that is open now, and says so.
    pub(super) fn take_answer(&mut self, answer: SurfaceAnswer) -> Option<TurnInput> {
        let SurfaceAnswer { key, given, reply } = answer;
        let now = self.session_context.world.clock.now();
        let fits = match self.turn.open_question() {
            Some(question) => question.accepts(&key, now).map(|()| question.call.id.clone()),
            None => Err(AnswerError::Answered(key.id)),
        };
        let (taken, call) = match fits {
            Ok(call) => (Ok(()), Some(call)),
            Err(why) => (Err(why), None),
        };
        // Who answered may have left.
        let _gone = reply.send(taken);
        Some(TurnInput::PermissionAnswered { call: call?, given: Box::new(given) })
    }

    /// Ends a question whose time is over.
    pub(super) fn expired(&self, number: u64) -> Option<TurnInput> {
        let open = self.question.as_ref().filter(|it| it.number == number)?;
        let call = open.question().call.id.clone();
        Some(approval::unanswered(call, AnsweredBy::Expiry))
    }

    /// Notes that the leaf which asked the approver is gone. Where no other handler can answer, the question is denied.
    pub(super) fn approver_gone(&self, number: u64) -> Option<TurnInput> {
        let open = self.question.as_ref().filter(|it| it.number == number)?;
        let call = open.question().call.id.clone();
        let has_others = self.session_context.answers_by_handle;
        (!has_others).then(|| approval::unanswered(call, AnsweredBy::Nobody))
    }

    /// Closes the question if the turn does not ask it any more.
    pub(super) fn close_question(&mut self, is_answered: bool) {
        let asked = self.turn.open_question().map(|it| it.key());
        if let Some(mut closed) = self.question.take_if(|it| Some(it.key()) != asked) {
            // The turn itself sends the event of an answer.
            closed.end = (!is_answered).then_some(AnsweredBy::Change);
            self.registration.asks(false);
        }
    }
}
