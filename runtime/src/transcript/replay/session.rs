//! A session, walked again: its machine decides once more, and what it writes in addition to the lines
//! of its turns is held against the file.
//!
//! What people, servers and sub-agents did is an input and is read off the records: when a prompt came,
//! what ended a turn from outside, what sub-agents used. What follows is the machine's: which prompt
//! begins a run, whether another turn follows, how a turn and a run are closed.
//!
//! Where the machine cannot be followed (a session of older rules, one whose lines were lost, one whose
//! process was killed), the turns alone are walked again.

mod inputs;
mod turn;

use std::{collections::VecDeque, mem, sync::Arc, time::Duration};

use inputs::unmade;

use super::{
    ReplayError, StoredTexts, background,
    line::{LineRef, SealedLine},
    runs::RecordedRuns,
    texts::{system_of, text_of},
    window::record,
};
use crate::{
    digest::Digest,
    entropy::EntropyStream,
    hook::EndedHook,
    ids::AgentId,
    lease::Lease,
    message::Message,
    run::{Run, RunEnd, RunRequest, WOKEN_ORIGIN, conversation::Conversation, facts::SessionFacts},
    session::{
        KeptHook, Machine, MessageNumber, OpenedTranscript, PromptId, RunNumber, SessionInput,
        TreePlace, TurnKey, WriteTicket,
    },
    step1_settings_resolution::AgentLimits,
    time::Timestamp,
    transcript::{
        entry::{Line, MessageRecord, Record, RecordKind, Stored},
        load::BackgroundTasks,
    },
    turn::{TurnSetup, effect::HistoryUpdate},
};

/// The revision of the rules from which on what a session decides can be read off its records.
const RECORDED_FROM: u32 = 4;

/// What a session knew, and where its machine is.
pub(super) struct Session {
    machine: Machine,
    run: Run,
    /// `None` where the machine is not followed.
    decisions: Option<Decisions>,
}

/// What the machine wants and the walk has not done yet.
#[derive(Default)]
struct Decisions {
    is_open: bool,
    last_prompt: PromptId,
    /// The turn that it started last.
    turn: Option<(TurnKey, Box<TurnSetup>)>,
    /// The run whose time is limited, and until when.
    limit: Option<(RunNumber, Duration)>,
    wants_settings: bool,
    /// A sub-agent that it asks the tree for.
    asks_for: Option<AgentId>,
    /// What started a sub-agent in this run.
    starter: Option<turn::AgentStarter>,
    /// The write that ended a run, until the next run begins.
    unanswered: Option<WriteTicket>,
    /// Lines that it wrote and that were not compared yet.
    made: VecDeque<Line>,
    /// Places of messages that it has not written: they may be of the closing that follows.
    unexplained: Vec<usize>,
}

impl Session {
    /// Counts how often messages were counted, compared with caps and compiled for its requests.
    pub(super) fn n_compiled(&self) -> u64 {
        let memory = &self.machine.conversation().memory;
        memory.counted.looks() + memory.caps.looks() + memory.carried.looks()
    }

    /// Makes a session at the start of its first run; the conversation continues what was loaded.
    pub(super) fn new(conversation: Conversation) -> Self {
        let is_recorded = RECORDED_FROM <= conversation.facts.revision;
        // What a tree of agents has left is decided elsewhere, so its answers are inputs.
        let place = TreePlace::Below {
            agent: AgentId::new("replay"),
            lease: Lease::top(AgentLimits::default()),
        };
        Self {
            machine: Machine::new(conversation, place, Vec::new()),
            run: Run::new("".into(), "".into()),
            decisions: is_recorded.then(Decisions::default),
        }
    }

    /// Makes a session that continues a run of an earlier process. Where that run was is not for the machine to decide,
    /// so it is not followed.
    pub(super) fn resumed(
        conversation: Conversation,
        line: &SealedLine<'_>,
        stored: StoredTexts<'_>,
    ) -> Result<Self, ReplayError> {
        let mut session = Self { decisions: None, ..Self::new(conversation) };
        let Some(record) = record(line) else { return Ok(session) };
        if let (RecordKind::RunResumed { prompt, system, .. }, Some(run)) =
            (&record.what, &record.run)
        {
            let system = system.as_ref().map(|it| text_of(it, line.number, stored)).transpose()?;
            session.run = Run::new(run.clone(), prompt.clone()).with_system(system.map(Into::into));
        }
        Ok(session)
    }

    /// Takes over what hooks added in an earlier process and the model had not read.
    pub(super) fn keep_hooks(
        &mut self,
        at: Timestamp,
        background: &BackgroundTasks,
        stored: StoredTexts<'_>,
    ) {
        let directory = &self.machine.conversation().facts.directory;
        let text = |it: &Stored| text_of(it, 0, stored).ok();
        let kept = KeptHook::read_all(background, directory, text);
        self.feed(at, SessionInput::HooksKept(kept));
    }

    /// Takes over what the session was sent before it was opened again and has not shown.
    pub(super) fn with_unread(mut self, stored: StoredTexts<'_>) -> Result<Self, ReplayError> {
        let unread = &self.machine.conversation().state.unread;
        let text = |it: &MessageRecord| Ok((it.message.clone(), text_of(&it.text, 0, stored)?));
        let unread = unread.iter().map(text).collect::<Result<_, ReplayError>>()?;
        self.machine.resume_messages(unread);
        Ok(self)
    }

    fn facts(&self) -> &Arc<SessionFacts> {
        &self.machine.conversation().facts
    }

    /// Replays a message in front of a turn, at this place.
    pub(super) fn replay_messages(
        &mut self,
        lines: &[SealedLine<'_>],
        place: usize,
    ) -> Result<(), ReplayError> {
        match &mut self.decisions {
            Some(it) if matches!(it.made.front(), Some(Line::Conversation(_))) => {
                self.compare(&lines[place])
            }
            Some(it) => {
                it.unexplained.push(place);
                Ok(())
            }
            None => {
                self.take_in(&lines[place]);
                Ok(())
            }
        }
    }

    fn take_in(&mut self, line: &SealedLine<'_>) {
        if let LineRef::Conversation(entry_line) = line.line() {
            let update = HistoryUpdate::Message(Arc::clone(&entry_line.message));
            self.machine.conversation_mut().apply(update);
        }
    }

    /// From here on the machine is not followed.
    fn lose_track(&mut self, lines: &[SealedLine<'_>]) {
        for place in self.decisions.take().map(|it| it.unexplained).unwrap_or_default() {
            self.take_in(&lines[place]);
        }
    }

    /// Replays a record of no turn. `is_last` is whether no run of this opening follows.
    pub(super) fn noted(
        &mut self,
        lines: &[SealedLine<'_>],
        place: usize,
        is_last: bool,
        stored: StoredTexts<'_>,
    ) -> Result<(), ReplayError> {
        let line = &lines[place];
        let Some(record) = record(line) else { return Ok(()) };
        let is_made = |it: &Decisions| matches!(it.made.front(), Some(Line::Harness(it)) if matches!(it.what, RecordKind::Mode(_)));
        if let RecordKind::Mode(_) = record.what {
            if self.decisions.as_ref().is_some_and(is_made) {
                return self.compare(line);
            }
            self.machine.conversation_mut().memory.overrides.note(&record.what);
            return Ok(());
        }
        let Some(decisions) = &self.decisions else { return Ok(()) };
        match &record.what {
            RecordKind::Shell(_) | RecordKind::BackgroundAgent(_)
                if record.run.as_ref() == Some(&self.run.id) =>
            {
                if let Some(kept) = background::kept(&record.what) {
                    self.feed(record.at, kept);
                }
                self.compare(line)
            }
            // Those of a turn are of its run.
            what @ RecordKind::Hook { .. } if record.run.is_none() => {
                let text = |it: &Stored| text_of(it, line.number, stored);
                if let Some(ended) = EndedHook::recorded(what, &text)? {
                    self.feed(record.at, SessionInput::HookEnded(Box::new(ended)));
                }
                self.compare(line)
            }
            RecordKind::AgentMessage(message) if record.run.as_ref() == Some(&self.run.id) => {
                let id = message.message.clone();
                let text = text_of(&message.text, line.number, stored)?;
                let number = MessageNumber::default();
                self.feed(record.at, SessionInput::Message { number, id, text });
                self.compare(line)
            }
            RecordKind::RunEnd { reason, .. } if decisions.made.is_empty() => {
                // The process that resumes a session whose process was killed ends its run.
                let is_crashed = is_last && *reason == RunEnd::Crashed.code();
                if is_crashed || *reason == RunEnd::NotRecorded.code() {
                    self.lose_track(lines);
                    return Ok(());
                }
                self.compare(line)
            }
            RecordKind::RunEnd { .. } => self.compare(line),
            _ => Ok(()),
        }
    }

    /// Begins a run, the one of this number.
    pub(super) fn begin(
        &mut self,
        lines: &[SealedLine<'_>],
        runs: &mut RecordedRuns<'_>,
        number: usize,
        stored: StoredTexts<'_>,
    ) -> Result<(), ReplayError> {
        let begun = runs.all[number];
        let (line, prompt, record) = (begun.line, begun.prompt, begun.record);
        let system = system_of(record, line.number, stored)?;
        if self.decisions.is_none() {
            return self.begin_unfollowed(prompt, begun.message, record, system);
        }
        self.nothing_unexplained(lines)?;
        let at = record.at;
        let id = record.run.clone().unwrap_or_else(|| "".into());
        for ended in background::ended(lines, begun.place + 1, &id) {
            self.feed(at, ended);
        }
        if let Some(mode) = mode_at(lines, begun.place + 1).filter(|_| begun.is_first) {
            self.machine.conversation_mut().memory.overrides.note(mode);
        }
        for waiting in runs.due(number) {
            let waiting = &runs.all[waiting];
            let system = system_of(waiting.record, waiting.line.number, stored)?;
            let asked = waiting.asked.unwrap_or(at);
            self.prompt(asked, waiting.message, waiting.record, system);
        }
        if let Some(ticket) = self.decisions.as_mut().and_then(|it| it.unanswered.take()) {
            self.feed(at, SessionInput::Written { ticket, result: Ok(Digest::default()) });
        }
        if self.decisions.as_mut().is_some_and(|it| !mem::replace(&mut it.is_open, true)) {
            self.feed(at, SessionInput::Opened(OpenedTranscript::New));
        }
        if begun.asked.is_none() {
            self.prompt(at, begun.message, record, system.clone());
        }
        if self.decisions.as_mut().is_some_and(|it| mem::take(&mut it.wants_settings)) {
            self.feed(at, SessionInput::SettingsRead(None));
        }
        self.feed(at, SessionInput::Flush);
        self.run = Run::new(id, begun.message.id.clone())
            .with_system(system)
            .with_compaction(compacts_of(record))
            .with_origin(origin_of(record));
        if let Some(decisions) = &mut self.decisions {
            decisions.starter = None;
        }
        self.compare(prompt).map_err(wrong_prompt)?;
        self.compare(line)
    }

    fn begin_unfollowed(
        &mut self,
        prompt: &SealedLine<'_>,
        message: &Arc<Message>,
        record: &Record,
        system: Option<Arc<str>>,
    ) -> Result<(), ReplayError> {
        let LineRef::Conversation(entry_line) = prompt.line() else { return Ok(()) };
        let made = Line::Conversation(Box::new(entry_line.clone()));
        if let Some((expected, found)) = prompt.difference(&made, self.facts()) {
            return Err(ReplayError::WrongPrompt { line: prompt.number, expected, found });
        }
        if let Some(run) = &record.run {
            self.run = Run::new(run.clone(), message.id.clone())
                .with_system(system)
                .with_compaction(compacts_of(record))
                .with_origin(origin_of(record));
        }
        self.machine.conversation_mut().begin_run(Arc::clone(message));
        Ok(())
    }

    fn prompt(
        &mut self,
        at: Timestamp,
        message: &Arc<Message>,
        record: &Record,
        system: Option<Arc<str>>,
    ) {
        let RecordKind::RunStart { compacts, sender, time_limit_ms, .. } = &record.what else {
            return;
        };
        let request = RunRequest {
            run: record.run.clone(),
            // The caller may have named it.
            message: Some(message.id.clone()),
            system: system.map(|it| (*it).to_owned()),
            compacts: compacts.clone(),
            sender: sender.clone(),
            time_limit: time_limit_ms.map(Duration::from_millis),
            ..RunRequest::recorded(&message.blocks)
        };
        // Of other runs it decides nothing where they come from.
        let is_woken = origin_of(record) == WOKEN_ORIGIN;
        let request = if is_woken { request.origin(WOKEN_ORIGIN) } else { request };
        let Some(decisions) = &mut self.decisions else { return };
        let prompt = decisions.last_prompt.advance();
        self.feed(at, SessionInput::Prompt { prompt, request: Box::new(request) });
    }

    /// Messages in front of a turn are reports that the machine wrote.
    fn nothing_unexplained(&self, lines: &[SealedLine<'_>]) -> Result<(), ReplayError> {
        let first = self.decisions.as_ref().and_then(|it| it.unexplained.first());
        match first.and_then(|it| lines.get(*it)) {
            Some(line) => Err(unmade(line)),
            None => Ok(()),
        }
    }
}

/// What a run that sums up is to keep in mind.
fn compacts_of(record: &Record) -> Option<Arc<str>> {
    match &record.what {
        RecordKind::RunStart { compacts, .. } => compacts.as_deref().map(Into::into),
        _ => None,
    }
}

fn origin_of(record: &Record) -> &str {
    match &record.what {
        RecordKind::RunStart { origin, .. } => origin,
        _ => "",
    }
}

/// The record of a mode that was set outside of turns, if there is one at this place.
fn mode_at<'a>(lines: &'a [SealedLine<'_>], place: usize) -> Option<&'a RecordKind> {
    let found = lines.get(place).and_then(record).filter(|it| it.turn == 0)?;
    matches!(found.what, RecordKind::Mode(_)).then_some(&found.what)
}

fn wrong_prompt(error: ReplayError) -> ReplayError {
    match error {
        ReplayError::Decided { line, expected, found } => {
            ReplayError::WrongPrompt { line, expected, found }
        }
        other => other,
    }
}

/// Reads what was fixed when a session was opened, and the key of its draws; `None` when that cannot be read.
pub(super) fn opened(
    record: &Record,
    line: u64,
    stored: StoredTexts<'_>,
) -> Result<Option<Conversation>, ReplayError> {
    let (RecordKind::RunStart { stream, setup, .. } | RecordKind::RunResumed { stream, setup, .. }) =
        &record.what
    else {
        return Ok(None);
    };
    let facts = serde_json::from_str::<SessionFacts>(&text_of(setup, line, stored)?);
    let (Ok(facts), Some(stream)) = (facts, EntropyStream::from_hex(stream)) else {
        return Ok(None);
    };
    Ok(Some(Conversation::new(Arc::new(facts), stream)))
}
