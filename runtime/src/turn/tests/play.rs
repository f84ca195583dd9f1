//! Plays the world for a session: carries out what turns ask for, and writes down what happens.
//!
//! On the way it holds the turn to what it promises: no call before its answer and its intent are
//! acknowledged, one result per tool use.

use std::collections::BTreeMap;

use super::{
    in_flight::InFlight,
    trace::{again, alert, judged, shown_event, step_after, word},
    world::{World, run_handler},
};
use crate::{
    approval::Question,
    block::Block,
    digest::Digest,
    entropy::EntropyStream,
    event::Event,
    lease::MaxCost,
    run::{AfterTurn, Run, RunEnd, conversation::Conversation},
    step1_settings_resolution::LayerText,
    time::Timestamp,
    tokens::Usage,
    transcript::{
        entry::{ConversationLine, Line, LineFrame, Record, RecordKind, Stored},
        load::Ended,
        replay::replay,
        seal::{Head, LineBatch},
    },
    turn::{
        Effect, Turn, TurnInput,
        effect::{Append, ModelCallOrder, TurnReport},
    },
};

/// A session of a test, and what happened in it.
pub(crate) struct Play {
    pub(crate) world: World,
    pub(crate) conversation: Conversation,
    /// Steps, answers, results and ends, as words.
    pub(crate) log: Vec<String>,
    pub(crate) alerts: Vec<String>,
    /// Starts (`+`) and ends (`-`) of calls.
    pub(crate) trace: Vec<String>,
    pub(crate) lines: Vec<Line>,
    /// What hooks have called the session.
    pub(crate) titles: Vec<String>,
    /// Long texts next to it.
    pub(crate) stored: BTreeMap<Digest, String>,
    /// Questions that surfaces were shown.
    pub(crate) questions: Vec<Question>,
    /// Requests that were sent.
    pub(crate) requests: Vec<ModelCallOrder>,
    /// The most that each of them could use.
    pub(crate) worst: Vec<MaxCost>,
    /// How each run ended, and its message.
    pub(crate) ends: Vec<(RunEnd, Option<String>)>,
    /// What the turns reported as used.
    pub(crate) used: Usage,
    /// The next runs sum up the conversation, with this in mind.
    pub(crate) compacts: Option<String>,
    /// The clock, in milliseconds since 1970.
    pub(crate) now: u64,
    pub(crate) n_inputs: u64,
    pub(super) last_layers: Option<Vec<LayerText>>,
    /// Of the run; a turn that was past its stop check leaves it to the next.
    asked_to_stop: bool,
    pub(super) is_killed: bool,
    pub(super) first: bool,
}

/// Plays one run with the prompt `go`.
pub(crate) fn play(world: World) -> Play {
    let mut play = Play::new(world);
    play.run("go");
    play
}

impl Play {
    /// Walks the turns again from their lines.
    #[track_caller]
    pub(super) fn check_replay(&self) {
        let stored = |digest| self.stored.get(&digest).cloned();
        let replayed = replay(&self.bytes(), &stored);
        replayed.unwrap_or_else(|it| panic!("{it}\n{}", self.log()));
    }

    pub(crate) fn new(world: World) -> Self {
        let stream = EntropyStream::from_seed(7).child(world.facts.session.as_str());
        Self {
            conversation: Conversation::new(world.facts.clone(), stream),
            world,
            log: Vec::new(),
            alerts: Vec::new(),
            trace: Vec::new(),
            lines: Vec::new(),
            titles: Vec::new(),
            stored: BTreeMap::new(),
            questions: Vec::new(),
            requests: Vec::new(),
            worst: Vec::new(),
            ends: Vec::new(),
            used: Usage::default(),
            compacts: None,
            now: 1_790_000_000_000,
            n_inputs: 0,
            last_layers: None,
            asked_to_stop: false,
            is_killed: false,
            first: true,
        }
    }

    pub(crate) fn log(&self) -> String {
        self.log.join(" ")
    }

    pub(crate) fn run(&mut self, prompt: &str) {
        if self.is_killed {
            self.reopen();
        }
        let n_runs = self.ends.len();
        self.asked_to_stop = false;
        let id = self.conversation.stream.uuid(Timestamp(self.now), "run", n_runs as u64);
        let blocks = vec![Block::text(prompt)];
        let message = std::sync::Arc::new(self.conversation.prompt(self.at(), &id, blocks));
        let last = self.conversation.last_entry.clone();
        let line = ConversationLine::of(self.at(), last, message.clone());
        self.lines.push(Line::Conversation(Box::new(line)));
        let compacts = self.compacts.as_deref().map(Into::into);
        let mut run = Run::new(id.into(), message.id.clone()).with_compaction(compacts);
        self.conversation.begin_run(message);
        let (setup, mut beside) = (self.conversation.facts.to_json(), Vec::new());
        let what = RecordKind::RunStart {
            prompt: run.prompt.clone(),
            origin: "test".into(),
            stream: self.conversation.stream.to_hex(),
            setup: Stored::new(&setup, &mut beside),
            first: self.first,
            system: None,
            compacts: self.compacts.clone(),
            sender: None,
            asked: None,
            time_limit_ms: None,
        };
        self.stored.extend(beside.into_iter().map(|it| (it.digest, it.text.to_string())));
        self.record(&run, what);
        self.mode_of_first_run();
        let end = loop {
            run.turns += 1;
            let Some(report) = self.turn(&run) else {
                if self.is_killed {
                    return self.ends.push((RunEnd::Crashed, None));
                }
                break (RunEnd::Interrupted, None);
            };
            self.conversation.hand_on(report.memory);
            self.used = self.used + report.usage;
            let settings = self.conversation.memory.resolved.clone().unwrap().settings.clone();
            match run.after_turn(report.end, report.usage, &settings, &[]) {
                AfterTurn::Next(_) => self.log.push("go on".into()),
                AfterTurn::End(end) => break (end, report.error),
            }
        };
        self.log.push(end.0.code().into());
        let (turns, usage) = (run.turns, run.usage);
        self.record(
            &run,
            RecordKind::RunEnd { reason: end.0.code().into(), turns, usage, head: None },
        );
        self.ends.push(end);
    }

    /// `None` when it was interrupted.
    fn turn(&mut self, run: &Run) -> Option<TurnReport> {
        let setup = self.conversation.turn(run, self.conversation.budget(run.usage));
        let (stream, n_before) = (setup.stream, self.lines.len());
        let layers = self.last_layers.clone();
        let mut turn = Turn::new(setup);
        let mut due = InFlight::default();
        due.waiting.push(TurnInput::Run(turn.step()));
        if self.asked_to_stop {
            turn.handle(self.at(), TurnInput::StopRequested);
        }
        while !due.waiting.is_empty() {
            self.n_inputs += 1;
            if self.world.stop_at == Some(self.n_inputs) {
                self.asked_to_stop = true;
                for effect in turn.handle(self.at(), TurnInput::StopRequested) {
                    self.carry_out(effect, &turn, &mut due);
                }
            }
            let modes =
                self.world.modes_at.iter().filter(|it| it.0 == self.n_inputs).map(|it| it.1);
            due.waiting.extend(modes.map(TurnInput::ModeChanged));
            let draw = self.world.shuffle.map_or(0, |it| it.draw("order", self.n_inputs));
            let next = due.waiting.remove((draw % due.waiting.len() as u128) as usize);
            self.now += 1 + (draw % 13) as u64;
            if self.world.kill_at == Some(self.n_inputs) {
                // What was on its way is lost, or not.
                let n_lines = self.lines.len() - (draw as usize % 3);
                self.lines.truncate(n_lines.max(n_before));
                self.is_killed = true;
                return None;
            }
            if self.world.interrupt_at == Some(self.n_inputs) {
                let at_step = step_after(&self.lines[n_before..]);
                self.close(at_step, run, stream, RunEnd::Interrupted, Ended::new());
                // What a turn has looked at counts when it hands on what it made of it.
                self.last_layers = layers;
                return None;
            }
            match &next {
                TurnInput::ToolFinished { call, .. } => self.trace.push(format!("-{call}")),
                TurnInput::Recorded { ticket } => due.acknowledged = due.acknowledged.max(*ticket),
                _ => {}
            }
            let echo = self.world.echo.then(|| again(&next)).flatten();
            let mut effects = turn.handle(self.at(), next);
            // Standing at every step keeps lines and steps in the order in which they came about.
            if self.world.prefix_stays || echo.is_some() {
                effects.extend(turn.flush());
            }
            if let Some(echo) = echo {
                let more = turn.handle(self.at(), echo);
                assert!(more.is_empty(), "the second time had effects: {more:?}");
            }
            let is_step = |it: &Effect| matches!(it, Effect::Publish(Event::StepStarted { .. }));
            effects.sort_by_key(|it| !is_step(it));
            for effect in effects {
                if let Some(mut report) = self.carry_out(effect, &turn, &mut due) {
                    report.append.take().into_iter().for_each(|it| self.append(*it, &mut due));
                    self.check_results(n_before);
                    return Some(report);
                }
            }
        }
        panic!("the turn is stuck after {}", self.log());
    }

    fn carry_out(&mut self, effect: Effect, turn: &Turn, due: &mut InFlight) -> Option<TurnReport> {
        due.waiting.extend(self.world.mode_set_during(&effect));
        let input = match effect {
            Effect::Next(step) => TurnInput::Run(step),
            Effect::ReadSettings => {
                TurnInput::SettingsRead(self.world.read_settings(&mut self.last_layers))
            }
            Effect::MergeSettings(order) => self.world.merge(*order),
            Effect::ReadSources => TurnInput::SourcesRead(Box::new(self.world.sources.clone())),
            Effect::LookAtSources(order) => TurnInput::SourcesSeen(self.world.look(&order)),
            Effect::Shape(order) => self.world.shape(&order),
            Effect::CallModel(order) => {
                if self.world.keeps_requests {
                    self.requests.push(ModelCallOrder::clone(&order));
                    self.worst.push(turn.worst_case());
                }
                self.world.model(&order)
            }
            Effect::Wait { attempt, .. } => {
                self.log.push("wait".into());
                TurnInput::TimerFired { attempt }
            }
            Effect::Dispatch(calls) => self.world.dispatch(&calls),
            Effect::RunHooks(firing) => {
                self.log.push(format!("hook:{}", firing.event.name()));
                let outputs = firing.handlers.iter().map(run_handler).collect();
                TurnInput::HooksAnswered { firing: firing.firing, outputs }
            }
            Effect::ResolvePath { call, given } => self.world.resolve(call, &given, turn.cwd()),
            Effect::JudgeCommand { call, order } => judged(call, &order),
            Effect::ReadPlan { call, .. } => self.world.read_plan(call),
            Effect::ConsultPolicy(question) => self.world.policy(&question),
            Effect::AskPermission(question) => {
                self.log.push(format!("ask:{}", question.call.id));
                self.questions.push(Question::clone(&question));
                self.world.permission(&question)
            }
            Effect::ExecuteTool { permit, call, .. } => {
                assert_eq!(permit.call(), &call);
                assert!(due.answer <= due.acknowledged, "a call of an answer that may be lost");
                assert!(due.intents[&call.id] <= due.acknowledged, "{} may be lost", call.id);
                self.trace.push(format!("+{}", call.id));
                let outcome = Box::new(self.world.outcome(&call));
                TurnInput::ToolFinished { call: call.id, outcome }
            }
            Effect::Append(append) => {
                self.append(*append, due);
                return None;
            }
            Effect::Publish(event) => {
                self.alerts.extend(alert(&event));
                self.log.extend(shown_event(&event));
                return None;
            }
            Effect::WatchFiles(_) => return None,
            Effect::Finish(report) => return Some(*report),
        };
        due.waiting.push(input);
        None
    }

    fn append(&mut self, append: Append, due: &mut InFlight) {
        assert_eq!(append.ticket, due.written + 1);
        due.written = append.ticket;
        self.titles.extend(append.title.as_deref().map(str::to_owned));
        for line in &append.lines {
            match line {
                Line::Conversation(line) => {
                    if line.answer.is_some() {
                        due.answer = append.ticket;
                    }
                    self.log.extend(word(line));
                }
                Line::Harness(record) => match &record.what {
                    RecordKind::ToolIntent { call, .. } => {
                        due.intents.insert(call.clone(), append.ticket);
                    }
                    RecordKind::Shaper { stage, fired: true, .. } => self.log.push(stage.clone()),
                    _ => {}
                },
            }
        }
        for text in append.stored {
            self.stored.insert(text.digest, text.text.to_string());
        }
        append.lines.iter().for_each(|it| self.conversation.note(it));
        self.lines.extend(append.lines);
        append.updates.into_iter().for_each(|it| self.conversation.apply(it));
        if append.is_awaited {
            due.waiting.push(TurnInput::Recorded { ticket: append.ticket });
        }
    }

    fn check_results(&self, n_before: usize) {
        let updates = |line: &Line| match line {
            Line::Conversation(line) => line.message.blocks.clone(),
            Line::Harness(_) => Vec::new(),
        };
        let blocks: Vec<Block> = self.lines[n_before..].iter().flat_map(updates).collect();
        let uses: Vec<_> = blocks.iter().filter_map(Block::as_tool_use).map(|it| it.0).collect();
        let results = blocks.iter().filter_map(Block::as_tool_result).map(|it| it.0);
        assert_eq!(uses, results.collect::<Vec<_>>(), "one result per tool use, in order");
    }

    pub(super) fn at(&self) -> Timestamp {
        Timestamp(self.now)
    }

    pub(super) fn record(&mut self, run: &Run, what: RecordKind) {
        let record =
            Record { at: self.at(), run: Some(run.id.clone()), turn: 0, what, shares_line: false };
        self.lines.push(Line::Harness(Box::new(record)));
    }

    /// Records of the transcript, without conversation lines.
    pub(crate) fn records(&self) -> impl Iterator<Item = &Record> {
        self.lines.iter().filter_map(|it| match it {
            Line::Harness(record) => Some(&**record),
            Line::Conversation(_) => None,
        })
    }

    pub(crate) fn messages(&self) -> impl Iterator<Item = &ConversationLine> {
        self.lines.iter().filter_map(|it| match it {
            Line::Conversation(line) => Some(&**line),
            Line::Harness(_) => None,
        })
    }

    /// Gives each record a line of its own, as it had before records shared lines.
    pub(crate) fn take_apart(&mut self) {
        for line in &mut self.lines {
            if let Line::Harness(record) = line {
                record.shares_line = false;
            }
        }
    }

    /// The transcript as a file.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let frame = LineFrame {
            session: self.world.facts.session.clone(),
            agent: None,
            cwd: self.world.facts.workspace.clone(),
            git_branch: Some("main".into()),
            version: env!("CARGO_PKG_VERSION"),
        };
        let mut bytes = Vec::new();
        let mut batch = LineBatch::new(Head::default(), None, &mut bytes);
        for line in &self.lines {
            batch.push(line, &frame, |_, _, _| {});
        }
        batch.finish();
        bytes
    }
}
