//! Leaves: actors that do one thing that may take long, and end.
//!
//! Only leaves wait. A leaf's work is a future that ends by sending a message; killing the leaf
//! drops the future at its next await. A panic in it ends the leaf, and its parent learns of it and
//! answers in its place. Everything that a supervisor must not do in a handler is a leaf. A leaf that stays does
//! the same for one piece of work after the other.

use ennead_runtime::{ids::SessionId, ports::BoxFuture};
use ractor::{
    Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, MessagingErr, SpawnErr,
    SupervisionEvent,
};

use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::groundwork::directory::{ActorKind, Directory, Registration};

/// What a message handler returns. An error ends the actor and is a bug.
pub(crate) type HandlerResult = Result<(), ActorProcessingErr>;

/// What a leaf is made of.
pub(crate) struct Job {
    /// What it counts as in the tree.
    kind: ActorKind,
    /// For whom it works; `None` for no session in particular.
    session: Option<SessionId>,
    /// Where it is entered.
    directory: Directory,
    /// Its work, with the sending of its result.
    work: BoxFuture<'static, ()>,
    /// Says that something of a turn still works. Goes after the work.
    token: Option<TaskTrackerToken>,
    /// Whether the leaf waits for more afterwards.
    stays: bool,
    /// Its entry in the directory, where the leaf was there before it.
    registration: Option<Registration>,
}

impl Job {
    /// Makes a job of work for a session, or for no session in particular.
    pub(crate) fn new(
        kind: ActorKind,
        session: Option<SessionId>,
        directory: Directory,
        work: BoxFuture<'static, ()>,
    ) -> Self {
        Self { kind, session, directory, work, token: None, stays: false, registration: None }
    }

    /// Keeps the token of a turn until the work is over.
    pub(crate) fn held(self, token: TaskTrackerToken) -> Self {
        Self { token: Some(token), ..self }
    }

    fn register(&self, leaf: ActorCell) -> Registration {
        self.directory.enter(self.kind, self.session.as_ref(), leaf)
    }
}

/// Spawns a leaf below `parent`. Takes 3 to 4 µs.
///
/// # Errors
///
/// When the parent is gone already.
pub(crate) async fn spawn_leaf(job: Job, parent: ActorCell) -> Result<ActorCell, SpawnErr> {
    Ok(spawn(Leaf, job, parent).await?.get_cell())
}

/// Gives work to a leaf that stays, or to a new one where it is gone. Returns who does it. What it did
/// before is to be over, since it does one after the other.
///
/// # Errors
///
/// When the parent is gone already.
pub(crate) async fn give_leaf(
    kept: Option<ActorRef<Job>>,
    job: Job,
    parent: ActorCell,
) -> Result<ActorRef<Job>, SpawnErr> {
    let mut job = Job { stays: true, ..job };
    if let Some(kept) = kept {
        job.registration = Some(job.register(kept.get_cell()));
        match kept.cast(job) {
            Err(MessagingErr::SendErr(unsent)) => job = Job { registration: None, ..unsent },
            _ => return Ok(kept),
        }
    }
    spawn(Leaf, job, parent).await
}

/// Spawns an actor below `parent`.
///
/// Boxed, because a handler that may spawn would otherwise be as large as the spawning (1.5 KB,
/// three times over in the actor that runs it), and is moved with every message.
///
/// # Errors
///
/// When the parent is gone already, or the actor cannot start.
pub(crate) fn spawn<A: Actor>(
    actor: A,
    arguments: A::Arguments,
    parent: ActorCell,
) -> BoxFuture<'static, Result<ActorRef<A::Msg>, SpawnErr>> {
    Box::pin(async move {
        let (spawned, _) = Actor::spawn_linked(None, actor, arguments, parent).await?;
        Ok(spawned)
    })
}

struct Leaf;

/// A leaf works from when it has started, in a task of its own.
struct LeafState {
    work: Option<BoxFuture<'static, ()>>,
    token: Option<TaskTrackerToken>,
    stays: bool,
    registration: Option<Registration>,
}

impl LeafState {
    fn new(mut job: Job, leaf: ActorCell) -> Self {
        let registration = job.registration.take().unwrap_or_else(|| job.register(leaf));
        let Job { work, token, stays, .. } = job;
        Self { work: Some(work), token, stays, registration: Some(registration) }
    }

    async fn run(&mut self) {
        if let Some(work) = self.work.take() {
            work.await;
            self.token = None;
        }
        if self.stays {
            self.registration = None;
        }
    }
}

impl Actor for Leaf {
    type Msg = Job;
    type State = LeafState;
    type Arguments = Job;

    async fn pre_start(
        &self,
        myself: ActorRef<Job>,
        job: Job,
    ) -> Result<LeafState, ActorProcessingErr> {
        Ok(LeafState::new(job, myself.get_cell()))
    }

    async fn post_start(
        &self,
        myself: ActorRef<Job>,
        state: &mut LeafState,
    ) -> Result<(), ActorProcessingErr> {
        state.run().await;
        if !state.stays {
            stop_after_reply(&myself);
        }
        Ok(())
    }

    async fn handle(
        &self,
        myself: ActorRef<Job>,
        job: Job,
        state: &mut LeafState,
    ) -> Result<(), ActorProcessingErr> {
        *state = LeafState::new(job, myself.get_cell());
        state.run().await;
        Ok(())
    }
}

/// Why an actor ends that has sent its parent its result.
const REPLIED: &str = "replied";

/// Ends an actor that has just sent its parent its result.
pub(crate) fn stop_after_reply<M: ractor::Message>(actor: &ActorRef<M>) {
    actor.stop(Some(REPLIED.into()));
}

/// Returns the actor that ended, unless it ended as one that has sent its result. A message that it
/// sent before it ended is in the mailbox by then, though not handled yet.
pub(crate) fn ended_without_reply(event: &SupervisionEvent) -> Option<ActorId> {
    match event {
        SupervisionEvent::ActorTerminated(.., Some(why)) if why == REPLIED => None,
        event => ended_child(event),
    }
}

/// Returns the actor that terminated; `None` if the event is not the end of one.
pub(crate) fn ended_child(event: &SupervisionEvent) -> Option<ActorId> {
    match event {
        SupervisionEvent::ActorTerminated(child, ..) | SupervisionEvent::ActorFailed(child, _) => {
            Some(child.get_id())
        }
        _ => None,
    }
}
