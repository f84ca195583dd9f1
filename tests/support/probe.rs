//! An actor that does what its messages say and tells what became of it.
//!
//! Tests about actors need no sleep with it: every point that a test waits for is an event.

use std::future::{Future, pending};

use futures::future::BoxFuture;
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

use super::until::within;

/// What the probe receives.
pub(crate) enum Msg {
    /// Put this into the log.
    Note(&'static str),
    /// Await this in the handler, and let what comes out be the handler's result.
    Do(BoxFuture<'static, Result<(), ActorProcessingErr>>),
}

impl Msg {
    pub(crate) fn run(
        work: impl Future<Output = Result<(), ActorProcessingErr>> + Send + 'static,
    ) -> Self {
        Self::Do(Box::pin(work))
    }
}

/// The outside of a handler that [`hold`] keeps busy.
pub(crate) struct WorkGuard {
    /// Resolves when the handler has begun.
    pub(crate) begun: oneshot::Receiver<()>,
    /// Lets the handler end.
    pub(crate) release: oneshot::Sender<()>,
    /// Resolves when the handler's future is gone, done or dropped: `Ok` if it was done.
    pub(crate) gone: oneshot::Receiver<()>,
}

/// A message that keeps the handler busy until it is released.
pub(crate) fn hold() -> (Msg, WorkGuard) {
    let (tell_begun, begun) = oneshot::channel();
    let (release, released) = oneshot::channel::<()>();
    let (tell_done, gone) = oneshot::channel();
    let message = Msg::run(async move {
        let tell_done = tell_done;
        tell_begun.send(()).ok();
        if released.await.is_err() {
            pending::<()>().await;
        }
        tell_done.send(()).ok();
        Ok(())
    });
    (message, WorkGuard { begun, release, gone })
}

/// What probes said, in the order they said it.
pub(crate) struct Log {
    write: mpsc::UnboundedSender<&'static str>,
    read: mpsc::UnboundedReceiver<&'static str>,
}

impl Log {
    pub(crate) fn new() -> Self {
        let (write, read) = mpsc::unbounded_channel();
        Self { write, read }
    }

    pub(crate) fn writer(&self) -> mpsc::UnboundedSender<&'static str> {
        self.write.clone()
    }

    /// Waits for the next entry.
    pub(crate) async fn next(&mut self) -> &'static str {
        within("what a probe says", self.read.recv()).await.unwrap()
    }

    /// Waits until `last` is said and gives everything up to it.
    pub(crate) async fn until(&mut self, last: &str) -> Vec<&'static str> {
        let mut lines = vec![self.next().await];
        while lines.last() != Some(&last) {
            lines.push(self.next().await);
        }
        lines
    }

    /// What was said and not read yet.
    pub(crate) fn rest(&mut self) -> Vec<&'static str> {
        std::iter::from_fn(|| self.read.try_recv().ok()).collect()
    }

    /// Starts a probe that writes here and survives its children.
    pub(crate) async fn probe(&self) -> (ActorRef<Msg>, JoinHandle<()>) {
        Actor::spawn(None, Probe, self.writer()).await.unwrap()
    }

    /// The same, as a child.
    pub(crate) async fn child_of(&self, parent: &ActorRef<Msg>) -> (ActorRef<Msg>, JoinHandle<()>) {
        Actor::spawn_linked(None, Probe, self.writer(), parent.get_cell()).await.unwrap()
    }
}

/// See the module. Its argument is where it writes.
pub(crate) struct Probe;

impl Actor for Probe {
    type Msg = Msg;
    type State = mpsc::UnboundedSender<&'static str>;
    type Arguments = mpsc::UnboundedSender<&'static str>;

    async fn pre_start(
        &self,
        _: ActorRef<Msg>,
        log: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(log)
    }

    async fn post_stop(
        &self,
        _: ActorRef<Msg>,
        log: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        Ok(log.send("post_stop")?)
    }

    async fn handle(
        &self,
        _: ActorRef<Msg>,
        message: Msg,
        log: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Msg::Note(text) => Ok(log.send(text)?),
            Msg::Do(work) => work.await,
        }
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<Msg>,
        event: SupervisionEvent,
        log: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorTerminated(..) => log.send("event: child terminated")?,
            SupervisionEvent::ActorFailed(..) => log.send("event: child failed")?,
            _ => return Ok(()),
        }
        // The idiom of a supervisor that is owed an answer: see fact 4 in `ractor_facts`.
        Ok(myself.cast(Msg::Note("child gone"))?)
    }
}
