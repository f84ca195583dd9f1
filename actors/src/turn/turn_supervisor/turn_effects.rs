//! Carries out the effects of a turn: each becomes a message or a child. Tool calls go on to `dispatch.rs`,
//! questions to people to `open_question.rs`, what files hold to `reading.rs`, and children that owe an answer
//! into `awaited_children.rs`.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use ennead_runtime::{
    event::Event,
    ports::BoxFuture,
    session::SessionInput,
    step::Step,
    turn::{
        Effect, TurnInput,
        effect::{HookFiring, ModelCallOrder, ShapeOrder, TurnReport},
    },
};
use ractor::{ActorId, ActorProcessingErr, ActorRef};
use tracing::Instrument;

use super::{
    ActiveTurn, Pending, TurnMsg,
    dispatch::check_inputs,
    outcome::{ChildToStart, Outcome},
    tree_admission,
};
use crate::{
    groundwork::{
        directory::ActorKind,
        spans,
        supervision::{HandlerResult, Job, give_leaf, spawn_leaf, stop_after_reply},
    },
    session::{HookToken, SessionMsg},
    turn::{approval, gate_worker, model_call, shaper_stage},
    world::real_paths::EYES,
};

/// Carries out one effect. Never waits for the world.
fn carry_out_one(
    effect: Effect,
    myself: &ActorRef<TurnMsg>,
    state: &mut ActiveTurn,
) -> Result<Outcome, ActorProcessingErr> {
    match effect {
        Effect::Next(step) => return state.next(myself, step),
        Effect::ReadSettings => return state.read_settings(myself),
        Effect::MergeSettings(order) => return state.merge_settings(*order, myself),
        Effect::ReadSources => return state.read_sources(myself),
        Effect::LookAtSources(order) => return state.look_at_sources(*order, myself),
        Effect::Shape(order) => return Ok(shape(*order, myself, state)),
        Effect::CallModel(order) => return Ok(call_model(*order, myself, state)),
        Effect::Wait { attempt, ms } => wait(attempt, ms, myself, state),
        Effect::Dispatch(calls) => return check_inputs(calls, myself, state),
        Effect::RunHooks(firing) => run_hooks(*firing, myself, state)?,
        Effect::ResolvePath { call, given } => {
            let pending = Pending::Path(call.clone(), given.clone());
            let cwd = state.turn.cwd().to_owned();
            let work = gate_worker::look(Arc::clone(&state.session_context), cwd, call, given);
            return Ok(state.leaf(myself, ActorKind::GateWorker, pending, work));
        }
        Effect::JudgeCommand { call, order } => {
            let judged = order.is_short().then(|| order.judge_in_place(EYES)).flatten();
            if let Some(judged) = judged.map(Box::new) {
                return Ok(Outcome::Reply(TurnInput::CommandJudged { call, judged }));
            }
            let pending = Pending::Judgement(call.clone());
            let work = gate_worker::judge(call, order);
            return Ok(state.leaf(myself, ActorKind::GateWorker, pending, work));
        }
        Effect::ReadPlan { call, file } => {
            let pending = Pending::Plan(call.clone());
            let work = gate_worker::read_plan(call, file);
            return Ok(state.leaf(myself, ActorKind::GateWorker, pending, work));
        }
        Effect::ConsultPolicy(question) => {
            let pending = Pending::Policy(question.call.id.clone(), question.epoch);
            let work = approval::consult(state.session_context.policy.as_ref(), &question);
            return Ok(state.leaf(myself, ActorKind::Approval, pending, work));
        }
        Effect::AskPermission(question) => return Ok(state.open_question(question, myself)),
        Effect::ExecuteTool { permit, call, spec, must_check } => {
            return state.execute_tool(*permit, call, spec, must_check);
        }
        Effect::Append(append) => {
            state.session.cast(SessionMsg::Append { key: state.key, append })?;
        }
        Effect::Publish(event) => {
            if let Event::StepStarted { step, .. } = &event {
                state.step_span = spans::step(&state.span, *step);
            }
            state.session_context.hub.publish(event);
        }
        Effect::WatchFiles(order) => {
            state.session.cast(SessionMsg::Watch(SessionInput::Watch(order)))?
        }
        Effect::Finish(report) => finish(report, myself, state)?,
    }
    Ok(Outcome::Done)
}

fn finish(
    report: Box<TurnReport>,
    myself: &ActorRef<TurnMsg>,
    state: &mut ActiveTurn,
) -> HandlerResult {
    let (key, fingerprints) = (state.key, state.fingerprints.take());
    let rests = report.end.is_none() && state.may_rest();
    state.session.cast(SessionMsg::TurnDone { key, report, fingerprints, rests })?;
    if rests {
        state.rest();
    } else {
        stop_after_reply(myself);
    }
    Ok(())
}

fn wait(attempt: u32, ms: u64, myself: &ActorRef<TurnMsg>, state: &mut ActiveTurn) {
    state.has_timer = true;
    let waiting = state.session_context.world.timer.sleep(Duration::from_millis(ms));
    let turn = myself.clone();
    let _timer = ractor::concurrency::spawn(async move {
        waiting.await;
        // It is dropped when the turn is gone by then.
        let _gone = turn.cast(TurnMsg::Input(TurnInput::TimerFired { attempt }));
    });
}

fn shape(order: ShapeOrder, myself: &ActorRef<TurnMsg>, state: &ActiveTurn) -> Outcome {
    let pending = Pending::Shape(order.stage);
    let work = shaper_stage::run(Arc::clone(&state.session_context), order);
    state.leaf(myself, ActorKind::ShaperStage, pending, work)
}

fn call_model(order: ModelCallOrder, myself: &ActorRef<TurnMsg>, state: &ActiveTurn) -> Outcome {
    let go = state.tree_admission(&order);
    let sent = go.as_ref().map(|it| it.sent.clone());
    let pending = Pending::Model(order.attempt, sent.clone());
    let span = spans::model_call(&state.step_span, &order.model);
    let (attempt, limit_ms) = (order.attempt, order.limit_ms);
    let call =
        model_call::run(Arc::clone(&state.session_context), order, sent.clone()).instrument(span);
    let work = tree_admission::when_admitted(go, Box::pin(call));
    let work = match limit_ms {
        None => work,
        Some(ms) => {
            let waiting = state.session_context.world.timer.deadline(Duration::from_millis(ms));
            model_call::with_time_limit(ms, waiting, attempt, sent, work)
        }
    };
    state.leaf(myself, ActorKind::ModelCall, pending, work)
}

fn run_hooks(
    firing: HookFiring,
    myself: &ActorRef<TurnMsg>,
    state: &mut ActiveTurn,
) -> HandlerResult {
    state.firing = Some((firing.firing, firing.handlers.len()));
    let context = Box::new(state.handler_context(firing.event));
    let (token, span) = (state.scope.tracker.token(), state.step_span.clone());
    let verifiers = state.verifiers(&firing);
    let request = HookToken { turn: myself.clone(), token, span, verifiers };
    state.session.cast(SessionMsg::RunHooks { firing: Box::new(firing), context, request })?;
    Ok(())
}

impl ActiveTurn {
    /// Carries out effects, those included that follow from what is known, until a child must be
    /// waited for. An answer that is at hand takes no way round the mailbox.
    pub(super) fn carry_out_all(
        &mut self,
        effects: &mut VecDeque<Effect>,
        myself: &ActorRef<TurnMsg>,
    ) -> Result<Option<ChildToStart>, ActorProcessingErr> {
        while let Some(effect) = effects.pop_front() {
            match carry_out_one(effect, myself, self)? {
                Outcome::Done => {}
                Outcome::Reply(input) => effects.extend(self.feed(input)),
                Outcome::Spawn(child) => return Ok(Some(child)),
            }
        }
        Ok(None)
    }

    /// Starts a child. Gives what the turn asks for then.
    pub(super) async fn start(
        &mut self,
        myself: &ActorRef<TurnMsg>,
        child: ChildToStart,
    ) -> Result<Vec<Effect>, ActorProcessingErr> {
        match child {
            ChildToStart::Leaf(job, pending) => {
                let leaf = match pending {
                    Pending::Model(..) => self.give_caller(job, myself).await?,
                    _ => spawn_leaf(job, myself.get_cell()).await?.get_id(),
                };
                self.pending.push((leaf, pending));
                Ok(Vec::new())
            }
            ChildToStart::Dispatcher(calls) => {
                let admissions = self.dispatch(calls, myself).await?;
                Ok(self.feed(TurnInput::Dispatched(admissions)))
            }
        }
    }

    /// Gives this call to the leaf that made the last call of the model, unless it has not answered.
    async fn give_caller(
        &mut self,
        job: Job,
        myself: &ActorRef<TurnMsg>,
    ) -> Result<ActorId, ActorProcessingErr> {
        let has_answered =
            |it: &ActorRef<Job>| self.pending.iter().all(|(id, _)| *id != it.get_id());
        let kept = self.caller.take().filter(has_answered);
        let caller = give_leaf(kept, job, myself.get_cell()).await?;
        Ok(self.caller.insert(caller).get_id())
    }

    /// Makes a leaf that owes an answer and sends it as an input of the turn.
    pub(super) fn leaf(
        &self,
        myself: &ActorRef<TurnMsg>,
        kind: ActorKind,
        pending: Pending,
        work: BoxFuture<'static, TurnInput>,
    ) -> Outcome {
        let turn = myself.clone();
        let work = Box::pin(async move {
            // The turn may have ended meanwhile.
            let _gone = turn.cast(TurnMsg::Input(work.await));
        });
        self.child(kind, pending, work)
    }

    /// Makes a leaf that owes an answer and sends it by itself.
    pub(super) fn child(
        &self,
        kind: ActorKind,
        pending: Pending,
        work: BoxFuture<'static, ()>,
    ) -> Outcome {
        let job = self.session_context.job(kind, work).held(self.scope.tracker.token());
        Outcome::Spawn(ChildToStart::Leaf(job, pending))
    }

    /// Sends the output of the turn so far, since it waits, and what the turn before it left.
    pub(super) fn flush(&mut self, myself: &ActorRef<TurnMsg>) -> HandlerResult {
        for effect in self.turn.flush() {
            let left = carry_out_one(effect, myself, self)?;
            debug_assert!(matches!(left, Outcome::Done), "only lines and events are collected");
        }
        self.session.cast(SessionMsg::Flush)?;
        Ok(())
    }

    /// Goes on to the step at once, or by way of the mailbox where stop and kill are to come first.
    fn next(
        &mut self,
        myself: &ActorRef<TurnMsg>,
        step: Step,
    ) -> Result<Outcome, ActorProcessingErr> {
        if self.scope.cancel.is_cancelled() {
            myself.cast(TurnMsg::Run(step))?;
            return Ok(Outcome::Done);
        }
        let input = self.enter_step(myself, step);
        if input.is_none() {
            self.flush(myself)?;
        }
        Ok(input.map_or(Outcome::Done, Outcome::Reply))
    }

    /// Enters a step: at a breakpoint the turn waits until it is released.
    pub(super) fn enter_step(
        &mut self,
        myself: &ActorRef<TurnMsg>,
        step: Step,
    ) -> Option<TurnInput> {
        self.registration.at_step(step);
        if let Some(breakpoints) = &self.session_context.breakpoints
            && self.passed != Some(step)
        {
            self.passed = Some(step);
            let back = myself.clone();
            let go_on = Box::new(move || {
                let _gone = back.cast(TurnMsg::Run(step));
            });
            if let Some(go_on) = breakpoints.reached(&self.session_context.session, step, go_on) {
                // Not a breakpoint here.
                drop(go_on);
                return Some(TurnInput::Run(step));
            }
            return None;
        }
        Some(TurnInput::Run(step))
    }
}
