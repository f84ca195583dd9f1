//! Walks the nine steps: an input goes in, the effects it calls for come out.
//!
//! The turn decides and remembers; it never does anything itself. The one that drives it (the turn
//! supervisor, or a replay) carries out the effects and returns their results as inputs. Each step
//! leaves one `turn_step` record; a repeated model call or shaping is a record inside step 5 and
//! does not enter a step again.

pub mod effect;
pub mod input;
mod journal;
mod setup;

mod step1_config_hooks;
mod step1_settings;
mod step2_prompt_hooks;
mod step2_state;
mod step3_appending;
mod step3_context;
mod step3_instruction_hooks;
mod step4_compaction;
mod step4_shaping;
mod step5_attempts;
mod step5_call_ids;
mod step5_carried_answer;
mod step5_media;
mod step5_model_call;
mod step5_remedy;
mod step5_spending;
mod step6_dispatch;
mod step7_approvals;
mod step7_classifier;
mod step7_denials;
mod step7_gate;
mod step7_mode;
mod step7_plan;
mod step7_question;
mod step8_batch_hooks;
mod step8_execution;
mod step8_synthesis;
mod step9_stop_check;

mod closing;
mod effective_settings;
mod file_hooks;
mod hook_prompts;
mod hooks;
mod verdict_calls;

use std::sync::Arc;

pub use closing::{DenialReason, OpenTurn, TurnClosing, answer_lost_calls, close};
pub use effect::Effect;
pub(crate) use hooks::keep_overlong;
pub use input::TurnInput;
pub use setup::TurnSetup;
pub use step7_plan::MAX_PLAN_BYTES;
pub(crate) use step7_plan::plan_in;

use crate::{
    entropy::EntropyStream,
    event::Event,
    ids::EntryId,
    message::Message,
    run::{RunEnd, conversation::TurnMemory, facts::SessionFacts, history::History},
    saturating::Saturating as _,
    step::Step,
    step2_state_initialization::TurnState,
    step4_context_shapers::Stage,
    step6_tool_dispatch::refused_rewritten,
    time::Timestamp,
    tool::ToolMemory,
    transcript::entry::{RecordKind, StepDetail},
};

/// One turn under way.
#[derive(Debug)]
pub struct Turn {
    facts: Arc<SessionFacts>,
    stream: EntropyStream,
    number: u32,
    /// Tokens of the run before this turn.
    used: u64,
    /// Follows the session's system prompt.
    system: Option<Arc<str>>,
    /// The prompt that hooks are asked about; `None` in a run that the session began by itself.
    prompt: Option<EntryId>,
    /// The run sums up the conversation and answers nothing: what to keep in mind.
    compacts: Option<Arc<str>>,
    /// The conversation so far, this turn included.
    history: History,
    memory: TurnMemory,
    state: TurnState,
    journal: journal::Journal,
    /// What is to be done, after the lines that are collected.
    effects: Vec<Effect>,
    /// How the turn goes on by itself.
    onward: Option<Effect>,
    now: Timestamp,
    step: Step,
    /// What to do once this ticket is acknowledged.
    barrier: Option<(u64, Then)>,
    /// The step that was announced and not begun.
    announced: Option<Step>,
    awaits: Option<Awaits>,
    stop_requested: bool,
    stop_marked: bool,
    end: Option<RunEnd>,
    error: Option<String>,
    /// Whether the bodies of requests are written.
    writes_bodies: bool,
}

/// What waits for lines to be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// The next step of the turn.
    Step(Step),
    /// Another model call of the same step.
    AskModel,
    /// The calls of the group whose intents were recorded.
    StartGroup,
    /// The next handler of the question that was recorded.
    Consult,
}

/// The one question that is open, in addition to firings of hooks, model calls and calls of tools,
/// which have names of their own. What answers no open question has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaits {
    Settings,
    /// Settings layers that are long, to be merged and compiled.
    Merge,
    /// Long settings of before whose rules are to be compiled for other tools.
    Derivation,
    Sources,
    /// The sources after a compaction, before the model is asked.
    Restoration,
    Stage(Stage),
    Admissions,
    Path,
    Judgement,
    Plan,
    Policy,
    Permission,
}

impl Turn {
    /// Makes a turn before its first step. The first input is `Run(SettingsResolution)`.
    pub fn new(setup: TurnSetup) -> Self {
        let TurnSetup {
            facts,
            stream,
            run,
            prompt,
            system,
            compacts,
            is_woken,
            number,
            history,
            last_entry,
            memory,
            budget,
            ..
        } = setup;
        Self {
            journal: journal::Journal::new(run, number, stream, last_entry),
            facts,
            stream,
            number,
            used: budget.used,
            prompt: (!is_woken).then_some(prompt),
            system,
            compacts,
            history,
            memory,
            state: TurnState::default(),
            effects: Vec::new(),
            onward: None,
            now: Timestamp::default(),
            step: Step::SettingsResolution,
            barrier: None,
            announced: Some(Step::SettingsResolution),
            awaits: None,
            stop_requested: false,
            stop_marked: false,
            end: None,
            error: None,
            writes_bodies: true,
        }
    }

    /// Leaves bodies empty, for a walk over a turn that is recorded: its requests are sent to no provider.
    #[must_use]
    pub(crate) fn without_bodies(self) -> Self {
        Self { writes_bodies: false, ..self }
    }

    /// Takes an input, with the clock reading at which it was taken from the mailbox.
    ///
    /// Inputs that do not fit the state of the turn (late answers of an attempt that was given up,
    /// answers to questions that are closed) have no effect. Cost: proportional to what the input
    /// adds, and in steps 3 to 5 to the number of messages that the model is shown (one reference each).
    pub fn handle(&mut self, at: Timestamp, input: TurnInput) -> Vec<Effect> {
        self.now = at;
        match input {
            TurnInput::Run(step) if self.announced == Some(step) => self.run_step(step),
            TurnInput::Run(_) => {}
            TurnInput::SettingsRead(read) => self.settings_read(read),
            TurnInput::SettingsMerged(merged) => self.settings_merged(*merged),
            TurnInput::SourcesRead(texts) => self.sources_read(*texts),
            TurnInput::SourcesSeen(look) => self.sources_seen(look),
            TurnInput::Shaped { stage, result, elapsed_us } => {
                self.shaped(stage, result, elapsed_us)
            }
            TurnInput::ModelAnswered(answered) => self.model_answered(*answered),
            TurnInput::TimerFired { attempt } => self.timer_fired(attempt),
            TurnInput::Dispatched(admissions) => self.dispatched(admissions),
            TurnInput::HooksAnswered { firing, outputs } => self.hooks_answered(firing, outputs),
            TurnInput::PathResolved { call, path } => self.path_resolved(&call, *path),
            TurnInput::CommandJudged { call, judged } => self.command_judged(&call, *judged),
            TurnInput::PlanRead { call, plan } => self.plan_read(&call, plan),
            TurnInput::PolicyAnswered { call, epoch, verdict } => {
                self.policy_answered(&call, epoch, verdict);
            }
            TurnInput::PermissionAnswered { call, given } => {
                self.permission_answered(&call, *given)
            }
            TurnInput::ModeChanged(mode) => self.mode_changed(mode),
            TurnInput::InputRefused { call, why } => {
                self.tool_finished(&call, refused_rewritten(&why));
            }
            TurnInput::ToolFinished { call, outcome } => self.tool_finished(&call, *outcome),
            TurnInput::Recorded { ticket } => self.recorded(ticket),
            TurnInput::StopRequested => self.stop_requested = true,
        }
        // A step that was announced is run next, whatever else is under way.
        if self.announced.is_none() {
            self.journal.wait();
        }
        self.drain()
    }

    /// Returns the step it is at.
    pub fn step(&self) -> Step {
        self.step
    }

    /// Returns what the tools know.
    pub fn memory(&self) -> &Arc<ToolMemory> {
        &self.memory.tools
    }

    fn run_step(&mut self, step: Step) {
        self.announced = None;
        self.step = step;
        self.publish(Event::StepStarted { turn: self.number, step });
        match step {
            Step::SettingsResolution => self.resolve_settings(),
            Step::StateInitialization => self.initialize_state(),
            Step::ContextAssembly => self.assemble_context(),
            Step::ContextShaping => self.shape_context(),
            Step::ModelCall => self.call_model(),
            Step::ToolDispatch => self.dispatch_tools(),
            Step::PermissionGate => self.open_gate(),
            Step::ToolExecution => self.execute_tools(),
            Step::StopCheck => self.check_stop(),
        }
    }

    fn recorded(&mut self, ticket: u64) {
        // What was not handed out cannot have been written.
        let recorded = ticket.min(self.journal.handed_out());
        if let Some((_, then)) = self.barrier.take_if(|(awaited, _)| *awaited <= recorded) {
            self.go_on(then);
        }
    }

    fn go_on(&mut self, then: Then) {
        match then {
            Then::Step(step) => self.next(step),
            Then::AskModel => self.ask_model(self.state.model.cause),
            Then::StartGroup => self.start_group(),
            Then::Consult => self.consult(),
        }
    }

    /// Does `then` once everything recorded so far is acknowledged.
    fn once_recorded(&mut self, then: Then) {
        self.barrier = Some((self.journal.await_answer(), then));
    }

    fn next(&mut self, step: Step) {
        self.announced = Some(step);
        self.onward = Some(Effect::Next(step));
    }

    fn was_awaited(&mut self, what: Awaits) -> bool {
        self.awaits.take_if(|it| *it == what).is_some()
    }

    fn publish(&mut self, event: Event) {
        self.effects.push(Effect::Publish(event));
    }

    /// Publishes and records something that an operator should look at.
    fn alert(&mut self, what: &str) {
        self.journal.record(self.now, RecordKind::Alert { what: what.into() });
        self.publish(Event::Alert { what: what.into() });
    }

    /// A message of the harness at the end of the conversation.
    fn remember(&mut self, message: Message) -> Arc<Message> {
        let message = self.journal.message(self.now, message);
        self.history.push(Arc::clone(&message));
        message
    }

    /// Leaves the record of the present step.
    fn record_step(&mut self, detail: StepDetail) {
        self.record_step_of(self.step, detail);
    }

    fn record_step_of(&mut self, step: Step, detail: StepDetail) {
        let what = RecordKind::TurnStep { number: step.number(), step, detail };
        self.journal.record(self.now, what);
    }

    /// Ends the run with this turn; the first reason counts.
    fn end_with(&mut self, end: RunEnd, why: Option<String>) {
        if self.end.is_none() {
            self.end = Some(end);
            self.error = why;
        }
    }

    /// Returns the effects, lines first: a line is appended before the effect that depends on it, and
    /// events follow their lines, except the end of the turn, whose lines go with it. While the turn goes
    /// on by itself, lines and events are collected; they go out as soon as it waits for anybody.
    fn drain(&mut self) -> Vec<Effect> {
        match self.onward.take() {
            Some(onward) if self.barrier.is_none() => vec![onward],
            onward => {
                let mut effects = self.flush();
                effects.extend(onward);
                effects
            }
        }
    }

    /// Returns the effects that were collected since the last input, lines first.
    pub fn flush(&mut self) -> Vec<Effect> {
        let lines = self.journal.take().map(Effect::Append);
        let n_effects = self.effects.len() + usize::from(lines.is_some());
        let mut effects = Vec::with_capacity(n_effects);
        effects.extend(lines);
        effects.append(&mut self.effects);
        effects
    }

    /// Returns the lines collected so far. A replay compares each with its record.
    pub(crate) fn take_lines(&mut self) -> Option<Box<effect::Append>> {
        self.journal.take()
    }
}

/// The number of things as it is recorded.
fn count(n: usize) -> u32 {
    u32::saturating(n)
}

#[cfg(test)]
pub(crate) mod tests;
