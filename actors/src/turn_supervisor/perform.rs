//! Carries out the effects of a turn: each becomes a message or a child.

use std::{sync::Arc, time::Duration};

use ennead_runtime::{
    event::Event,
    hook::{HandlerOutput, HookEvent},
    ports::{BoxFuture, Cancel, Hold, Settled, SpawnAgent, ToolContext},
    run::facts::SessionFacts,
    step::Step,
    step7_permission_gate::PathKind,
    tokens::Usage,
    tool::{ToolCall, ToolErrorKind, ToolOutcome},
    turn::{
        Effect, Input,
        effect::{HookFiring, ModelCallOrder, ShapeOrder, TurnReport},
        input::{Admission, Answered, Crashed},
    },
};
use futures::FutureExt;
use ractor::{ActorId, ActorProcessingErr, ActorRef};
use tokio_util::sync::CancellationToken;

use super::{Pending, State, TurnMsg};
use crate::{
    approval,
    directory::ActorKind,
    gate_worker,
    mailbox::Mailbox,
    model_call,
    session::{HookToken, SessionMsg, agents::AgentPort, processes::ProcessPort, shared::Shared},
    shaper_stage,
    source_reader::{self, SettingsAsked},
    supervision::{Job, spawn, spawn_leaf, stop_behind_answer},
    tool_dispatcher::{self, DispatcherMsg, Execution, ToolDispatcher},
    world::hook_process::HookPlace,
};

pub(super) type Done = Result<(), ActorProcessingErr>;

/// A child that is about to start.
type Starting<'a> = Option<BoxFuture<'a, Done>>;

/// Carries out one effect; what is left is to wait for a child to start. Never waits for the world.
pub(super) fn perform<'a>(
    effect: Effect,
    myself: &'a ActorRef<TurnMsg>,
    state: &'a mut State,
) -> Result<Starting<'a>, ActorProcessingErr> {
    match effect {
        Effect::Next(step) => myself.cast(TurnMsg::Run(step))?,
        Effect::ReadSettings => {
            let Shared { world, place, .. } = &*state.shared;
            let mut look = world.files.settings(place, state.fingerprints.as_ref());
            let (turn, session) = (myself.clone(), state.session.clone());
            let asked = SettingsAsked { turn, session, key: state.key };
            // Files that are as they were need no reader: the answer is there.
            match (&mut look).now_or_never() {
                Some(found) => asked.tell(found),
                None => {
                    state.session.cast(SessionMsg::Flush)?;
                    let work = source_reader::settings(look, asked);
                    return Ok(state.leaf(
                        myself,
                        ActorKind::SourceReader,
                        Pending::Settings,
                        work,
                    ));
                }
            }
        }
        Effect::ReadSources => {
            let mut work = source_reader::sources(Arc::clone(&state.shared), myself.clone());
            // Where no file contributes, nothing waits.
            if (&mut work).now_or_never().is_none() {
                return Ok(state.leaf(myself, ActorKind::SourceReader, Pending::Sources, work));
            }
        }
        Effect::Shape(order) => return Ok(shape(*order, myself, state)),
        Effect::CallModel(order) => return Ok(call_model(*order, myself, state)),
        Effect::Wait { attempt, ms } => {
            let waiting = state.shared.world.timer.sleep(Duration::from_millis(ms));
            let turn = myself.clone();
            let _timer = ractor::concurrency::spawn(async move {
                waiting.await;
                // It finds nobody when the turn is gone by then.
                let _gone = turn.cast(TurnMsg::Input(Input::TimerFired { attempt }));
            });
        }
        Effect::Dispatch(calls) => return Ok(Some(Box::pin(dispatch(calls, myself, state)))),
        Effect::RunHooks(firing) => run_hooks(*firing, myself, state)?,
        Effect::ResolvePath { call, given } => {
            let pending = Pending::Path(call.clone(), given.clone());
            let cwd = state.turn.cwd().to_owned();
            let work =
                gate_worker::look(Arc::clone(&state.shared), cwd, call, given, myself.clone());
            return Ok(state.leaf(myself, ActorKind::GateWorker, pending, work));
        }
        Effect::AskPermission { call, reason, suggestions } => {
            let pending = Pending::Approval(call.id.clone());
            let work = approval::ask(&state.shared, call, reason, suggestions, myself.clone());
            return Ok(state.leaf(myself, ActorKind::Approval, pending, work));
        }
        Effect::ExecuteTool { permit, call, spec } => {
            let id = call.id.clone();
            let Some((dispatcher, (slot, checked))) =
                state.dispatcher.as_ref().zip(state.slots.remove(&id))
            else {
                return crashed(myself, &id).map(|()| None);
            };
            // A hook may have put another input in the place of the one that was checked.
            if checked != call.input
                && let Some(tool) = state.shared.tools.get(&call.name)
                && let Err(why) = tool.check_input(&call.input)
            {
                let why = format!("{why} (the input is that of a PreToolUse hook)");
                let outcome = Box::new(ToolOutcome::failed(ToolErrorKind::InvalidInput, why));
                myself.cast(TurnMsg::Input(Input::ToolFinished { call: id, outcome }))?;
                return Ok(None);
            }
            let execution = Box::new(Execution::new(*permit, call, spec, state.tool_context()));
            let (settled, key) = (execution.settled(), state.key);
            state.session.cast(SessionMsg::CallStarted { key, call: id.clone(), settled })?;
            if dispatcher.send_with(slot, execution).is_err() {
                return crashed(myself, &id).map(|()| None);
            }
            state.running.push(id);
        }
        Effect::Append(append) => {
            state.session.cast(SessionMsg::Append { key: state.key, append })?;
        }
        Effect::Tell(event) => state.shared.hub.publish(event),
        Effect::Finish(report) => finish(report, myself, state)?,
    }
    Ok(None)
}

fn finish(report: Box<TurnReport>, myself: &ActorRef<TurnMsg>, state: &mut State) -> Done {
    let fingerprints = state.fingerprints.take();
    state.session.cast(SessionMsg::TurnDone { key: state.key, report, fingerprints })?;
    stop_behind_answer(myself);
    Ok(())
}

fn shape<'a>(
    order: ShapeOrder,
    myself: &'a ActorRef<TurnMsg>,
    state: &'a mut State,
) -> Starting<'a> {
    let pending = Pending::Shape(order.stage);
    let work = shaper_stage::run(Arc::clone(&state.shared), order, myself.clone());
    state.leaf(myself, ActorKind::ShaperStage, pending, work)
}

fn call_model<'a>(
    order: ModelCallOrder,
    myself: &'a ActorRef<TurnMsg>,
    state: &'a mut State,
) -> Starting<'a> {
    let pending = Pending::Model(order.attempt);
    let work = model_call::run(Arc::clone(&state.shared), order, myself.clone());
    state.leaf(myself, ActorKind::ModelCall, pending, work)
}

/// Takes a slot of the dispatcher for each call and checks its input against the schema.
async fn dispatch(calls: Vec<ToolCall>, myself: &ActorRef<TurnMsg>, state: &mut State) -> Done {
    let capacity = state.turn.max_tool_calls();
    let setup = tool_dispatcher::Setup { shared: Arc::clone(&state.shared), turn: myself.clone() };
    let dispatcher = spawn(ToolDispatcher, setup, myself.get_cell()).await?;
    state.pending.push((dispatcher.get_id(), Pending::Dispatcher));
    let mailbox = Mailbox::new(dispatcher, capacity, DispatcherMsg::Execute);
    let mut admissions = Vec::new();
    for call in calls {
        let admission = match mailbox.reserve() {
            None => Admission::TooMany,
            Some(slot) => {
                let tool = state.shared.tools.get(&call.name);
                let checked = tool.map_or(Ok(()), |it| it.check_input(&call.input));
                state.slots.insert(call.id, (slot, call.input));
                checked.map_or_else(Admission::InvalidInput, |()| Admission::Admitted)
            }
        };
        admissions.push(admission);
    }
    state.dispatcher = Some(mailbox);
    myself.cast(TurnMsg::Input(Input::Dispatched(admissions)))?;
    Ok(())
}

fn run_hooks(firing: HookFiring, myself: &ActorRef<TurnMsg>, state: &mut State) -> Done {
    state.firing = Some((firing.firing, firing.handlers.len()));
    let place = state.hook_place(firing.event);
    let request = HookToken { turn: myself.clone(), token: state.scope.tracker.token() };
    state.session.cast(SessionMsg::RunHooks { firing: Box::new(firing), place, request })?;
    Ok(())
}

fn crashed(myself: &ActorRef<TurnMsg>, call: &ennead_runtime::ids::ToolUseId) -> Done {
    let outcome = Box::new(crash_outcome());
    myself.cast(TurnMsg::Input(Input::ToolFinished { call: call.clone(), outcome }))?;
    Ok(())
}

/// What stands for the result of a call whose executor is gone.
pub(crate) fn crash_outcome() -> ToolOutcome {
    let text = "The tool crashed. What it did until then is not known; it was not run again.";
    ToolOutcome::failed(ToolErrorKind::Crashed, text)
}

impl State {
    /// Spawns a leaf that owes an answer.
    fn leaf<'a>(
        &'a mut self,
        myself: &'a ActorRef<TurnMsg>,
        kind: ActorKind,
        pending: Pending,
        work: BoxFuture<'static, ()>,
    ) -> Starting<'a> {
        let token = self.scope.tracker.token();
        let work = Box::pin(async move {
            work.await;
            drop(token);
        });
        let job = Job {
            kind,
            session: self.shared.session.clone(),
            directory: self.shared.directory.clone(),
            work,
        };
        Some(Box::pin(async move {
            let id = spawn_leaf(job, myself.get_cell()).await?;
            self.pending.push((id.get_id(), pending));
            Ok(())
        }))
    }

    /// A step is reached: at a breakpoint the turn stands still until it is let go on.
    pub(super) fn reach(&mut self, myself: &ActorRef<TurnMsg>, step: Step) -> Option<Input> {
        self.registration.at_step(step);
        if let Some(breakpoints) = &self.shared.breakpoints
            && self.passed != Some(step)
        {
            self.passed = Some(step);
            let back = myself.clone();
            let go_on = Box::new(move || {
                let _gone = back.cast(TurnMsg::Run(step));
            });
            if let Some(go_on) = breakpoints.reached(&self.shared.session, step, go_on) {
                // Not a breakpoint here.
                drop(go_on);
                return Some(Input::Run(step));
            }
            let _gone = self.session.cast(SessionMsg::Flush);
            return None;
        }
        Some(Input::Run(step))
    }

    /// The question that this input answers is closed.
    pub(super) fn answered(&mut self, input: &Input) {
        let is_answered = |pending: &Pending| match (pending, input) {
            (Pending::Settings, Input::SettingsRead(_)) => true,
            (Pending::Sources, Input::SourcesRead(_)) => true,
            (Pending::Shape(stage), Input::Shaped { stage: answered, .. }) => stage == answered,
            (Pending::Model(attempt), Input::ModelAnswered(it)) => *attempt == it.attempt,
            (Pending::Path(call, _), Input::PathResolved { call: answered, .. }) => {
                call == answered
            }
            (Pending::Approval(call), Input::PermissionAnswered { call: answered, .. }) => {
                call == answered
            }
            _ => false,
        };
        self.pending.retain(|(_, it)| !is_answered(it));
        if let Input::ToolFinished { call, .. } = input {
            self.running.retain(|it| it != call);
        }
    }

    /// A child is gone. If it still owed an answer, this is the answer.
    pub(super) fn child_gone(&mut self, myself: &ActorRef<TurnMsg>, child: ActorId) -> Done {
        let Some(at) = self.pending.iter().position(|(id, _)| *id == child) else { return Ok(()) };
        let (_, pending) = self.pending.remove(at);
        let input = match pending {
            // Without settings a turn must not run: the session ends the run.
            Pending::Settings => {
                let why = "the settings could not be read".into();
                self.session.cast(SessionMsg::CannotRun { key: self.key, why })?;
                return Ok(());
            }
            Pending::Sources => {
                let what = "the sources could not be read; the session goes on without them";
                self.shared.hub.publish(Event::Alert { what: what.into() });
                Input::SourcesRead(Box::new(source_reader::without_files(&self.shared)))
            }
            Pending::Shape(stage) => Input::Shaped { stage, result: Err(Crashed), elapsed_us: 0 },
            Pending::Model(attempt) => Input::ModelAnswered(Box::new(Answered {
                attempt,
                result: Err(model_call::crashed()),
                usage: Usage::default(),
                first_token_ms: None,
                duration_ms: 0,
                parked_ms: None,
            })),
            Pending::Path(call, given) => {
                let path = gate_worker::unknown(given, PathKind::Invalid);
                Input::PathResolved { call, path }
            }
            Pending::Approval(call) => {
                Input::PermissionAnswered { call, answer: approval::nobody() }
            }
            Pending::Dispatcher => {
                self.dispatcher = None;
                self.slots.clear();
                for call in std::mem::take(&mut self.running) {
                    crashed(myself, &call)?;
                }
                return Ok(());
            }
        };
        myself.cast(TurnMsg::Input(input))?;
        Ok(())
    }

    /// Handlers that are awaited will not answer: they count as not run. `firing` says which;
    /// `None` means whichever is awaited.
    pub(super) fn hooks_lost(&mut self, firing: Option<u32>, why: &str) -> Option<Input> {
        let is_meant = |(awaited, _): &mut (u32, usize)| firing.is_none_or(|it| it == *awaited);
        let (firing, n_handlers) = self.firing.take_if(is_meant)?;
        let outputs = vec![HandlerOutput::refused(why); n_handlers];
        Some(Input::HooksAnswered { firing, outputs })
    }

    /// What a call may use of its session.
    fn tool_context(&self) -> ToolContext {
        let facts = &self.shared.facts;
        let nests = facts.tools.iter().any(|it| it.name.as_str() == "Agent");
        let agents = nests.then(|| {
            let (session, key) = (self.session.clone(), self.key);
            let (limits, used) = (self.turn.agent_limits(), self.turn.usage());
            let port = AgentPort { session, key, limits, layers: self.turn.layers(), used };
            Arc::new(port) as Arc<dyn SpawnAgent>
        });
        ToolContext {
            session: facts.session.clone(),
            workspace: Arc::clone(&facts.workspace),
            additional_directories: self.turn.additional_directories().into(),
            spill_directory: spill_directory(facts).into(),
            memory: Arc::clone(self.turn.memory()),
            env: self.turn.env().into(),
            cancel: Arc::new(CancelFlag(self.scope.cancel.clone())),
            hold: Hold::new(self.scope.tracker.token()),
            settled: Settled::default(),
            agents,
            processes: Some(Arc::new(ProcessPort { session: self.session.clone(), key: self.key })),
            clock: Arc::clone(&self.shared.world.clock),
        }
    }

    /// Where hooks run.
    fn hook_place(&self, event: HookEvent) -> HookPlace {
        HookPlace {
            cwd: self.turn.cwd().to_owned(),
            project: self.shared.facts.workspace.to_string(),
            env: self.turn.env(),
            event,
            chain: Arc::clone(&self.shared.hook_chain),
        }
    }
}

/// Where output that is too long is kept. Agents of a tree share the directory beside the top
/// session's transcript, and ids of calls may be the same in several of them.
fn spill_directory(facts: &SessionFacts) -> String {
    match &facts.agent {
        Some(agent) => format!("{}/tool-results/agent-{agent}", facts.directory),
        None => format!("{}/tool-results", facts.directory),
    }
}

/// The turn's cancel flag behind the port.
#[derive(Debug)]
struct CancelFlag(CancellationToken);

impl Cancel for CancelFlag {
    fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    fn cancelled(&self) -> BoxFuture<'static, ()> {
        Box::pin(self.0.clone().cancelled_owned())
    }
}
