//! What is in the background, commands and sub-agents: on record when it begins, and reported to the
//! model when it has ended.
//!
//! The reports are lines of the conversation before the turn that begins, so a replay reads them there. A
//! session at rest begins a run when an agent has ended; its prompt is the report.

use std::{mem, sync::Arc};

use super::{
    ClosePhase, Machine, Now, Readiness, SessionEffect,
    heard_hooks::HOOK_ASKS,
    names::RunOrigin,
    queue::Queued,
    recorder::{PendingLines, WriteOrigin},
    run::record,
};
use crate::{
    ids::{AgentId, EntryId, ToolUseId},
    message::{Message, Role},
    output::answer_in,
    ports::{
        agents::{
            BackgroundAgent, BackgroundState, EndedAgent, fitting, notification, shown_words,
        },
        shells::{EndedShell, ShellStatus, ended_message},
    },
    run::{
        RunEnd, RunRequest, WOKEN_ORIGIN,
        outcome::{RunError, RunOutcome},
    },
    transcript::{
        entry::{BackgroundRecord, ConversationLine, Line, Record, RecordKind, ShellRecord},
        load::BackgroundTasks,
    },
    turn::effect::HistoryUpdate,
};

/// What has ended in the background since a turn began.
#[derive(Debug, Default)]
pub(super) struct EndedTasks {
    shells: Vec<EndedShell>,
    agents: Vec<EndedAgent>,
    /// Whether an agent has ended while the session is open, so that a session at rest goes on.
    wakes: bool,
}

impl EndedTasks {
    /// Takes in commands that have ended.
    pub(super) fn add_shells(&mut self, ended: Vec<EndedShell>) {
        self.shells.extend(ended);
    }

    /// Takes in agents that have ended.
    pub(super) fn add_agents(&mut self, ended: Vec<EndedAgent>) {
        self.agents.extend(ended);
    }

    /// Notes that the model is shown how an agent ended, which may have gone on since.
    fn end_is_known(&mut self, shown: &BackgroundAgent) {
        let shown = self.agents.iter_mut().filter(|it| it.agent == *shown);
        shown.for_each(|it| it.is_known = true);
    }

    /// Forgets an end that a result has shown to the model, with the record of it.
    fn is_on_record(&mut self, agent: &AgentId, call: &ToolUseId) {
        self.agents.retain(|it| (&it.agent.agent, &it.agent.call) != (agent, call));
    }

    /// Takes out all: the unknown ones first.
    fn take(&mut self) -> (Vec<EndedShell>, Vec<EndedAgent>) {
        self.wakes = false;
        let (mut shells, mut agents) = (mem::take(&mut self.shells), mem::take(&mut self.agents));
        shells.sort_by_key(|it| it.is_known);
        agents.sort_by_key(|it| it.is_known);
        (shells, agents)
    }
}

impl Machine {
    /// Records a command that goes on in the background.
    pub(super) fn shell_kept(&mut self, now: Now, status: &ShellStatus) {
        self.task_kept(now, status.record());
    }

    /// Records a sub-agent that works in the background.
    pub(super) fn agent_kept(&mut self, now: Now, agent: &BackgroundAgent) {
        self.task_kept(now, agent.record());
    }

    /// It is written at once, so that it is on record should the process be killed.
    fn task_kept(&mut self, now: Now, what: RecordKind) {
        let run = self.active.as_ref().map(|it| it.run.id.clone());
        let lines = vec![Line::Harness(Box::new(Record::new(now.at, run, 0, what)))];
        let lines = PendingLines { lines, stored: Vec::new(), title: None, sync: false };
        self.recorder.append(WriteOrigin::Unawaited, lines, &mut self.effects);
    }

    /// Takes over the end of an agent in the background.
    pub(super) fn background_agent_ended(
        &mut self,
        agent: BackgroundAgent,
        result: &Result<RunOutcome, RunError>,
    ) {
        let (status, words) = self.end_of_agent(result);
        let ended = EndedAgent::new(agent, status, &words);
        self.effects.push(SessionEffect::KeepEnd(Box::new(ended.clone())));
        self.ended.agents.push(ended);
        self.ended.wakes = true;
    }

    /// Takes over that lines of a turn report ends to the model, so that nothing else does.
    pub(super) fn ends_shown(&mut self, lines: &[Line]) {
        for record in lines.iter().filter_map(Line::record) {
            if let RecordKind::BackgroundAgent(BackgroundRecord { agent, call, state, .. }) =
                &record.what
                && *state != BackgroundState::Running.code()
            {
                self.ended.is_on_record(agent, call);
            }
        }
    }

    /// How an agent ended, and its last words, as a channel delivers them.
    fn end_of_agent(&self, result: &Result<RunOutcome, RunError>) -> (BackgroundState, String) {
        match result {
            Ok(outcome) => {
                let text = self.delivered(&outcome.text);
                let words = if text.is_empty() { outcome.error.clone() } else { Some(text) };
                (BackgroundState::Ended(outcome.end.agent_status()), words.unwrap_or_default())
            }
            Err(RunError::Ended) => {
                (BackgroundState::Ended(RunEnd::Interrupted.agent_status()), String::new())
            }
            Err(error) => (BackgroundState::Ended(RunEnd::Error.agent_status()), error.to_string()),
        }
    }

    /// Returns a text as a channel delivers it.
    fn delivered(&self, text: &str) -> String {
        let settings = self.conversation.memory.resolved.as_ref().map(|it| &it.settings);
        settings.map_or_else(|| text.to_owned(), |it| answer_in(text, &it.output))
    }

    /// Returns what the session said last, made safe for its parent; empty when it has said nothing.
    pub fn last_words(&self) -> String {
        let said = self.conversation.history.iter().rev().filter(|it| it.role == Role::Assistant);
        let mut said = said.map(|it| it.text()).filter(|it| !it.trim().is_empty());
        said.next().map(|it| shown_words(&self.delivered(&it))).unwrap_or_default()
    }

    /// Takes over what an earlier process left running. It ended with that process.
    pub(super) fn resume_background(&mut self, tasks: &BackgroundTasks, agents: Vec<EndedAgent>) {
        let shells = tasks.shells.values().cloned();
        let shells = shells.map(|status| EndedShell { status, is_known: false });
        self.ended.add_shells(shells.collect());
        self.ended.add_agents(agents);
    }

    /// Records what the model has not learned, for the process that resumes the session.
    pub(super) fn record_ended_tasks(&mut self, now: Now) {
        let (shells, agents) = self.ended.take();
        let shells = shells.iter().map(|it| (it.status.record(), it.is_known));
        let agents = agents.iter().map(|it| (it.agent.record(), it.is_known));
        let lines: Vec<Line> = shells
            .chain(agents)
            .map(|(mut what, is_known)| {
                if let RecordKind::Shell(ShellRecord { is_unreported, .. })
                | RecordKind::BackgroundAgent(BackgroundRecord { is_unreported, .. }) = &mut what
                {
                    *is_unreported = !is_known;
                }
                Line::Harness(Box::new(Record::new(now.at, None, 0, what)))
            })
            .collect();
        if !lines.is_empty() {
            let lines = PendingLines { lines, stored: Vec::new(), title: None, sync: false };
            self.recorder.append(WriteOrigin::Unawaited, lines, &mut self.effects);
        }
    }

    /// Reports what has ended, before the turn that begins.
    pub(super) fn report_ended_tasks(&mut self, now: Now) {
        let Some(active) = &self.active else { return };
        let (shells, agents) = self.ended.take();
        let run = &active.run.id;
        let records = shells.iter().map(|it| it.status.record());
        let records = records.chain(agents.iter().map(|it| it.agent.record()));
        let mut lines: Vec<Line> = records.map(|it| record(now.at, run, it)).collect();
        let stream = self.conversation.stream.child(run.as_str());
        let number = u64::from(active.run.turns);
        let unknown: Vec<_> =
            shells.into_iter().filter(|it| !it.is_known).map(|it| it.status).collect();
        let mut messages = Vec::new();
        if !unknown.is_empty() {
            messages.push(ended_message(stream.entry_id(now.at, "shells", number), &unknown));
        }
        for it in agents.iter().filter(|it| !it.is_known) {
            let stream = stream.child(it.agent.agent.as_str());
            messages.push(it.message(stream.entry_id(now.at, "agent", number)));
        }
        messages.extend(self.take_heard_hooks());
        if lines.is_empty() && messages.is_empty() {
            return;
        }
        for message in messages {
            lines.push(self.reported(now, Arc::new(message)));
        }
        // The turn has more to write at once.
        self.recorder.hold(PendingLines { lines, stored: Vec::new(), title: None, sync: false });
    }

    pub(super) fn reported(&mut self, now: Now, message: Arc<Message>) -> Line {
        let last: Option<EntryId> = self.conversation.last_entry.clone();
        let line = ConversationLine::of(now.at, last, Arc::clone(&message));
        if let Some(active) = &mut self.active {
            active.remember(&message);
        }
        self.conversation.apply(HistoryUpdate::Message(message));
        Line::Conversation(Box::new(line))
    }

    /// Has a session at rest go on when an agent has ended, or a hook asks for it. No prompt asked for that run: its outcome
    /// is kept under its name.
    pub(super) fn wake(&mut self, now: Now) {
        let is_at_rest = self.active.is_none()
            && self.queue.is_empty()
            && self.closing == ClosePhase::No
            && self.readiness == Readiness::Ready
            // It would end at once. The next prompt learns of them.
            && self.cost_limit().is_none();
        let (has_agents, is_asked) = (self.ended.wakes, self.hooks.asks());
        if !is_at_rest || !(has_agents || is_asked) {
            return;
        }
        self.ended.wakes = false;
        let unknown = |it: &&EndedAgent| !it.is_known;
        let unknown: Vec<_> = self.ended.agents.iter().filter(unknown).cloned().collect();
        if unknown.is_empty() && !is_asked {
            return;
        }
        // What does not fit into the prompt is reported after it, where it is shaped as anything else, as is what hooks
        // add.
        let shown = fitting(&unknown);
        let text = if shown.is_empty() { HOOK_ASKS.to_owned() } else { notification(shown) };
        let request = RunRequest::new(text).origin(WOKEN_ORIGIN);
        let origin = RunOrigin::Woken;
        if is_asked {
            self.hooks.count_woken();
        }
        self.begin(now, Queued { origin, request: Box::new(request), asked: now.at });
        if self.active.is_some() {
            // The prompt shows them. They are on record with it.
            shown.iter().for_each(|it| self.ended.end_is_known(&it.agent));
        }
    }

    /// Has the session end once its agents in the background have.
    pub(super) fn close_if_over(&mut self, now: Now) {
        let is_over = self.active.is_none() && !self.agents.is_any_in_background();
        if self.closing == ClosePhase::Asked && is_over {
            self.close_transcript(now);
        }
    }
}
