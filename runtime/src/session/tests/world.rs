//! What a session's actor does, with every answer at a random time or never where that may be.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use super::{
    kinds::{input_kind, opening_kind},
    tallies::Tallies,
};
use crate::{
    entropy::EntropyStream,
    ids::{AgentId, ShellId},
    lease::Lease,
    permission::PermissionMode,
    ports::agents::EndedAgent,
    run::{MESSAGE_ORIGIN, RunRequest, conversation::Conversation, facts::SessionFacts},
    session::{
        EarlierConversation, Machine, Now, SessionInput, TreeAnswer, TreePlace,
        names::{PromptId, RunNumber, SpawnId, TurnKey, WriteTicket},
    },
    step1_settings_resolution::AgentLimits,
    step7_permission_gate::Handler,
    time::Timestamp,
    transcript::entry::Line,
    turn::tests::script::facts,
};

/// Something that the session waits for.
#[derive(Debug)]
pub(super) enum Owed {
    Open,
    /// The conversation of an earlier process.
    Earlier(Box<EarlierConversation>),
    Written(WriteTicket),
    /// A turn that can still do things.
    Turn(TurnKey),
    Quiet(TurnKey),
    /// A turn that is to record another mode.
    Mode(TurnKey, PermissionMode),
    Settings,
    Agent(AgentId),
    /// A sub-agent that was asked to end.
    AgentCloses(AgentId),
    /// A sub-agent that is handed a message.
    Delivery(SpawnId),
    /// A sub-agent that is to go on with a message.
    GoesOn(SpawnId, AgentId),
    /// A sub-agent that was to go on and has ended before.
    NotBegun(SpawnId),
    /// A command in the background.
    Shell(ShellId),
    /// A hook that is not waited for.
    Hook,
    /// The top session of the tree.
    Top(TreeAnswer),
    Time(RunNumber, Duration),
}

pub(super) struct SessionWorld {
    pub(super) machine: Machine,
    pub(super) facts: Arc<SessionFacts>,
    pub(super) now: Now,
    pub(super) owed: Vec<Owed>,
    /// Every effect, as text.
    pub(super) log: Vec<String>,
    /// The kinds of inputs and openings that were produced.
    pub(super) kinds: BTreeSet<&'static str>,
    pub(super) n_prompts: u64,
    pub(super) replies: BTreeMap<u64, usize>,
    /// The turn that may do things; set by `StartTurn`, taken when it is over.
    pub(super) turn: Option<TurnKey>,
    pub(super) requests: BTreeSet<SpawnId>,
    pub(super) n_requests: u64,
    /// Numbers what is made, so that no two things have one name; those of two processes differ.
    pub(super) n_things: u64,
    pub(super) running: BTreeSet<AgentId>,
    /// Those that were started in the background.
    pub(super) background: BTreeSet<AgentId>,
    pub(super) reported: BTreeMap<AgentId, usize>,
    /// Those in the background that have ended since the turn began.
    pub(super) unshown: Vec<EndedAgent>,
    pub(super) n_attempts: u32,
    pub(super) n_closed: usize,
    /// The conversation of the process before, until it is read.
    pub(super) earlier: Option<Box<EarlierConversation>>,
    /// The writes of that process, as far as they reached the file.
    pub(super) before: Vec<Arc<Vec<Line>>>,
    /// Lines by the last ticket under which they were sent, in order.
    pub(super) lines: BTreeMap<WriteTicket, Arc<Vec<Line>>>,
    /// Writes up to this ticket fail.
    pub(super) lost_up_to: WriteTicket,
    /// Whether the transcript was never open, or the conversation of the process before was never read.
    pub(super) is_not_open: bool,
    pub(super) tallies: Tallies,
    /// Nothing goes wrong any more.
    pub(super) is_ending: bool,
}

impl SessionWorld {
    /// The session is at the top of its tree.
    pub(super) fn new() -> Self {
        Self::at(true)
    }

    /// A session at the top of its tree, or below.
    pub(super) fn at(is_top: bool) -> Self {
        let mut facts = facts(Handler::None);
        facts.agent = (!is_top).then(|| "00000000000000aa".into());
        Self::with(Arc::new(facts), 7)
    }

    /// A session with these facts, in a process that draws from this seed.
    pub(super) fn with(facts: Arc<SessionFacts>, seed: u64) -> Self {
        let place = match &facts.agent {
            None => TreePlace::Top,
            Some(agent) => {
                let mut top = Lease::top(AgentLimits::default());
                let lease = top.child(agent, Duration::ZERO).expect("a place for one");
                TreePlace::Below { agent: agent.clone(), lease }
            }
        };
        let conversation = Conversation::new(Arc::clone(&facts), EntropyStream::from_seed(seed));
        Self {
            machine: Machine::new(conversation, place, vec!["a notice".into()]),
            facts,
            now: Now::default(),
            owed: vec![Owed::Open],
            log: Vec::new(),
            kinds: BTreeSet::new(),
            n_prompts: 0,
            replies: BTreeMap::new(),
            turn: None,
            requests: BTreeSet::new(),
            n_requests: seed * 1000,
            n_things: seed * 100_000,
            running: BTreeSet::new(),
            background: BTreeSet::new(),
            reported: BTreeMap::new(),
            unshown: Vec::new(),
            n_attempts: 0,
            n_closed: 0,
            earlier: None,
            before: Vec::new(),
            lines: BTreeMap::new(),
            lost_up_to: WriteTicket::default(),
            is_not_open: false,
            tallies: Tallies::default(),
            is_ending: false,
        }
    }

    /// Whether the session is at the top of its tree.
    pub(super) fn is_top(&self) -> bool {
        self.facts.agent.is_none()
    }

    /// A number that nothing else has.
    pub(super) fn number(&mut self) -> u64 {
        self.n_things += 1;
        self.n_things
    }

    /// One more thing happens, chosen by a number.
    pub(super) fn step(&mut self, choice: u64) {
        let (what, which) = (choice % 40, choice / 40);
        match what {
            0..=3 => self.prompt(if which.is_multiple_of(5) { 20_000 } else { 10 }),
            4 => self.input(SessionInput::Interrupt),
            5 => self.input(SessionInput::Stop),
            6 if which.is_multiple_of(8) => self.input(SessionInput::Close),
            7..20 => self.comes_unasked(what, which),
            _ => self.answer(which),
        }
    }

    pub(super) fn prompt(&mut self, n_chars: usize) {
        self.n_prompts += 1;
        let limit = self.n_prompts.is_multiple_of(3).then_some(Duration::from_secs(9));
        let mut request = RunRequest { time_limit: limit, ..RunRequest::new("x".repeat(n_chars)) };
        let prompt = PromptId(self.n_prompts);
        if !self.is_top() && self.n_prompts.is_multiple_of(2) {
            request = request.origin(MESSAGE_ORIGIN);
            self.tallies.begun.insert(prompt, 0);
        }
        self.input(SessionInput::Prompt { prompt, request: Box::new(request) });
    }

    pub(super) fn input(&mut self, input: SessionInput) {
        self.kinds.insert(input_kind(&input));
        match &input {
            SessionInput::Opened(opened) => _ = self.kinds.insert(opening_kind(opened)),
            SessionInput::AgentEnded { agent, .. }
            | SessionInput::AgentCrashed { agent, .. }
            | SessionInput::AgentRefused { agent, .. } => self.note_end(agent),
            _ => {}
        }
        self.now.elapsed += Duration::from_millis(5);
        self.now.at = Timestamp(self.now.at.0 + 5);
        for effect in self.machine.handle(self.now, input) {
            self.log.push(match &effect {
                crate::session::SessionEffect::Spawn(effect) => format!("{effect:?}"),
                effect => format!("{effect:?}"),
            });
            self.carry_out(effect);
        }
        self.check_tree();
    }

    /// Closes the session and answers everything, the last thing first.
    pub(super) fn finish(&mut self) {
        self.is_ending = true;
        self.input(SessionInput::Close);
        for n in 0..10_000 {
            // Turns only end; they start nothing more.
            self.owed.retain(|it| !matches!(it, Owed::Turn(_) | Owed::Mode(..)));
            if self.owed.is_empty() {
                return;
            }
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
        let own = self.own_batches();
        self.before.iter().chain(own.into_iter().map(|(_, lines)| lines)).collect()
    }

    /// The writes of this process, by their last tickets.
    pub(super) fn own_batches(&self) -> Vec<(WriteTicket, &Arc<Vec<Line>>)> {
        let mut batches: Vec<(WriteTicket, &Arc<Vec<Line>>)> = Vec::new();
        for (ticket, lines) in self.lines.iter().rev() {
            if !batches.iter().any(|it| Arc::ptr_eq(it.1, lines)) {
                batches.push((*ticket, lines));
            }
        }
        batches.reverse();
        batches
    }
}
