//! Walks the nine steps: an input goes in, the effects it calls for come out.
//!
//! The turn decides and remembers; it never does anything itself. The one that drives it (the turn
//! supervisor, or a replay) carries out the effects and tells it what came of them. Each step
//! leaves one `turn_step` record; a repeated model call or shaping is a record inside step 5 and
//! does not enter a step again.

pub mod effect;
pub mod input;
mod journal;

mod approvals;
mod call_ids;
mod carried;
mod classifier;
mod closing;
mod context;
mod gate;
mod model;
mod remedy;
mod shaping;
mod spending;
mod stop;
mod tools;

use std::{num::NonZeroU32, sync::Arc};

pub use closing::{Closing, Denial, Ended, OpenTurn, answer_lost_calls, close};
pub use effect::Effect;
pub use input::TurnInput;

use crate::{
    entropy::Stream,
    event::Event,
    ids::{EntryId, RunId},
    output::OutputSettings,
    ports::WorktreeBase,
    run::{
        RunEnd, conversation::TurnMemory, derived_settings::DerivedSettings, facts::SessionFacts,
        history::History,
    },
    sandbox::Sandbox,
    step::Step,
    step1_settings_resolution::{AgentLimits, LayerText, Settings, ShaperSettings, ShellSettings},
    step2_state_initialization::TurnState,
    step4_context_shapers::Stage,
    step9_stop_check::RunBudget,
    time::Timestamp,
    tool::ToolMemory,
    transcript::entry::{RecordKind, StepDetail},
};

/// What a turn starts from.
#[derive(Clone, Debug)]
pub struct TurnSetup {
    /// Fixed when the session was opened.
    pub facts: Arc<SessionFacts>,
    /// The key of all draws of the run.
    pub stream: Stream,
    /// Id of the run that the turn belongs to.
    pub run: RunId,
    /// The line of its prompt.
    pub prompt: EntryId,
    /// What the run has after the session's system prompt.
    pub system: Option<Arc<str>>,
    /// Counted from 1 within the run.
    pub number: u32,
    /// What was said so far.
    pub history: History,
    /// The last conversation line.
    pub last_entry: Option<EntryId>,
    /// What the turn before handed on.
    pub memory: TurnMemory,
    /// What the run has used. Its limit is read from the settings of the turn.
    pub budget: RunBudget,
}

/// One turn under way.
#[derive(Debug)]
pub struct Turn {
    facts: Arc<SessionFacts>,
    stream: Stream,
    number: u32,
    /// Tokens of the run before this turn.
    used: u64,
    /// Follows the session's system prompt.
    system: Option<Arc<str>>,
    /// What was said so far, this turn included.
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
    Sources,
    Stage(Stage),
    Admissions,
    Path,
    Judgement,
    Policy,
    Permission,
}

impl Turn {
    /// A turn before its first step. The first input is `Run(SettingsResolution)`.
    pub fn new(setup: TurnSetup) -> Self {
        let TurnSetup {
            facts,
            stream,
            run,
            system,
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
            system,
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
        }
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
            TurnInput::SourcesRead(texts) => self.sources_read(*texts),
            TurnInput::Shaped { stage, result, elapsed_us } => {
                self.shaped(stage, result, elapsed_us)
            }
            TurnInput::ModelAnswered(answered) => self.model_answered(*answered),
            TurnInput::TimerFired { attempt } => self.timer_fired(attempt),
            TurnInput::Dispatched(admissions) => self.dispatched(admissions),
            TurnInput::HooksAnswered { firing, outputs } => self.hooks_answered(firing, outputs),
            TurnInput::PathResolved { call, path } => self.path_resolved(&call, *path),
            TurnInput::CommandJudged { call, judged } => self.command_judged(&call, *judged),
            TurnInput::PolicyAnswered { call, verdict } => self.policy_answered(&call, verdict),
            TurnInput::PermissionAnswered { call, given } => {
                self.permission_answered(&call, *given)
            }
            TurnInput::ModeChanged(mode) => self.mode_changed(mode),
            TurnInput::ToolFinished { call, outcome } => self.tool_finished(&call, *outcome),
            TurnInput::Recorded { ticket } => self.recorded(ticket),
            TurnInput::StopRequested => self.stop_requested = true,
        }
        self.drain()
    }

    /// The step it is at.
    pub fn step(&self) -> Step {
        self.step
    }

    /// Calls that the dispatcher's mailbox lets in.
    pub fn max_tool_calls(&self) -> NonZeroU32 {
        NonZeroU32::new(self.settings().max_tool_calls).unwrap_or(NonZeroU32::MIN)
    }

    /// Defaults of channels, once the settings are known.
    pub fn output(&self) -> Option<&OutputSettings> {
        self.memory.resolved.as_ref().map(|it| &it.settings.output)
    }

    /// What the tools know.
    pub fn memory(&self) -> &Arc<ToolMemory> {
        &self.memory.tools
    }

    /// Variables for child processes. One without a value is taken away, as secrets are.
    pub fn env(&self) -> Arc<[(String, String)]> {
        self.derived_settings(|it| &it.env)
    }

    /// Patterns of the paths that `Read` deny rules hide.
    pub fn hidden(&self) -> Arc<[String]> {
        let setup = self.state.gate_setup.as_ref();
        setup.map(|it| it.hidden(None)).unwrap_or_default()
    }

    /// Directories that count as workspace in addition to the working directory.
    pub fn additional_directories(&self) -> Arc<[String]> {
        self.derived_settings(|it| &it.additional_directories)
    }

    /// Where tools keep output that is too long.
    pub fn spill_directory(&self) -> Arc<str> {
        self.derived_settings(|it| &it.spill_directory)
    }

    /// The layers that its settings were made of, and what was changed since; its sub-agents have the
    /// same.
    pub fn layers(&self) -> Arc<[LayerText]> {
        let layers = self.memory.merged.as_ref().map(|it| Arc::clone(&it.layers));
        let layers = layers.unwrap_or_default();
        match self.memory.overrides.layer() {
            None => layers,
            Some(changed) => layers.iter().cloned().chain([changed]).collect(),
        }
    }

    /// Limits on the tree of agents.
    pub fn agent_limits(&self) -> AgentLimits {
        self.settings().agents
    }

    /// What holds for commands in the background.
    pub fn shell_settings(&self) -> ShellSettings {
        self.settings().shell
    }

    /// What confines shell commands and what a repository starts, if anything does.
    pub fn sandbox(&self) -> Option<Arc<Sandbox>> {
        self.memory.derived_settings.as_ref().and_then(|it| it.sandbox.clone())
    }

    /// Where the worktrees of its sub-agents begin.
    pub fn worktree_base(&self) -> WorktreeBase {
        self.settings().worktree_base
    }

    fn run_step(&mut self, step: Step) {
        self.announced = None;
        self.step = step;
        self.tell(Event::StepStarted { turn: self.number, step });
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
        // Nobody can have written what was not handed out.
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

    fn tell(&mut self, event: Event) {
        self.effects.push(Effect::Tell(event));
    }

    /// Leaves the record of the present step.
    fn record_step(&mut self, detail: StepDetail) {
        self.record_step_of(self.step, detail);
    }

    fn record_step_of(&mut self, step: Step, detail: StepDetail) {
        let what = RecordKind::TurnStep { number: step.number(), step, detail };
        self.journal.record(self.now, what);
    }

    /// Lines first: what an effect of the same input needs recorded is on its way before it, and
    /// so is what listeners are told, the end of the turn apart, whose lines go with it. While the turn goes on by itself, both are collected; they go
    /// out as soon as it waits for anybody. Files may be as they were, so the one that looks at
    /// them lets the turn wait if it must.
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

    pub(crate) fn settings(&self) -> Arc<Settings> {
        self.state.settings.clone().unwrap_or_default()
    }

    /// Something that follows from the settings; nothing before they are known.
    fn derived_settings<T: ?Sized>(&self, part: fn(&DerivedSettings) -> &Arc<T>) -> Arc<T>
    where
        Arc<T>: Default,
    {
        self.memory.derived_settings.as_ref().map(|it| Arc::clone(part(it))).unwrap_or_default()
    }

    fn shapers(&self) -> Arc<ShaperSettings> {
        self.memory.shapers.clone().unwrap_or_default()
    }
}

#[cfg(test)]
pub(crate) mod tests;
