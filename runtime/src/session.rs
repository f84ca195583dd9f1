//! Runs a session: a queue of prompts, one run at a time, turn after turn.
//!
//! [`Machine::handle`] takes what happens to a session and returns what is to be done; the same
//! inputs always give the same effects. The machine decides the order of runs and turns, what ends
//! them, what is written and written again, which sub-agents start and what a tree of agents may
//! use. The session's actor carries out the effects and reports what came of them; it holds the
//! handles (actors, replies, timers) that the effects name by number.
//!
//! A run goes through phases: `Next`, `Turning`, then `Next` again or `Ending`. A turn that
//! is ended from outside goes through `Stopping` (what it started is waited for) and `Leaving` (what
//! it left is asked for) before the run is `Ending`.
//!
//! Where what happens is handled: the transcript and an earlier conversation in `opening` (a run that a killed
//! process left, in `resuming`), prompts in `queue`, turns in `turns`, lines and their acknowledgement in
//! `recorder`, interrupts, stops and the close in `ending`, the last line of a run and its time limit in
//! `outcome`, sub-agents and the limits of their tree in `agents`, what has ended in the background in `background` and
//! `detached_hooks`, and by name `messages`, `mode`, `servers`, `signals`, `file_watch` and `end_hooks`.

mod agents;
mod background;
mod detached_hooks;
mod effect;
mod end_hooks;
mod ending;
mod file_watch;
mod firing;
mod heard_hooks;
mod input;
mod messages;
mod mode;
mod names;
mod opening;
mod outcome;
mod queue;
mod recorder;
mod resuming;
mod run;
mod servers;
mod signals;
mod turns;
mod watched;

use std::{
    collections::{BTreeMap, VecDeque},
    mem,
    sync::Arc,
};

use self::{
    agents::Agents,
    background::EndedTasks,
    heard_hooks::HeardHooks,
    queue::Queued,
    recorder::Recorder,
    run::{ActiveRun, ReceivedMessage},
    signals::CompactionShare,
    watched::FileWatch,
};
pub use self::{
    agents::{
        TreePlace,
        tree::{Debit, TreeAnswer, TreeQuestion},
    },
    effect::{Batch, SessionEffect, SpawnEffect},
    firing::SessionFiring,
    heard_hooks::KeptHook,
    input::{
        AgentRequest, EarlierConversation, MessageRequest, Now, OpenedTranscript, SessionInput,
        TurnRemains,
    },
    names::{
        CallName, MessageNumber, PromptId, RunNumber, RunOrigin, SpawnId, TurnKey, WriteTicket,
    },
};
use crate::{
    cost::CostLedger,
    ids::{AgentId, EntryId, RunId},
    permission::PermissionMode,
    run::{RunEnd, conversation::Conversation, outcome::RunOutcome},
    tokens::Usage,
    tool::ToolSpec,
};

/// A session, as far as it decides.
#[derive(Debug)]
pub struct Machine {
    conversation: Conversation,
    recorder: Recorder,
    readiness: Readiness,
    measuring: Measuring,
    closing: ClosePhase,
    /// Prompts that wait, the oldest first.
    queue: VecDeque<Queued>,
    /// Boxed, because most sessions have none most of the time.
    active: Option<Box<ActiveRun>>,
    agents: Agents,
    /// The modes that somebody put the session into and the turn under way has not recorded yet.
    modes_due: VecDeque<PermissionMode>,
    /// Runs begun; makes the ids of runs differ.
    last_run: RunNumber,
    /// Turns begun; names them.
    last_turn: TurnKey,
    /// What subscribers are to know of the opening. Published with the first run, since there
    /// are no subscribers before the session is open.
    notices: Vec<Arc<str>>,
    /// What they and the transcript receive about servers, with the next run.
    alerts: Vec<Arc<str>>,
    /// Tools that join with the next turn.
    joining: Vec<Arc<ToolSpec>>,
    /// What has ended in the background; the model learns of it with the next turn.
    ended: EndedTasks,
    /// What hooks add that were not waited for; the model reads it with the next turn.
    hooks: HeardHooks,
    /// What files are watched by, where hooks wait for changes.
    watch: Option<Box<FileWatch>>,
    /// Messages that were received and are neither on record nor refused.
    received: Vec<ReceivedMessage>,
    /// Messages on record that the model is shown before the next turn, by the names of their lines.
    unread: Vec<(EntryId, String)>,
    /// Used by all runs that have ended, those of earlier processes included.
    spent: Usage,
    /// What the runs counted in `spent` cost.
    cost: CostLedger,
    /// How often turns had a compaction, those of earlier processes included.
    compaction_share: CompactionShare,
    /// What the runs of this process cost that have ended.
    cost_here: CostLedger,
    outcomes: BTreeMap<RunId, RunOutcome>,
    /// Answers of the tree to its own top, taken when the input under way has been handled.
    own_answers: VecDeque<TreeAnswer>,
    /// Effects of the input under way.
    effects: Vec<SessionEffect>,
}

/// Whether runs can be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Readiness {
    /// The transcript is being opened or read.
    Pending,
    Ready,
    Failed,
}

/// Whether the window of the model is known before the first run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measuring {
    Unknown,
    /// The settings are being read; the queue waits.
    Asked,
    /// It is known as far as it can be.
    Known,
}

/// Whether the session is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClosePhase {
    No,
    /// The run under way is ended first.
    Asked,
    /// The transcript is being closed.
    Done,
}

/// A summary of a session for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The run under way.
    pub run: Option<RunId>,
    /// Its turn, from 1; 0 without a run.
    pub turn: u32,
    /// Number of prompts that wait in the queue.
    pub n_queued: usize,
    /// How many sub-agents are at work.
    pub n_agents: usize,
    /// Bytes of the messages of the conversation.
    pub n_bytes: u64,
}

impl Machine {
    /// Makes a session whose transcript is not open yet. `alerts` are published and recorded with its
    /// first run.
    pub fn new(conversation: Conversation, place: TreePlace, alerts: Vec<Arc<str>>) -> Self {
        Self {
            conversation,
            recorder: Recorder::default(),
            readiness: Readiness::Pending,
            measuring: Measuring::Unknown,
            closing: ClosePhase::No,
            queue: VecDeque::new(),
            active: None,
            agents: Agents::new(place),
            modes_due: VecDeque::new(),
            last_run: RunNumber::default(),
            last_turn: TurnKey::default(),
            notices: Vec::new(),
            alerts,
            joining: Vec::new(),
            ended: EndedTasks::default(),
            hooks: HeardHooks::default(),
            watch: None,
            received: Vec::new(),
            unread: Vec::new(),
            spent: Usage::default(),
            cost: CostLedger::default(),
            compaction_share: CompactionShare::default(),
            cost_here: CostLedger::default(),
            outcomes: BTreeMap::new(),
            own_answers: VecDeque::new(),
            effects: Vec::new(),
        }
    }

    /// Takes an input and returns what is to be done, in order. An input that nothing waits for
    /// (of a turn or an agent that is over, of an old write) has no effect.
    pub fn handle(&mut self, now: Now, input: SessionInput) -> Vec<SessionEffect> {
        self.take(now, input);
        while let Some(answer) = self.own_answers.pop_front() {
            self.tree_answer(now, answer);
        }
        self.start_next_turn(now);
        self.take_messages(now);
        mem::take(&mut self.effects)
    }

    fn take(&mut self, now: Now, input: SessionInput) {
        match input {
            SessionInput::Prompt { prompt, request } => self.prompt(now, prompt, request),
            SessionInput::Message { number, id, text } => self.message(number, id, text),
            SessionInput::Interrupt => self.end_turn(RunEnd::Interrupted),
            SessionInput::Stop => self.stop_after_turn(),
            SessionInput::Close => self.close(now),
            SessionInput::SetMode(mode) => self.set_mode(now, mode),
            SessionInput::Opened(opened) => self.opened(now, opened),
            SessionInput::Loaded(earlier) => self.loaded(now, *earlier),
            SessionInput::SettingsRead(layers) => self.settings_read(now, layers),
            SessionInput::Written { ticket, result } => self.written(now, ticket, result),
            SessionInput::Append { key, append } => self.append(now, key, append),
            SessionInput::Flush => self.recorder.flush(&mut self.effects),
            SessionInput::TurnDone { key, report } => self.turn_done(now, key, *report),
            SessionInput::TurnFailed { key, why } => self.turn_failed(key, why),
            SessionInput::TurnCrashed { key } => self.turn_crashed(key),
            SessionInput::TurnQuiet { key, late } => self.turn_quiet(key, late),
            SessionInput::ShellKept(status) => self.shell_kept(now, &status),
            SessionInput::ShellsEnded(ended) => self.ended.add_shells(ended),
            SessionInput::AgentKept(agent) => self.agent_kept(now, &agent),
            SessionInput::AgentsEnded(ended) => self.ended.add_agents(ended),
            SessionInput::HookEnded(ended) => self.hook_ended(now, &ended),
            SessionInput::HooksKept(ended) => self.resume_hooks(ended),
            SessionInput::Watch(order) => self.watch(*order),
            SessionInput::FilesChanged(changes) => self.files_changed(changes),
            SessionInput::WatcherGone => self.look_again(),
            SessionInput::ServerAnswered { tools, notes } => {
                self.server_answered(now, tools, notes)
            }
            SessionInput::TurnLeft { key, left } => self.turn_left(now, key, left),
            SessionInput::TimeIsUp { run, deadline } => self.time_is_up(run, deadline),
            SessionInput::CallWaits { name, limits, max_cost } => {
                self.call_waits(now, name, limits, max_cost);
            }
            SessionInput::SpawnAgent(request) => self.spawn_agent(now, request),
            SessionInput::SendMessage(request) => self.send_message(now, *request),
            SessionInput::MessageAnswered { spawn, fate } => {
                self.message_answered(now, spawn, fate)
            }
            SessionInput::StopAgent(call) => self.stop_agent(&call),
            SessionInput::AgentRefused { agent, why } => self.agent_refused(now, &agent, why),
            SessionInput::AgentEnded { agent, result } => self.agent_ended(now, &agent, result),
            SessionInput::AgentCrashed { agent, used } => self.agent_crashed(now, &agent, used),
            SessionInput::TreeQuestion(question) => self.tree_question(now, question),
            SessionInput::TreeAnswer(answer) => self.tree_answer(now, answer),
        }
    }

    /// Returns the conversation, as its sub-agents start from it.
    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// Returns the conversation, for a replay: it puts in what the file holds and no input does.
    pub(crate) fn conversation_mut(&mut self) -> &mut Conversation {
        &mut self.conversation
    }

    /// Returns what the active run has used up to its last turn, sub-agents included.
    pub(crate) fn run_usage(&self) -> Usage {
        self.active.as_ref().map_or_else(Usage::default, |it| it.run.usage)
    }

    /// Returns whether this agent of the tree can still ask. Known at the top of the tree alone.
    pub fn is_agent_open(&self, agent: &AgentId) -> bool {
        self.agents.is_open(agent)
    }

    /// Whether a run is under way.
    pub fn has_run(&self) -> bool {
        self.active.is_some()
    }

    /// Whether nothing is under way and nothing in the background has the session go on.
    pub fn is_at_rest(&self) -> bool {
        self.active.is_none() && self.queue.is_empty() && !self.agents.is_any_in_background()
    }

    /// Returns where the session is, for people.
    pub fn summary(&self) -> Summary {
        let active = self.active.as_ref();
        Summary {
            run: active.map(|it| it.run.id.clone()),
            turn: active.map_or(0, |it| it.run.turns),
            n_queued: self.queue.len(),
            n_agents: self.agents.n_running(),
            n_bytes: self.conversation.history.n_bytes(),
        }
    }
}

#[cfg(test)]
mod tests;
