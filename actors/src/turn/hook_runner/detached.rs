//! Handlers that are not waited for: those with `async`, and those whose first line of output says so.
//!
//! Each goes on in a leaf of the runner, of no turn. A session has at most [`MAX_DETACHED`] of them at once; they end
//! with it.

use std::{
    collections::HashMap,
    fmt,
    future::ready,
    sync::{Arc, Mutex},
};

use ennead_runtime::{
    hook::{
        EndedHook, HandlerEnd, HandlerOutput, HookAction, HookEvent, HookHandler, HookWait,
        WatchReach,
    },
    ports::{BoxFuture, WorkGuard},
};
use ennead_tools::locked::Locked as _;
use futures::future::{Either, select};
use ractor::{ActorCell, ActorId, ActorRef};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::{HookMsg, HookRunnerState, read_elsewhere, run_handler};
use crate::{
    groundwork::{
        directory::ActorKind,
        supervision::{HandlerResult, spawn_leaf},
    },
    session::context::SessionContext,
    world::hook_process::{HandlerContext, HookHold},
};

/// Handlers of one session that go on at once without being waited for.
pub(crate) const MAX_DETACHED: usize = 16;

/// A handler that is not waited for.
pub(crate) struct DetachedHook {
    handler: HookHandler,
    context: Arc<HandlerContext>,
    file: Option<String>,
    work: BoxFuture<'static, HandlerOutput>,
    permit: OwnedSemaphorePermit,
}

/// Those of a session.
pub(super) struct DetachedHooks {
    running: HashMap<u64, ActorCell>,
    /// A permit for each that may be at work.
    room: Arc<Semaphore>,
    is_closing: bool,
    report: Box<dyn Fn(Box<EndedHook>) + Send + Sync>,
}

/// Runs the handlers of one firing.
pub(super) struct HookLauncher {
    session_context: Arc<SessionContext>,
    context: Arc<HandlerContext>,
    /// The file that they run for, where they run for one.
    file: Option<String>,
    input: Arc<str>,
    room: Arc<Semaphore>,
    runner: ActorRef<HookMsg>,
}

/// What keeps a turn from being over, until it is not waited for any more.
#[derive(Clone)]
struct TurnHold(Arc<Mutex<Option<WorkGuard>>>);

impl TurnHold {
    fn release(&self) {
        drop(self.0.locked().take());
    }
}

impl HookRunnerState {
    /// Makes what runs the handlers of a firing.
    pub(super) fn launcher(
        &self,
        context: HandlerContext,
        runner: &ActorRef<HookMsg>,
    ) -> HookLauncher {
        HookLauncher {
            session_context: Arc::clone(&self.session_context),
            context: Arc::new(context),
            file: None,
            input: Arc::from(""),
            room: Arc::clone(&self.detached.room),
            runner: runner.clone(),
        }
    }

    /// Has a handler go on in a leaf of its own.
    pub(super) async fn detach(
        &mut self,
        hook: DetachedHook,
        myself: &ActorRef<HookMsg>,
    ) -> HandlerResult {
        if self.detached.is_closing {
            return Ok(());
        }
        let id = self.next;
        self.next += 1;
        let back = myself.clone();
        let DetachedHook { handler, context, file, work, permit } = hook;
        let work = Box::pin(async move {
            let output = work.await;
            drop(permit);
            let ended = ended(context.event, &handler, file, output);
            let _gone = back.cast(HookMsg::DetachedEnded(id, Box::new(ended)));
        });
        let job = self.session_context.job(ActorKind::HookExecution, work);
        let leaf = spawn_leaf(job, myself.get_cell()).await?;
        self.detached.running.insert(id, leaf);
        Ok(())
    }
}

/// Makes what is reported of a handler that nothing waits for.
pub(super) fn ended(
    event: HookEvent,
    handler: &HookHandler,
    file: Option<String>,
    output: HandlerOutput,
) -> EndedHook {
    EndedHook {
        event,
        handler: handler.label(),
        output,
        file,
        reach: WatchReach::of(handler),
        rewakes: handler.wait == HookWait::Rewaking,
        shows: None,
    }
}

impl DetachedHooks {
    pub(super) fn new(report: Box<dyn Fn(Box<EndedHook>) + Send + Sync>) -> Self {
        let room = Arc::new(Semaphore::new(MAX_DETACHED));
        Self { running: HashMap::new(), room, is_closing: false, report }
    }

    /// Reports one that was not started.
    pub(super) fn report(&self, ended: EndedHook) {
        (self.report)(Box::new(ended));
    }

    /// Reports what came of one.
    pub(super) fn ended(&mut self, id: u64, ended: Box<EndedHook>) {
        if self.running.remove(&id).is_some() {
            (self.report)(ended);
        }
    }

    /// Forgets one that crashed.
    pub(super) fn child_ended(&mut self, child: ActorId) {
        self.running.retain(|_, leaf| leaf.get_id() != child);
    }

    /// Ends all, and starts no more.
    pub(super) fn end_all(&mut self) {
        self.is_closing = true;
        self.running.drain().for_each(|(_, leaf)| leaf.kill());
    }
}

impl HookLauncher {
    pub(super) fn session_context(&self) -> &SessionContext {
        &self.session_context
    }

    pub(super) fn event(&self) -> HookEvent {
        self.context.event
    }

    pub(super) fn input(&self) -> &str {
        &self.input
    }

    pub(super) fn with_input(self, input: Arc<str>) -> Self {
        Self { input, ..self }
    }

    pub(super) fn for_file(self, file: Option<String>) -> Self {
        Self { file, ..self }
    }

    /// Runs a handler to its end, or until it is not to be waited for. `hold` keeps its turn from being over so long.
    pub(super) async fn run(&self, handler: HookHandler, hold: WorkGuard) -> HandlerOutput {
        let may_announce = matches!(handler.action, HookAction::Command { .. });
        if handler.wait == HookWait::Waited && !may_announce {
            let hold = HookHold { guard: hold, announce: None };
            let (session_context, context) = (&self.session_context, &self.context);
            let output = run_handler(session_context, &handler, context, &self.input, hold).await;
            return read_elsewhere(output).await;
        }
        let hold = TurnHold(Arc::new(Mutex::new(Some(hold))));
        if handler.wait != HookWait::Waited {
            let work = self.start(&handler, &hold, None);
            return self.detach(handler, work, &hold);
        }
        let (announce, announced) = oneshot::channel();
        let work = self.start(&handler, &hold, Some(announce));
        let work: BoxFuture<'static, _> = match select(work, announced).await {
            // It may have ended as soon as it had announced that.
            Either::Left((output, mut announced)) => match announced.try_recv() {
                Ok(()) => Box::pin(ready(output)),
                Err(_) => return output,
            },
            Either::Right((Ok(()), work)) => work,
            Either::Right((Err(_), work)) => return work.await,
        };
        self.detach(handler, work, &hold)
    }

    /// Makes the work of a command. What it starts is waited for at the end of the session, also where the turn does
    /// not wait for it any more.
    fn start(
        &self,
        handler: &HookHandler,
        hold: &TurnHold,
        announce: Option<oneshot::Sender<()>>,
    ) -> BoxFuture<'static, HandlerOutput> {
        let session_context = Arc::clone(&self.session_context);
        let (context, input) = (Arc::clone(&self.context), Arc::clone(&self.input));
        let of_session = (session_context.shells.tracker.token(), session_context.guard.clone());
        let guard = WorkGuard::new((hold.clone(), of_session));
        let (handler, hold) = (handler.clone(), HookHold { guard, announce });
        Box::pin(async move {
            let output = run_handler(&session_context, &handler, &context, &input, hold).await;
            read_elsewhere(output).await
        })
    }

    /// Hands over work that is not waited for, as long as there is room; else it is dropped, and ends.
    fn detach(
        &self,
        handler: HookHandler,
        work: BoxFuture<'static, HandlerOutput>,
        hold: &TurnHold,
    ) -> HandlerOutput {
        let Ok(permit) = Arc::clone(&self.room).try_acquire_owned() else {
            let why = format!("{MAX_DETACHED} that are not waited for are at work");
            return HandlerOutput::new(HandlerEnd::Crowded, String::new(), why, 0);
        };
        hold.release();
        let (context, file) = (Arc::clone(&self.context), self.file.clone());
        let hook = DetachedHook { handler, context, file, work, permit };
        let _gone = self.runner.cast(HookMsg::Detach(Box::new(hook)));
        HandlerOutput::new(HandlerEnd::Detached, String::new(), String::new(), 0)
    }
}

impl fmt::Debug for DetachedHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DetachedHook").field("handler", &self.handler).finish_non_exhaustive()
    }
}
