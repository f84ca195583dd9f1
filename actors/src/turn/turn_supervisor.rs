//! Walks one turn through its nine steps.
//!
//! Owns the [`Turn`], which decides; this actor only carries out what it asks for. Child of a
//! session. Receives messages of its children (through their answers), the transcript writer and the session. It
//! never waits inside a handler: whatever takes time is a child, so an interrupt is served at
//! once, and stopping this actor stops everything that the turn has started.
//!
//! An effect is carried out in `turn_effects.rs`, and files are read by `reading.rs`. A tool call takes its slot in `dispatch.rs`, is run by
//! `tool_dispatcher.rs`, and comes back as an input of the turn; what the session must write goes to it as a
//! message.

mod awaited_children;
mod dispatch;
pub(crate) mod message;
mod next_turn;
mod open_question;
mod outcome;
mod progress;
mod reading;
mod resting;
mod tool_context;
mod tree_admission;
mod turn_effects;

pub(crate) use message::TurnMsg;
pub(crate) use next_turn::{NextTurn, TurnScope};

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use ennead_runtime::{
    digest::Digest,
    ids::ToolUseId,
    session::TurnKey,
    step::Step,
    step1_settings_resolution::LayerText,
    tool::ToolCall,
    turn::{Effect, Turn, TurnInput},
};
use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef, SupervisionEvent};
use tracing::Span;

use crate::{
    groundwork::{
        directory::{ActorKind, Registration},
        mailbox::{Mailbox, Slot},
        spans,
        supervision::{Job, ended_without_reply},
    },
    session::{SessionMsg, context::SessionContext},
    turn::{
        approval::pending::OpenQuestion,
        model_call::SentMark,
        tool_dispatcher::{DispatcherMsg, Execution},
    },
    world::source_files::Fingerprints,
};

/// What a supervisor is given: the session, which stays the same, and the first turn.
pub(crate) struct TurnSupervisorSetup {
    /// The session's world and listeners.
    pub(crate) session_context: Arc<SessionContext>,
    pub(crate) session: ActorRef<SessionMsg>,
    pub(crate) next: NextTurn,
}

/// The actor that walks the turns of a run one after the other.
pub(crate) struct TurnSupervisor;

pub(crate) struct ActiveTurn {
    turn: Box<Turn>,
    session_context: Arc<SessionContext>,
    session: ActorRef<SessionMsg>,
    key: TurnKey,
    scope: TurnScope,
    fingerprints: Option<Fingerprints>,
    chosen: Option<LayerText>,
    first_layers: Option<Vec<LayerText>>,
    /// Questions that children have not answered yet.
    pending: Vec<(ActorId, Pending)>,
    dispatcher: Option<Mailbox<Box<Execution>, DispatcherMsg>>,
    /// The leaf that made the last call of a model.
    caller: Option<ActorRef<Job>>,
    /// Slots of the calls that were let in and do not run yet.
    slots: BTreeMap<ToolUseId, Slot>,
    running: Vec<ToolUseId>,
    /// The firing of hooks that is awaited, and how many handlers it has.
    firing: Option<(u32, usize)>,
    /// The question that surfaces may answer.
    question: Option<OpenQuestion>,
    /// The span of the turn, and that of the step it is at.
    span: Span,
    step_span: Span,
    /// The step whose breakpoint the turn has passed.
    passed: Option<Step>,
    /// Whether a timer may send to this turn even when it is over.
    has_timer: bool,
    /// Whether the turn is over, and the next one of the run may begin here.
    rests: bool,
    registration: Registration,
}

/// A question, and so what it means when the child that should answer it is gone.
#[derive(Clone, Debug)]
pub(crate) enum Pending {
    Settings,
    Sources,
    Look,
    Shape(ennead_runtime::step4_context_shapers::Stage),
    /// The attempt, and under limits of the tree of agents whether it was sent.
    Model(u32, Option<SentMark>),
    /// Whether the inputs of these calls fit their schemas.
    Inputs(Vec<ToolCall>),
    Path(ToolUseId, String),
    /// Whether a shell command may run.
    Judgement(ToolUseId),
    /// The plan that a call shows to a person.
    Plan(ToolUseId),
    /// What a policy says about a call under the rules and the mode of then.
    Policy(ToolUseId, Digest),
    /// What an approver answers to the question that was raised as this one.
    Approval(u64),
    Dispatcher,
}

impl Actor for TurnSupervisor {
    type Msg = TurnMsg;
    type State = ActiveTurn;
    type Arguments = Box<TurnSupervisorSetup>;

    async fn pre_start(
        &self,
        myself: ActorRef<TurnMsg>,
        setup: Box<TurnSupervisorSetup>,
    ) -> Result<ActiveTurn, ActorProcessingErr> {
        let TurnSupervisorSetup { session_context, session, next } = *setup;
        let NextTurn { key, turn, scope, fingerprints, chosen, first_layers } = next;
        let id = &session_context.session;
        let registration =
            session_context.directory.enter(ActorKind::TurnSupervisor, Some(id), myself.get_cell());
        let span = spans::turn(&session_context.span, turn.run.as_str(), turn.number);
        Ok(ActiveTurn {
            turn: Box::new(Turn::new(*turn)),
            session_context,
            session,
            key,
            scope,
            fingerprints,
            chosen,
            first_layers,
            pending: Vec::new(),
            dispatcher: None,
            caller: None,
            slots: BTreeMap::new(),
            running: Vec::new(),
            firing: None,
            question: None,
            step_span: span.clone(),
            span,
            passed: None,
            has_timer: false,
            rests: false,
            registration,
        })
    }

    async fn post_start(
        &self,
        myself: ActorRef<TurnMsg>,
        state: &mut ActiveTurn,
    ) -> Result<(), ActorProcessingErr> {
        let first = Effect::Next(Step::SettingsResolution);
        state.carry_out(&myself, VecDeque::from([first])).await
    }

    async fn handle(
        &self,
        myself: ActorRef<TurnMsg>,
        message: TurnMsg,
        state: &mut ActiveTurn,
    ) -> Result<(), ActorProcessingErr> {
        // What comes late for a turn that is over is not for the next one.
        if state.rests && !matches!(message, TurnMsg::Begin(_) | TurnMsg::ChildGone(_)) {
            return Ok(());
        }
        let effects = VecDeque::from(match message {
            TurnMsg::Begin(next) => {
                state.begin(*next);
                vec![Effect::Next(Step::SettingsResolution)]
            }
            TurnMsg::InputsChecked(calls) => {
                state.pending.retain(|(_, it)| !matches!(it, Pending::Inputs(_)));
                Box::pin(state.start(&myself, outcome::ChildToStart::Dispatcher(calls))).await?
            }
            message => state.on_message(&myself, message)?,
        });
        state.carry_out(&myself, effects).await
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<TurnMsg>,
        event: SupervisionEvent,
        state: &mut ActiveTurn,
    ) -> Result<(), ActorProcessingErr> {
        // The end of a child overtakes its answer, so it is queued after it (fact 4 of
        // ARCHITECTURE.md). A child whose answer was handled owes none.
        if let Some(child) = ended_without_reply(&event)
            && state.pending.iter().any(|(id, _)| *id == child)
        {
            myself.cast(TurnMsg::ChildGone(child))?;
        }
        Ok(())
    }
}

impl ActiveTurn {
    /// Carries out effects and what they lead to, until something is waited for.
    async fn carry_out(
        &mut self,
        myself: &ActorRef<TurnMsg>,
        mut effects: VecDeque<Effect>,
    ) -> Result<(), ActorProcessingErr> {
        // This future is moved with every message, so it holds nothing but what is left to do.
        loop {
            let Some(child) = self.carry_out_all(&mut effects, myself)? else { return Ok(()) };
            effects.extend(Box::pin(self.start(myself, child)).await?);
        }
    }

    /// What the turn asks for after a message.
    fn on_message(
        &mut self,
        myself: &ActorRef<TurnMsg>,
        message: TurnMsg,
    ) -> Result<Vec<Effect>, ActorProcessingErr> {
        let input = match message {
            TurnMsg::Run(step) => match self.enter_step(myself, step) {
                Some(input) => input,
                // It is at a breakpoint.
                None => {
                    self.flush(myself)?;
                    return Ok(Vec::new());
                }
            },
            TurnMsg::Input(input) => input,
            TurnMsg::Answer(answer) => match self.take_answer(*answer) {
                Some(input) => input,
                None => return Ok(Vec::new()),
            },
            TurnMsg::Expired(number) => match self.expired(number) {
                Some(input) => input,
                None => return Ok(Vec::new()),
            },
            TurnMsg::Settings(found) => match self.settings_found(*found)? {
                Some(input) => input,
                None => return Ok(Vec::new()),
            },
            TurnMsg::Hooks(firing, outputs) => {
                self.firing.take_if(|(awaited, _)| *awaited == firing);
                TurnInput::HooksAnswered { firing, outputs }
            }
            TurnMsg::HooksLost(firing, why) => match self.hooks_lost(Some(firing), why) {
                Some(input) => input,
                None => return Ok(Vec::new()),
            },
            TurnMsg::HookRunnerGone => match self.hooks_lost(None, "the hook runner is gone") {
                Some(input) => input,
                None => return Ok(Vec::new()),
            },
            // These start something, and are taken before.
            TurnMsg::Begin(_) | TurnMsg::InputsChecked(_) => return Ok(Vec::new()),
            TurnMsg::ChildGone(child) => {
                self.child_gone(myself, child)?;
                return Ok(Vec::new());
            }
        };
        Ok(self.feed(input))
    }

    /// What the turn asks for after this.
    fn feed(&mut self, mut input: TurnInput) -> Vec<Effect> {
        // The one place where texts enter a turn: what it records, sends and shows has no secrets.
        self.session_context.redaction.turn_input(&mut input);
        self.answered(&input);
        let is_settings =
            matches!(input, TurnInput::SettingsRead(_) | TurnInput::SettingsMerged(_));
        let at = self.session_context.world.clock.now();
        let is_answer = matches!(input, TurnInput::PermissionAnswered { .. });
        let effects = self.turn.handle(at, input);
        self.close_question(is_answer);
        if is_settings && let Some(output) = self.turn.output() {
            self.session_context.hub.set_output(output);
        }
        effects
    }
}
