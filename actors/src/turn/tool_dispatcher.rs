//! Runs the tool calls of one turn, each in an executor of its own. The supervisor takes their slots.
//!
//! Child of a turn supervisor, spawned when an answer holds tool uses. Its mailbox is a quota: the
//! slot of every call is kept until the turn ends, so the call after the last slot is refused,
//! however fast the others end. Executors answer the turn themselves; the dispatcher answers for those
//! that end without a word.
//!
//! The tools themselves are in the crate `ennead-tools`, one file each; what a call may use of its session is
//! put together in `turn_supervisor/tool_context.rs`.

use std::{collections::HashMap, sync::Arc, time::Duration};

use ennead_runtime::{
    ids::ToolUseId,
    ports::{CommittedOutcome, ToolContext, WorkGuard},
    saturating::Saturating as _,
    step7_permission_gate::Permit,
    tool::{ToolCall, ToolErrorKind, ToolOutcome, ToolSpec},
    turn::TurnInput,
};
use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef, SupervisionEvent};
use tracing::{Instrument, Span};

use crate::{
    groundwork::{
        directory::{ActorKind, Registration},
        mailbox::{Admitted, Slot},
        supervision::{ended_child, ended_without_reply, spawn_leaf},
    },
    session::context::SessionContext,
    turn::turn_supervisor::message::TurnMsg,
    world::clock::{Timer, within},
};

/// A call that is to run.
pub(crate) struct Execution {
    permit: Permit,
    call: ToolCall,
    spec: Arc<ToolSpec>,
    context: ToolContext,
    span: Span,
}

/// What a dispatcher receives.
pub(crate) enum DispatcherMsg {
    /// The calls of another turn follow: those of the one before give back their slots.
    Begin,
    /// Run this call. Its slot is kept until the turn ends.
    Execute(Admitted<Box<Execution>>),
}

/// What a dispatcher is given.
pub(crate) struct ToolDispatcherSetup {
    pub(crate) session_context: Arc<SessionContext>,
    pub(crate) turn: ActorRef<TurnMsg>,
}

/// The actor that runs the calls of a turn.
pub(crate) struct ToolDispatcher;

pub(crate) struct ToolDispatcherState {
    session_context: Arc<SessionContext>,
    turn: ActorRef<TurnMsg>,
    /// Not given back before the turn ends: a quota.
    slots: Vec<Slot>,
    running: HashMap<ActorId, (ToolUseId, CommittedOutcome)>,
    _registration: Registration,
}

impl Actor for ToolDispatcher {
    type Msg = DispatcherMsg;
    type State = ToolDispatcherState;
    type Arguments = ToolDispatcherSetup;

    async fn pre_start(
        &self,
        myself: ActorRef<DispatcherMsg>,
        setup: ToolDispatcherSetup,
    ) -> Result<ToolDispatcherState, ActorProcessingErr> {
        let ToolDispatcherSetup { session_context, turn } = setup;
        let registration = session_context.directory.enter(
            ActorKind::ToolDispatcher,
            Some(&session_context.session),
            myself.get_cell(),
        );
        Ok(ToolDispatcherState {
            session_context,
            turn,
            slots: Vec::new(),
            running: HashMap::new(),
            _registration: registration,
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<DispatcherMsg>,
        message: DispatcherMsg,
        state: &mut ToolDispatcherState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            DispatcherMsg::Begin => {
                state.slots.clear();
                Ok(())
            }
            DispatcherMsg::Execute(Admitted { work, slot }) => {
                state.slots.push(slot);
                Box::pin(execute(*work, &myself, state)).await
            }
        }
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<DispatcherMsg>,
        event: SupervisionEvent,
        state: &mut ToolDispatcherState,
    ) -> Result<(), ActorProcessingErr> {
        let ended = ended_child(&event).and_then(|it| state.running.remove(&it));
        if let Some((call, committed)) = ended
            && ended_without_reply(&event).is_some()
        {
            // If it answered the turn just before it was killed, the turn takes only the first answer.
            let outcome = Box::new(committed.get().cloned().unwrap_or_else(ToolOutcome::crashed));
            state.turn.cast(TurnMsg::Input(TurnInput::ToolFinished { call, outcome }))?;
        }
        Ok(())
    }
}

impl Execution {
    /// Makes the execution of a call with what it may use of its session.
    pub(crate) fn new(
        permit: Permit,
        call: ToolCall,
        spec: Arc<ToolSpec>,
        context: ToolContext,
        span: Span,
    ) -> Self {
        Self { permit, call, spec, context, span }
    }

    /// Returns where the call leaves its outcome once it cannot be undone.
    pub(crate) fn committed_outcome(&self) -> CommittedOutcome {
        self.context.committed.clone()
    }
}

/// Spawns the executor of a call.
async fn execute(
    execution: Execution,
    myself: &ActorRef<DispatcherMsg>,
    state: &mut ToolDispatcherState,
) -> Result<(), ActorProcessingErr> {
    let (call, committed) = (execution.call.id.clone(), execution.committed_outcome());
    let tool = state.session_context.tools.get(&execution.call.name);
    let turn = state.turn.clone();
    let timer = Arc::clone(&state.session_context.world.timer);
    let work = Box::pin(async move {
        let call = execution.call.id.clone();
        let clock = Arc::clone(&execution.context.clock);
        let started = clock.elapsed();
        let span = execution.span.clone();
        let mut outcome = run(tool, execution, &*timer).instrument(span).await;
        let took = clock.elapsed().saturating_sub(started).as_millis();
        outcome.duration_ms = u64::saturating(took);
        let outcome = Box::new(outcome);
        let _gone = turn.cast(TurnMsg::Input(TurnInput::ToolFinished { call, outcome }));
    });
    let job = state.session_context.job(ActorKind::ToolExecutor, work);
    let executor = spawn_leaf(job, myself.get_cell()).await?;
    state.running.insert(executor.get_id(), (call, committed));
    Ok(())
}

/// Runs a call to its end or to its time limit.
async fn run(
    tool: Option<Arc<dyn ennead_runtime::ports::Tool>>,
    execution: Execution,
    timer: &dyn Timer,
) -> ToolOutcome {
    let Execution { permit, call, spec, context, .. } = execution;
    if let Err(error) = permit.check(&call) {
        return ToolOutcome::failed(ToolErrorKind::PermissionDenied, error.to_string());
    }
    let Some(tool) = tool else {
        return ToolOutcome::failed(ToolErrorKind::UnknownTool, format!("no tool {}", call.name));
    };
    let _hold: WorkGuard = context.guard.clone();
    let committed = context.committed.clone();
    let running = tool.run(permit, context);
    match spec.timeout_ms {
        None => running.await,
        Some(ms) => match within(timer, Duration::from_millis(ms), running).await {
            Some(outcome) => outcome,
            // Late, but past its point of no return: done is done.
            None => committed.get().cloned().unwrap_or_else(|| {
                let what = format!("The tool did not end within {ms} ms and was stopped.");
                ToolOutcome::failed(ToolErrorKind::TimedOut, what)
            }),
        },
    }
}
