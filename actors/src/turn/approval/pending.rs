//! The questions of an `Ennead` that are open, and the way of an answer to the turn that asks.
//!
//! The book is for looking up and for routing. Whether an answer is taken is for the turn's supervisor to
//! say, which handles one message after another: so exactly one answer wins.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::{Arc, Mutex, MutexGuard},
};

use ennead_runtime::{
    approval::{AnswerError, AnsweredBy, GivenAnswer, PermissionAnswer, Question, QuestionKey},
    event::Event,
    ids::{ApprovalId, SessionId},
    ports::Clock,
};
use ractor::ActorRef;
use tokio::sync::oneshot;
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::task_tracker::TaskTrackerToken,
};

use super::files;
use crate::{
    ports::events::EventHub, session::tools::SessionTools, turn::turn_supervisor::message::TurnMsg,
    world::source_files::SessionDirs,
};
use ennead_tools::locked::Locked as _;

/// Ended questions whose names are remembered, so that who answers late learns why.
const REMEMBERED: usize = 1024;

/// The questions of an `Ennead` that are open. Clones are one book.
#[derive(Clone, Default)]
pub(crate) struct Approvals(Arc<Mutex<QuestionBook>>);

#[derive(Default)]
struct QuestionBook {
    open: BTreeMap<ApprovalId, PendingEntry>,
    /// Questions that were answered or expired, with their sessions, the newest last.
    ended: VecDeque<(ApprovalId, SessionId)>,
    n_raised: u64,
}

struct PendingEntry {
    question: Arc<Question>,
    /// Distinguishes one raising from another of the same name.
    number: u64,
    route: AnswerRoute,
    /// Somebody's answer is on its way.
    is_claimed: bool,
}

/// The way to the turn that asks, and what answers are checked by.
#[derive(Clone)]
pub(crate) struct AnswerRoute {
    pub(crate) turn: ActorRef<TurnMsg>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) tools: SessionTools,
    pub(crate) dirs: SessionDirs,
}

/// An answer on its way to the turn.
pub(crate) struct SurfaceAnswer {
    /// The key of the question that it answers.
    pub(crate) key: QuestionKey,
    /// The answer, and who gave it.
    pub(crate) given: GivenAnswer,
    /// Receives whether it was taken.
    pub(crate) reply: oneshot::Sender<Result<(), AnswerError>>,
}

/// A question while it is open. Dropped with the turn, it is open no longer.
pub(crate) struct OpenQuestion {
    question: Arc<Question>,
    /// Distinguishes one raising from another of the same name.
    pub(crate) number: u64,
    approvals: Approvals,
    hub: EventHub,
    /// The event about its end; `None` where the turn has sent it.
    pub(crate) end: Option<AnsweredBy>,
    /// Ends what waits for it.
    pub(crate) cancel: CancellationToken,
    _waiting: DropGuard,
    /// The turn is not over before this is.
    _token: TaskTrackerToken,
}

impl Approvals {
    /// Opens a question of a turn.
    pub(crate) fn raise(
        &self,
        question: Arc<Question>,
        route: AnswerRoute,
        hub: EventHub,
        token: TaskTrackerToken,
    ) -> OpenQuestion {
        let mut book = self.book();
        book.n_raised += 1;
        let number = book.n_raised;
        book.ended.retain(|it| it.0 != question.id);
        let entry =
            PendingEntry { question: Arc::clone(&question), number, route, is_claimed: false };
        book.open.insert(question.id.clone(), entry);
        let cancel = CancellationToken::new();
        OpenQuestion {
            question,
            number,
            approvals: self.clone(),
            hub,
            end: Some(AnsweredBy::Interrupt),
            _waiting: cancel.clone().drop_guard(),
            cancel,
            _token: token,
        }
    }

    /// Returns the questions that are open, of one session with its sub-agents or of all, oldest first.
    pub(crate) fn list(&self, of: Option<&SessionId>) -> Vec<Question> {
        let book = self.book();
        let mut open: Vec<&PendingEntry> = book.open.values().collect();
        open.retain(|it| of.is_none_or(|session| it.question.session == *session));
        open.sort_by_key(|it| it.number);
        open.into_iter().map(|it| Question::clone(&it.question)).collect()
    }

    /// Answers a question. Returns when the turn has taken the answer, or why it is not taken.
    ///
    /// # Errors
    ///
    /// [`AnswerError`]; the question is as it was.
    pub(crate) async fn answer(
        &self,
        of: Option<&SessionId>,
        key: &QuestionKey,
        surface: &str,
        answer: PermissionAnswer,
    ) -> Result<(), AnswerError> {
        answer.check()?;
        let claim = self.claim(of, key)?;
        if let Some(input) = &answer.input
            && let Some(tool) = claim.route.tools.get(&claim.question.call.name)
        {
            tool.check_input(input).map_err(AnswerError::BadInput)?;
        }
        files::keep(&claim.route.dirs, &answer.rules).await?;
        let (reply, taken) = oneshot::channel();
        let given = GivenAnswer { answer, by: AnsweredBy::Surface, surface: Some(clean(surface)) };
        let answer = Box::new(SurfaceAnswer { key: key.clone(), given, reply });
        let turn = claim.route.turn.clone();
        turn.cast(TurnMsg::Answer(answer)).map_err(|_| AnswerError::Ended)?;
        // A turn that ends on the way takes its question along.
        taken.await.unwrap_or_else(|_| Err(AnswerError::Answered(key.id.clone())))
    }

    fn claim(&self, of: Option<&SessionId>, key: &QuestionKey) -> Result<Claim, AnswerError> {
        let mut book = self.book();
        let is_ended = book.ended.iter().any(|it| it.0 == key.id);
        let entry = book.open.get_mut(&key.id);
        let entry = entry.filter(|it| of.is_none_or(|session| it.question.session == *session));
        let Some(entry) = entry else {
            return Err(if is_ended {
                AnswerError::Answered(key.id.clone())
            } else {
                AnswerError::Unknown(key.id.clone())
            });
        };
        entry.question.accepts(key, entry.route.clock.now())?;
        if std::mem::replace(&mut entry.is_claimed, true) {
            return Err(AnswerError::Answered(key.id.clone()));
        }
        Ok(Claim {
            approvals: self.clone(),
            question: Arc::clone(&entry.question),
            number: entry.number,
            route: entry.route.clone(),
        })
    }

    /// Returns the session of a question that was open and is not any more, as long as it is remembered.
    #[cfg(feature = "serve")]
    pub(crate) fn ended(&self, id: &str) -> Option<SessionId> {
        let book = self.book();
        book.ended.iter().find(|it| it.0.as_str() == id).map(|it| it.1.clone())
    }

    fn book(&self) -> MutexGuard<'_, QuestionBook> {
        // Every change is whole before the lock goes, so a panic elsewhere spoils nothing.
        self.0.locked()
    }
}

/// An answer is on its way. Dropped without one, others may answer.
struct Claim {
    approvals: Approvals,
    question: Arc<Question>,
    number: u64,
    route: AnswerRoute,
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut book = self.approvals.book();
        let entry = book.open.get_mut(&self.question.id).filter(|it| it.number == self.number);
        if let Some(entry) = entry {
            entry.is_claimed = false;
        }
    }
}

impl OpenQuestion {
    /// Returns what an answer to the question names.
    pub(crate) fn key(&self) -> QuestionKey {
        self.question.key()
    }

    /// Returns the question that is open.
    pub(crate) fn question(&self) -> &Question {
        &self.question
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        let id = &self.question.id;
        let mut book = self.approvals.book();
        if book.open.get(id).is_some_and(|it| it.number == self.number) {
            book.open.remove(id);
            book.ended.push_back((id.clone(), self.question.session.clone()));
            if REMEMBERED < book.ended.len() {
                book.ended.pop_front();
            }
        }
        drop(book);
        if let Some(by) = self.end {
            let (call, tool) = (self.question.call.id.clone(), self.question.call.name.clone());
            let (id, allowed) = (id.clone(), false);
            self.hub.publish(Event::PermissionSettled { id, call, tool, allowed, by });
        }
    }
}

/// The name of a surface as records have it.
fn clean(surface: &str) -> String {
    surface.chars().filter(|it| !it.is_control()).take(64).collect()
}

impl fmt::Debug for Approvals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Approvals").field("open", &self.book().open.len()).finish_non_exhaustive()
    }
}
