//! What a session's actor does, with every answer at a random time or never where that may be.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use super::checks::append;
use crate::{
    digest::Digest,
    entropy::EntropyStream,
    ids::{AgentId, ToolUseId},
    lease::{MaxCost, Price},
    ports::agents::{AgentPlacement, EndedAgent},
    run::{
        RunEnd, RunRequest,
        conversation::{Conversation, TurnMemory},
        outcome::RunError,
    },
    session::{
        AgentRequest, Machine, Now, OpenedTranscript, SessionEffect, SessionInput, SpawnEffect,
        TreePlace, TurnRemains,
        names::{CallName, PromptId, RunNumber, RunOrigin, SpawnId, TurnKey, WriteTicket},
    },
    step1_settings_resolution::AgentLimits,
    step7_permission_gate::Handler,
    time::Timestamp,
    tokens::{Tokens, Usage},
    transcript::entry::Line,
    turn::{effect::TurnReport, tests::script::facts},
};

/// Something that the session waits for.
pub(super) enum Owed {
    Open,
    Written(WriteTicket),
    /// A turn that can still do things.
    Turn(TurnKey),
    Quiet(TurnKey),
    Settings,
    Agent(AgentId),
    /// A sub-agent that was asked to end.
    AgentCloses(AgentId),
    Time(RunNumber, Duration),
}

pub(super) struct SessionWorld {
    pub(super) machine: Machine,
    pub(super) now: Now,
    pub(super) owed: Vec<Owed>,
    /// Every effect, as text.
    pub(super) log: Vec<String>,
    pub(super) n_prompts: u64,
    pub(super) replies: BTreeMap<u64, usize>,
    /// The turn that may do things; set by `StartTurn`, taken when it is over.
    pub(super) turn: Option<TurnKey>,
    pub(super) requests: BTreeSet<SpawnId>,
    n_requests: u64,
    running: BTreeSet<AgentId>,
    /// Those that were started in the background.
    pub(super) background: BTreeSet<AgentId>,
    pub(super) reported: BTreeMap<AgentId, usize>,
    /// Those in the background that have ended since the turn began.
    pub(super) unshown: Vec<EndedAgent>,
    n_attempts: u32,
    pub(super) n_closed: usize,
    /// Lines by the last ticket under which they were sent, in order.
    pub(super) lines: BTreeMap<WriteTicket, Arc<Vec<Line>>>,
    /// Writes up to this ticket fail.
    lost_up_to: WriteTicket,
    /// Nothing goes wrong any more.
    is_ending: bool,
}

impl SessionWorld {
    pub(super) fn new() -> Self {
        let facts = Arc::new(facts(Handler::None));
        let conversation = Conversation::new(facts, EntropyStream::from_seed(7));
        Self {
            machine: Machine::new(conversation, TreePlace::Top, vec!["a notice".into()]),
            now: Now::default(),
            owed: vec![Owed::Open],
            log: Vec::new(),
            n_prompts: 0,
            replies: BTreeMap::new(),
            turn: None,
            requests: BTreeSet::new(),
            n_requests: 0,
            running: BTreeSet::new(),
            background: BTreeSet::new(),
            reported: BTreeMap::new(),
            unshown: Vec::new(),
            n_attempts: 0,
            n_closed: 0,
            lines: BTreeMap::new(),
            lost_up_to: WriteTicket::default(),
            is_ending: false,
        }
    }

    /// One more thing happens, chosen by a number.
    pub(super) fn step(&mut self, choice: u64) {
        let (what, which) = (choice % 16, choice / 16);
        match what {
            0..=2 => self.prompt(if which % 5 == 0 { 20_000 } else { 10 }),
            3 => self.input(SessionInput::Interrupt),
            4 => self.input(SessionInput::Stop),
            5 if which % 8 == 0 => self.input(SessionInput::Close),
            _ => self.answer(which),
        }
    }

    pub(super) fn prompt(&mut self, n_chars: usize) {
        self.n_prompts += 1;
        let limit = self.n_prompts.is_multiple_of(3).then_some(Duration::from_secs(9));
        let request = RunRequest { time_limit: limit, ..RunRequest::new("x".repeat(n_chars)) };
        let prompt = PromptId(self.n_prompts);
        self.input(SessionInput::Prompt { prompt, request: Box::new(request) });
    }

    /// Answers one of the things that are waited for.
    pub(super) fn answer(&mut self, choice: u64) {
        if self.owed.is_empty() {
            return;
        }
        let n_owed = self.owed.len() as u64;
        let (at, how) = (choice % n_owed, choice / n_owed);
        let mut owed = self.owed.remove(at as usize);
        if let Owed::Written(ticket) = &mut owed {
            // A writer answers in order.
            for it in &mut self.owed {
                if let Owed::Written(other) = it
                    && *other < *ticket
                {
                    std::mem::swap(other, ticket);
                }
            }
        }
        match owed {
            Owed::Open => {
                let opened = match how % 8 {
                    0 => OpenedTranscript::Failed("no".into()),
                    _ => OpenedTranscript::New,
                };
                self.input(SessionInput::Opened(opened));
            }
            Owed::Written(ticket) => {
                if how % 16 == 0 && !self.is_ending {
                    // What was handed over by then is lost with it.
                    self.lost_up_to = self.lines.keys().copied().max().unwrap_or_default();
                }
                let result = if ticket <= self.lost_up_to {
                    Err("the disk is full".into())
                } else {
                    Ok(Digest::of(&ticket.0.to_le_bytes()))
                };
                self.input(SessionInput::Written { ticket, result });
            }
            Owed::Turn(key) => self.turn_does(key, how),
            Owed::Quiet(key) => {
                self.input(SessionInput::TurnQuiet { key, late: how % 4 == 0 });
            }
            Owed::Settings => self.input(SessionInput::SettingsRead(match how % 2 {
                0 => None,
                _ => Some(Arc::new(self.machine.merge_order().merge())),
            })),
            Owed::Agent(agent) => self.agent_ends(agent, how),
            Owed::AgentCloses(agent) => {
                let result = Box::new(Err(RunError::Ended));
                self.input(SessionInput::AgentEnded { agent, result });
            }
            Owed::Time(run, deadline) => self.input(SessionInput::TimeIsUp { run, deadline }),
        }
    }

    fn turn_does(&mut self, key: TurnKey, how: u64) {
        // Messages of a turn that was ended may still be on their way.
        let goes_on = |world: &mut Self| world.owed.push(Owed::Turn(key));
        match how % 13 {
            12 => {
                goes_on(self);
                self.show_end(key);
            }
            0..=2 => {
                goes_on(self);
                let append = Box::new(append(how.is_multiple_of(2)));
                self.input(SessionInput::Append { key, append });
            }
            3 => {
                goes_on(self);
                self.input(SessionInput::Flush);
            }
            4 => {
                goes_on(self);
                self.spawn(key);
            }
            5 => {
                goes_on(self);
                self.spawn_in(key, AgentPlacement::Background);
            }
            6 => {
                goes_on(self);
                self.n_attempts += 1;
                let limits = AgentLimits { max_tree_tokens: Some(900), ..AgentLimits::default() };
                let max_cost = MaxCost { tokens: Tokens(300), price: Price::Unknown("m".into()) };
                let name = CallName { turn: key, attempt: self.n_attempts };
                self.input(SessionInput::CallWaits { name, limits, max_cost });
            }
            7 => self.input(SessionInput::TurnFailed { key, why: "no settings".into() }),
            8 => self.input(SessionInput::TurnCrashed { key }),
            9 => self.done(key, None),
            _ => self.done(key, Some(RunEnd::NoPendingTools)),
        }
    }

    pub(super) fn done(&mut self, key: TurnKey, end: Option<RunEnd>) {
        let report = TurnReport {
            append: Some(Box::new(append(false))),
            end,
            usage: Usage::default(),
            memory: TurnMemory::default(),
            error: None,
            fallback: None,
        };
        self.input(SessionInput::TurnDone { key, report: Box::new(report) });
    }

    pub(super) fn spawn(&mut self, key: TurnKey) {
        self.spawn_in(key, AgentPlacement::AsTyped);
    }

    pub(super) fn spawn_in(&mut self, key: TurnKey, placement: AgentPlacement) {
        self.n_requests += 1;
        let spawn = SpawnId(self.n_requests);
        self.requests.insert(spawn);
        let call = ToolUseId::from(format!("toolu_{}", spawn.0).as_str());
        let limits = AgentLimits::default();
        self.input(SessionInput::SpawnAgent(AgentRequest {
            spawn,
            key,
            limits,
            call,
            part: None,
            agent_type: None,
            placement,
            description: "look about".into(),
            verifies: false,
        }));
    }

    fn agent_ends(&mut self, agent: AgentId, how: u64) {
        self.input(match how % 3 {
            // Only one that was not started can be refused.
            1 if self.background.contains(&agent) => {
                let message = "the disk is full".into();
                SessionInput::AgentEnded { agent, result: Box::new(Err(RunError::Failed(message))) }
            }
            0 => SessionInput::AgentCrashed { agent, used: Vec::new() },
            1 => SessionInput::AgentRefused { agent, why: "no name".into() },
            _ => SessionInput::AgentEnded { agent, result: Box::new(Err(RunError::Ended)) },
        });
    }

    pub(super) fn input(&mut self, input: SessionInput) {
        self.now.elapsed += Duration::from_millis(5);
        self.now.at = Timestamp(self.now.at.0 + 5);
        for effect in self.machine.handle(self.now, input) {
            self.log.push(match &effect {
                SessionEffect::Spawn(effect) => format!("{effect:?}"),
                effect => format!("{effect:?}"),
            });
            self.carry_out(effect);
        }
    }

    fn carry_out(&mut self, effect: SessionEffect) {
        match effect {
            SessionEffect::Write(batch) => {
                self.lines.insert(batch.ticket, batch.lines);
                self.owed.push(Owed::Written(batch.ticket));
            }
            SessionEffect::Spawn(SpawnEffect::ReadSettings) => self.owed.push(Owed::Settings),
            // Nobody asked for what a session does by itself.
            SessionEffect::Reply { origin: RunOrigin::Woken | RunOrigin::Resumed, .. } => {}
            SessionEffect::Reply { origin: RunOrigin::Prompt(prompt), .. } => {
                *self.replies.entry(prompt.0).or_default() += 1
            }
            SessionEffect::Spawn(SpawnEffect::StartTurn { key, .. }) => {
                assert_eq!(self.turn.replace(key), None, "two turns at once");
                assert_eq!(self.n_closed, 0, "a turn starts after the end");
                self.unshown.clear();
                self.owed.push(Owed::Turn(key));
            }
            SessionEffect::Spawn(SpawnEffect::StopTurn { key }) => {
                assert_eq!(self.turn, Some(key), "a turn is ended that is not under way");
                self.owed.push(Owed::Quiet(key));
            }
            SessionEffect::LeaveTurn { key } => {
                self.turn = None;
                self.owed.retain(|it| !matches!(it, Owed::Turn(of) if *of == key));
                let left = TurnRemains { was_sent: true, ..TurnRemains::default() };
                self.input(SessionInput::TurnLeft { key, left });
            }
            SessionEffect::Spawn(SpawnEffect::WatchTime { run, deadline }) => {
                self.owed.retain(|it| !matches!(it, Owed::Time(..)));
                self.owed.push(Owed::Time(run, deadline));
            }
            SessionEffect::UnwatchTime => self.owed.retain(|it| !matches!(it, Owed::Time(..))),
            SessionEffect::Spawn(SpawnEffect::StartAgent {
                spawn,
                agent,
                background,
                again,
                ..
            }) => {
                assert!(again.is_some() || self.running.insert(agent.clone()));
                self.owed.push(Owed::Agent(agent.clone()));
                if again.is_none() {
                    assert!(self.requests.remove(&spawn), "a request is answered twice");
                }
                if let Some(background) = background.filter(|_| again.is_none()) {
                    self.background.insert(agent);
                    self.input(SessionInput::AgentKept(background));
                }
            }
            SessionEffect::RefuseAgent { spawn, .. } => {
                // One that was started can be refused once, instead of its report.
                self.requests.remove(&spawn);
            }
            SessionEffect::DropRequest { spawn } => {
                assert!(self.requests.remove(&spawn), "a request is answered twice");
            }
            SessionEffect::KeepEnd(end) => self.unshown.push(*end),
            SessionEffect::CloseAgent(agent) => self.owed.push(Owed::AgentCloses(agent)),
            SessionEffect::ReportAgent { agent, .. } => {
                *self.reported.entry(agent).or_default() += 1;
            }
            SessionEffect::Spawn(SpawnEffect::CloseTranscript) => self.n_closed += 1,
            SessionEffect::Spawn(
                SpawnEffect::LoadEarlier
                | SpawnEffect::WatchFiles { .. }
                | SpawnEffect::FireHooks(_),
            )
            | SessionEffect::Publish(_)
            | SessionEffect::Ready { .. }
            | SessionEffect::TurnRecorded { .. }
            | SessionEffect::SetMode { .. }
            | SessionEffect::SetAgentsMode(_)
            | SessionEffect::StopAfterTurn { .. }
            | SessionEffect::AdmitCall(_)
            | SessionEffect::AskTop(_)
            | SessionEffect::Begun(_)
            | SessionEffect::MessageTaken { .. }
            | SessionEffect::DeliverMessage { .. }
            | SessionEffect::MessageDelivered { .. }
            | SessionEffect::RefuseMessage { .. }
            | SessionEffect::AnswerAgent { .. } => {}
        }
        // A turn whose report was taken is over.
        if self.turn.is_some_and(|key| !self.machine.is_in_flight(key)) {
            self.turn = None;
        }
    }

    /// Closes the session and answers everything, the last thing first.
    pub(super) fn finish(&mut self) {
        self.is_ending = true;
        self.input(SessionInput::Close);
        for n in 0..10_000 {
            if self.owed.is_empty() {
                return;
            }
            // Turns only end; they start nothing more.
            self.owed.retain(|it| !matches!(it, Owed::Turn(_)));
            self.answer(n * 7 + 7);
        }
        panic!("it never comes to rest");
    }

    /// The lines of the file: batches that were sent again count once, in the order of their last
    /// tickets.
    pub(super) fn written(&self) -> Vec<&Line> {
        self.batches().into_iter().flat_map(|it| it.iter()).collect()
    }

    /// The same, write by write.
    pub(super) fn batches(&self) -> Vec<&Arc<Vec<Line>>> {
        let mut batches: Vec<&Arc<Vec<Line>>> = Vec::new();
        for lines in self.lines.values().rev() {
            if !batches.iter().any(|it| Arc::ptr_eq(it, lines)) {
                batches.push(lines);
            }
        }
        batches.reverse();
        batches
    }
}
