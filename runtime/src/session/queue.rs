//! Admission: from the queue of prompts to the first lines of a run. Its first turn is not started here: `begin` leaves the
//! run in `Phase::Next`, and `start_next_turn` in `turns` starts the turn when the input under way has been handled.

use std::{mem, sync::Arc, time::Duration};

use super::{
    ClosePhase, Machine, Measuring, Now, Readiness, SessionEffect, SpawnEffect,
    mode::mode_line,
    names::{PromptId, RunOrigin},
    recorder::{PendingLines, WriteOrigin},
    run::{ActiveRun, record},
    servers::alert,
};
use crate::{
    block::Block,
    event::Event,
    run::{
        MESSAGE_ORIGIN, Run, RunRequest,
        outcome::{RunError, RunOutcome},
    },
    saturating::Saturating as _,
    step1_settings_resolution::{MergeOrder, Merged},
    time::Timestamp,
    transcript::entry::{ConversationLine, Line, RecordKind, Stored, StoredText, stored::clip},
};

/// Characters of a prompt that fits every window of at least 4,096 tokens: three quarters of one.
const FITS_ALWAYS: u64 = 12_288;

/// Bytes, in JSON, of what a summary that was asked for is to keep in mind; a record holds it whole.
const MAX_FOCUS_BYTES: usize = 1_000;

/// A prompt that waits.
#[derive(Debug)]
pub(super) struct Queued {
    /// What its run answers.
    pub(super) origin: RunOrigin,
    pub(super) request: Box<RunRequest>,
    /// When it was accepted.
    pub(super) asked: Timestamp,
}

impl Machine {
    /// Takes a prompt into the queue.
    pub(super) fn prompt(&mut self, now: Now, prompt: PromptId, request: Box<RunRequest>) {
        if self.closing != ClosePhase::No {
            return self.reply(prompt.into(), Err(RunError::Ended));
        }
        self.queue.push_back(Queued { origin: prompt.into(), request, asked: now.at });
        self.next_run(now);
    }

    pub(super) fn reply(&mut self, origin: RunOrigin, result: Result<RunOutcome, RunError>) {
        self.effects.push(SessionEffect::Reply { origin, result: Box::new(result) });
    }

    /// Begins the next run of the queue, when nothing is under way.
    pub(super) fn next_run(&mut self, now: Now) {
        if self.readiness == Readiness::Failed {
            for Queued { origin, .. } in mem::take(&mut self.queue) {
                self.reply(origin, Err(RunError::Failed("the transcript is not open".into())));
            }
        }
        while self.active.is_none()
            && self.closing == ClosePhase::No
            && self.readiness == Readiness::Ready
            && self.measuring != Measuring::Asked
        {
            let Some(queued) = self.queue.pop_front() else { break };
            if self.is_measured_first(&queued.request) {
                self.queue.push_front(queued);
                break;
            }
            self.begin(now, queued);
        }
        self.wake(now);
    }

    /// Whether a prompt waits until the settings are known, because it may be more than the window
    /// holds. One that no request can hold is refused before a line is written.
    fn is_measured_first(&mut self, request: &RunRequest) -> bool {
        let is_known = self.conversation.memory.resolved.is_some();
        if is_known || self.measuring != Measuring::Unknown || !may_be_too_long(request) {
            return false;
        }
        if !self.conversation.facts.reads_settings {
            self.measuring = Measuring::Known;
            self.conversation.memory.merged = Some(Arc::new(self.merge_order().merge()));
            return false;
        }
        self.measuring = Measuring::Asked;
        self.effects.push(SpawnEffect::ReadSettings.into());
        true
    }

    /// Takes the settings, which were read. Where they could not be, the first turn reports it.
    pub(super) fn settings_read(&mut self, now: Now, merged: Option<Arc<Merged>>) {
        self.measuring = Measuring::Known;
        self.conversation.memory.merged = merged.or(self.conversation.memory.merged.take());
        self.next_run(now);
    }

    /// Returns the layers that are not files, to be merged with those of files.
    pub fn merge_order(&self) -> MergeOrder {
        let layers = self.conversation.facts.layers.clone();
        MergeOrder::new(&self.conversation.memory.catalogue).with(layers)
    }

    pub(super) fn begin(&mut self, now: Now, queued: Queued) {
        let Queued { origin, request, asked } = queued;
        if let Some(outcome) = request.run.as_ref().and_then(|it| self.outcomes.get(it)) {
            let outcome = outcome.clone();
            return self.reply(origin, Ok(outcome));
        }
        let content = request.blocks();
        let checked = request.check().and_then(|()| self.conversation.check_prompt(&content));
        if let Err(wrong) = checked {
            return self.reply(origin, Err(wrong.into()));
        }
        if !matches!(origin, RunOrigin::Woken) {
            self.hooks.note_prompt();
        }
        self.last_run.advance();
        let made = || self.conversation.stream.uuid(now.at, "run", self.last_run.0).into();
        let id = request.run.unwrap_or_else(made);
        let mut message = self.conversation.prompt(now.at, id.as_str(), content);
        if let Some(name) = request.message {
            message.id = name;
        }
        let message = Arc::new(message);
        let mut stored = Vec::new();
        let system = request.system.filter(|it| !it.trim().is_empty());
        let mut compacts = request.compacts;
        compacts.iter_mut().for_each(|it| clip(it, MAX_FOCUS_BYTES));
        let is_first = !mem::replace(&mut self.conversation.has_begun, true);
        let start = RecordKind::RunStart {
            prompt: message.id.clone(),
            origin: request.origin.into(),
            stream: self.conversation.stream.to_hex(),
            first: is_first,
            setup: self.setup_text(&mut stored),
            system: system.as_deref().map(|it| Stored::stored_externally(it, &mut stored)),
            compacts: compacts.clone(),
            sender: request.sender.clone(),
            asked: (asked != now.at).then_some(asked),
            time_limit_ms: request.time_limit.map(as_millis),
        };
        let last = self.conversation.last_entry.clone();
        let line = ConversationLine::of(now.at, last, Arc::clone(&message));
        let mut lines = vec![Line::Conversation(Box::new(line)), record(now.at, &id, start)];
        if let Some(mode) = self.conversation.memory.overrides.mode.filter(|_| is_first) {
            lines.extend(mode_line(now.at, mode).lines);
        }
        let alerts = mem::take(&mut self.alerts);
        lines.extend(alerts.iter().map(|what| alert(now.at, &id, what)));
        let started = Event::RunStarted { run: id.clone(), woken: origin == RunOrigin::Woken };
        self.effects.push(SessionEffect::Publish(started));
        let notices = alerts.into_iter().chain(mem::take(&mut self.notices));
        self.effects.extend(notices.map(|what| SessionEffect::Publish(Event::Alert { what })));
        let run = Run::new(id, message.id.clone()).with_system(system.map(Into::into));
        let run = run.with_compaction(compacts.map(Into::into)).with_origin(request.origin);
        let mut active = ActiveRun::new(run, origin, now.elapsed, self.last_run);
        active.sender = request.sender;
        active.time_limit = request.time_limit;
        active.messages.push(Arc::clone(&message));
        self.active = Some(Box::new(active));
        self.conversation.begin_run(message);
        let lines = PendingLines { lines, stored, title: None, sync: true };
        match origin {
            // The one that sent it is to know that it is safe.
            RunOrigin::Prompt(prompt) if request.origin == MESSAGE_ORIGIN => {
                self.recorder.append(WriteOrigin::Begun(prompt), lines, &mut self.effects);
            }
            // The first turn has more to write at once.
            _ => self.recorder.hold(lines),
        }
        self.agents.begin_run();
        self.limit_time();
    }

    /// Returns what was fixed when the session was opened. A long text is stored once and named by digest. A short one
    /// is in each run's record, since it is stored nowhere else; it is made anew each time, since 3 KB are a lot to
    /// keep for a session that waits.
    pub(super) fn setup_text(&mut self, stored: &mut Vec<StoredText>) -> Stored {
        if let Some(digest) = self.conversation.setup {
            return Stored::At(digest);
        }
        let setup = Stored::in_record(&self.conversation.facts.to_json(), stored);
        if let Stored::At(digest) = setup {
            self.conversation.setup = Some(digest);
        }
        setup
    }
}

fn as_millis(limit: Duration) -> u64 {
    u64::saturating(limit.as_millis())
}

fn may_be_too_long(request: &RunRequest) -> bool {
    FITS_ALWAYS < request.blocks().iter().map(Block::chars).sum()
}
