//! Admits hooks and has them run.
//!
//! Child of a session, spawned on first use. Its mailbox is a window: a firing keeps its slot until
//! its handlers have ended, and a full window refuses at once, which denies (PreToolUse) or is
//! noted. A slow hook delays only the turn that waits for it. Executions of a turn end with it, but for handlers that
//! are not waited for (`detached.rs`): those end with the session.

mod detached;
mod firing;
mod verifiers;

use std::{collections::HashMap, num::NonZeroU32, sync::Arc};

use ennead_runtime::{
    event::Event,
    hook::{
        EndedHook, ExportingHandler, HandlerEnd, HandlerOutput, HookAction, HookHandler, HookInput,
    },
    ports::WorkGuard,
    step7_permission_gate::hook_condition::CallOfHook,
    turn::effect::HookFiring,
};
use futures::future::join_all;
use ractor::{
    Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, ActorStatus, SupervisionEvent,
};
use tokio_util::task::task_tracker::TaskTrackerToken;
use tracing::{Instrument, Span};

use crate::{
    groundwork::{
        directory::{ActorKind, Registration},
        mailbox::{Admitted, Slot},
        spans,
        supervision::{ended_child, spawn_leaf},
    },
    ports::in_process_hook,
    session::context::SessionContext,
    turn::turn_supervisor::message::TurnMsg,
    world::{
        clock::TimeSource,
        hook_exports::ExportFile,
        hook_process::{HandlerContext, HookCommand, HookHold, name_of, run_command},
        hook_tool,
        verifiers::Verifiers,
    },
};

use detached::{DetachedHook, DetachedHooks};
pub(crate) use firing::FiringRequest;

/// Firings of one session that are queued or running at once.
pub(crate) const WINDOW: NonZeroU32 = NonZeroU32::MIN.saturating_add(31);

/// Bytes of texts that are written as JSON where others wait: well below a millisecond.
const SHORT_INPUT: usize = 64 * 1024;

/// Bytes of a call that is held against a condition where others wait: an ordinary command takes a tenth of a
/// millisecond.
const SHORT_CALL: usize = 1024;

/// Handlers to be run for a turn.
pub(crate) struct HookRequest {
    /// The event and the handlers that run on it.
    pub(crate) firing: HookFiring,
    /// Directory and variables of the handlers.
    pub(crate) context: HandlerContext,
    /// The turn that waits for the result.
    pub(crate) turn: ActorRef<TurnMsg>,
    /// Kept until the handlers are gone.
    pub(crate) token: TaskTrackerToken,
    /// The span of the step that fires them.
    pub(crate) span: Span,
    /// Starts the agents that verify for them.
    pub(crate) verifiers: Option<Verifiers>,
}

/// What a hook runner receives.
pub(crate) enum HookMsg {
    /// Run these handlers. Holds a slot until they have ended.
    Run(Admitted<Box<HookRequest>>),
    /// Start these handlers, which nothing waits for.
    Fire(Box<FiringRequest>),
    /// This handler is not waited for.
    Detach(Box<DetachedHook>),
    /// One that was not waited for has ended.
    DetachedEnded(u64, Box<EndedHook>),
    /// End those that are not waited for: the session is being closed.
    EndDetached,
    /// All handlers of a request have ended.
    Finished(u64, Vec<HandlerOutput>),
    /// An execution, or a turn that is watched, has ended.
    ChildEnded(ActorId),
}

/// The actor that runs hooks.
pub(crate) struct HookRunner;

/// What a hook runner is given.
pub(crate) struct HookRunnerSetup {
    pub(crate) session_context: Arc<SessionContext>,
    /// Takes what came of a handler that was not waited for.
    pub(crate) report: Box<dyn Fn(Box<EndedHook>) + Send + Sync>,
}

pub(crate) struct HookRunnerState {
    session_context: Arc<SessionContext>,
    detached: DetachedHooks,
    next: u64,
    running: HashMap<u64, Running>,
    _registration: Registration,
}

struct Running {
    execution: ActorCell,
    turn: ActorRef<TurnMsg>,
    firing: u32,
    n_handlers: usize,
    _slot: Slot,
}

impl Actor for HookRunner {
    type Msg = HookMsg;
    type State = HookRunnerState;
    type Arguments = HookRunnerSetup;

    async fn pre_start(
        &self,
        myself: ActorRef<HookMsg>,
        HookRunnerSetup { session_context, report }: HookRunnerSetup,
    ) -> Result<HookRunnerState, ActorProcessingErr> {
        let registration = session_context.directory.enter(
            ActorKind::HookRunner,
            Some(&session_context.session),
            myself.get_cell(),
        );
        Ok(HookRunnerState {
            session_context,
            detached: DetachedHooks::new(report),
            next: 0,
            running: HashMap::new(),
            _registration: registration,
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<HookMsg>,
        message: HookMsg,
        state: &mut HookRunnerState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            HookMsg::Run(Admitted { work, slot }) => start(*work, slot, &myself, state).await?,
            HookMsg::Finished(id, outputs) => {
                if let Some(running) = state.running.remove(&id) {
                    reply(&running, outputs);
                }
            }
            HookMsg::Fire(request) => state.fire(*request, &myself).await,
            HookMsg::Detach(hook) => state.detach(*hook, &myself).await?,
            HookMsg::DetachedEnded(id, ended) => state.detached.ended(id, ended),
            HookMsg::EndDetached => state.detached.end_all(),
            HookMsg::ChildEnded(child) => on_child_end(child, state),
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<HookMsg>,
        event: SupervisionEvent,
        _: &mut HookRunnerState,
    ) -> Result<(), ActorProcessingErr> {
        if let Some(child) = ended_child(&event) {
            myself.cast(HookMsg::ChildEnded(child))?;
        }
        Ok(())
    }
}

async fn start(
    request: HookRequest,
    slot: Slot,
    myself: &ActorRef<HookMsg>,
    state: &mut HookRunnerState,
) -> Result<(), ActorProcessingErr> {
    let HookRequest { firing, context, turn, token, span, verifiers } = request;
    // The runner learns when the turn ends, and ends what it runs for it.
    myself.monitor(turn.get_cell());
    if ActorStatus::Stopping <= turn.get_status() {
        // It ended while this was on its way.
        return Ok(());
    }
    let id = state.next;
    state.next += 1;
    let HookFiring { firing: number, event, input, handlers, call_of_hook, .. } = firing;
    let n_handlers = handlers.len();
    let back = myself.clone();
    let hold = WorkGuard::new(token);
    let launcher = state.launcher(context, &back);
    let work = Box::pin(async move {
        let launcher = launcher.with_input(written(input).await);
        let runs = conditions(call_of_hook, &handlers).await;
        let run = |(index, (handler, runs)): (usize, (HookHandler, bool))| {
            let (launcher, verifiers, hold) = (&launcher, verifiers.as_ref(), hold.clone());
            let span = spans::hook(&span, event);
            async move {
                match &handler.action {
                    _ if !runs => HandlerOutput::unmet(),
                    HookAction::Agent(asked) => {
                        launcher.verify(&handler, asked, verifiers.map(|it| (it, index))).await
                    }
                    _ => launcher.run(handler, hold).await,
                }
            }
            .instrument(span)
        };
        let outputs = join_all(handlers.into_iter().zip(runs).enumerate().map(run)).await;
        drop(hold);
        let _gone = back.cast(HookMsg::Finished(id, outputs));
    });
    let job = state.session_context.job(ActorKind::HookExecution, work);
    let execution = spawn_leaf(job, myself.get_cell()).await?;
    state.running.insert(id, Running { execution, turn, firing: number, n_handlers, _slot: slot });
    Ok(())
}

/// Which handlers run: those without a condition, and those whose condition holds. More than one short look is left to
/// the blocking pool, where no session waits.
async fn conditions(call: Option<CallOfHook>, handlers: &[HookHandler]) -> Vec<bool> {
    let conditions: Vec<_> = handlers.iter().map(|it| it.condition.clone()).collect();
    let n_looks = conditions.iter().flatten().count();
    let Some(call) = call.filter(|_| n_looks > 0) else { return vec![true; handlers.len()] };
    let is_short = n_looks == 1 && call.n_bytes() <= SHORT_CALL;
    let look = move || {
        let met = conditions.iter().map(|it| it.as_ref().is_none_or(|it| call.meets(it)));
        met.collect()
    };
    if is_short {
        return look();
    }
    // It has no way to fail but a panic, and who does not know runs them.
    let n_handlers = handlers.len();
    tokio::task::spawn_blocking(look).await.unwrap_or_else(|_| vec![true; n_handlers])
}

/// Runs a handler to its end.
pub(crate) async fn run_handler(
    session_context: &SessionContext,
    handler: &HookHandler,
    context: &HandlerContext,
    input: &Arc<str>,
    hold: HookHold,
) -> HandlerOutput {
    let world = &session_context.world;
    let time = TimeSource { clock: &*world.clock, timer: &*world.timer };
    match &handler.action {
        HookAction::Command { command, args } => {
            let command = HookCommand { command, args: args.as_deref(), exports: None };
            let name = name_of(command, context.event);
            let file = match ExportingHandler::of(handler, context.event, name) {
                Some(it) => {
                    session_context.exports.begin(it, &session_context.facts.directory).await
                }
                None => None,
            };
            let command = HookCommand { exports: file.as_ref().map(ExportFile::path), ..command };
            let output = run_command(handler, command, context, input, time, hold).await;
            if let (Some(file), HandlerEnd::Exited(_)) = (file, output.ended)
                && let Err(why) = file.end().await
            {
                // What it has answered counts all the same.
                let what = format!("hook at {}: {why}", context.event.name());
                session_context.hub.publish(Event::Alert { what: what.into() });
            }
            output
        }
        HookAction::InProcess { name } => {
            let hooks = &session_context.hooks;
            in_process_hook::run(hooks, name, handler, context.event, input, time).await
        }
        HookAction::Http(http) => {
            world.hook_servers.ask(handler, http, context, Arc::clone(input), time).await
        }
        HookAction::McpTool(call) => {
            let tool = session_context.tools.get(&call.tool_name());
            hook_tool::call(handler, call, tool, Arc::clone(input), time).await
        }
        // The turn asks the model.
        HookAction::Prompt(prompt) => prompt.asked(input),
        // Of handlers that a turn waits for.
        HookAction::Agent(_) => HandlerOutput::unmet(),
    }
}

/// What the handlers read, as JSON; a long one is written on the blocking pool, where no session waits.
async fn written(input: HookInput) -> Arc<str> {
    if input.n_bytes() <= SHORT_INPUT {
        return input.to_json().into();
    }
    let written = tokio::task::spawn_blocking(move || input.to_json().into()).await;
    // It has no way to fail but a panic: a handler that reads nothing denies where its answer is needed.
    written.unwrap_or_else(|_| Arc::from(""))
}

/// With a long output read on the blocking pool, where no session waits.
async fn read_elsewhere(output: HandlerOutput) -> HandlerOutput {
    if output.is_short() {
        return output;
    }
    let read = tokio::task::spawn_blocking(|| output.read()).await;
    read.unwrap_or_else(|_| HandlerOutput::refused("its answer could not be read"))
}

/// An execution that is gone has crashed if it still owed an answer; executions of a turn that is
/// gone are ended.
fn on_child_end(child: ActorId, state: &mut HookRunnerState) {
    state.detached.child_ended(child);
    state.running.retain(|_, running| {
        if running.execution.get_id() == child {
            reply(running, vec![HandlerOutput::refused("the hook crashed"); running.n_handlers]);
            return false;
        }
        if running.turn.get_id() == child {
            running.execution.kill();
            return false;
        }
        true
    });
}

fn reply(running: &Running, outputs: Vec<HandlerOutput>) {
    let _gone = running.turn.cast(TurnMsg::Hooks(running.firing, outputs));
}

#[cfg(test)]
mod tests {
    use ennead_runtime::{
        hook::{Firing, HookContext},
        permission::PermissionMode,
    };
    use futures::FutureExt;

    use super::*;

    // REQ: HKS-1
    #[tokio::test]
    async fn long_input_of_a_hook_is_written_where_no_session_waits() {
        let input = |prompt: String| HookInput {
            context: HookContext {
                session: "s".into(),
                transcript_path: "/t.jsonl".into(),
                cwd: "/w".into(),
                mode: PermissionMode::Default,
                prompt: None,
                agent: None,
            },
            firing: Firing::UserPromptSubmit { prompt: prompt.into() },
        };
        let short = input("x".into());
        assert_eq!(written(short.clone()).now_or_never().as_deref(), Some(&*short.to_json()));
        // Each of these becomes six bytes.
        let long = input("\u{1}".repeat(2 << 20));
        let mut writing = Box::pin(written(long.clone()));
        assert!((&mut writing).now_or_never().is_none(), "this thread does not write it");
        assert_eq!(*writing.await, long.to_json());
    }

    // REQ: HKS-1
    #[tokio::test]
    async fn long_output_of_a_hook_is_read_where_no_session_waits() {
        let output =
            |stdout: String| HandlerOutput::new(HandlerEnd::Exited(0), stdout, String::new(), 1);
        assert!(read_elsewhere(output("{}".into())).now_or_never().is_some());
        let long = output(format!(r#"{{"x":[{}0]}}"#, "0,".repeat(1 << 19)));
        let mut reading = Box::pin(read_elsewhere(long.clone()));
        assert!((&mut reading).now_or_never().is_none(), "this thread does not read it");
        assert_eq!(reading.await, long);
    }
}
