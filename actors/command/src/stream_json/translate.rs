//! Events of a session to lines: an event in, lines out, and nothing waits.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use ennead::{Event, data::MessageKind, permission::HookEvent};
use ennead_runtime::{
    block::{Block, BlockKind},
    event::RecordedMessage,
    ids::{AgentId, EntryId, ToolUseId},
    message::Role,
};
use serde_json::{Value, json};

use super::{
    frames::{Frame, content, merge},
    tasks::{TaskOrigin, Tasks, status_of},
};

/// The events of an answer that belong to it.
const OF_ANSWER: [&str; 6] = [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
];

/// What the program wants to see.
#[derive(Clone, Copy, Debug, Default)]
pub struct EventFilter {
    /// Prompts, once they are recorded.
    pub prompts: bool,
    /// What sub-agents say and think, and not only their calls and results.
    pub agent_text: bool,
    /// The beginnings and ends of hooks.
    pub hooks: bool,
}

/// Turns events into lines.
#[derive(Debug)]
pub(crate) struct Translator {
    frame: Frame,
    shown: EventFilter,
    tasks: Tasks,
    /// Messages that were shown; after a loss on disk they are handed over again.
    seen: BTreeSet<EntryId>,
    /// What the program calls the prompt of the run.
    prompt: Option<String>,
    /// Whether the session began the run by itself.
    is_woken: bool,
    /// Names of hooks under way, by agent, firing and place.
    hooks: BTreeMap<(Option<AgentId>, u32, u32), String>,
}

impl Translator {
    /// Makes a translator that has shown nothing yet.
    pub(crate) fn new(frame: Frame, shown: EventFilter) -> Self {
        let (tasks, seen, hooks) = (Tasks::default(), BTreeSet::new(), BTreeMap::new());
        Self { frame, shown, tasks, seen, prompt: None, is_woken: false, hooks }
    }

    /// Returns the frame, for lines that no event causes.
    pub(crate) fn frame(&mut self) -> &mut Frame {
        &mut self.frame
    }

    /// Notes where the transcript of the session lies.
    pub(crate) fn transcript_lies_at(&mut self, transcript: &Path) {
        self.tasks.set_transcript(transcript);
    }

    /// Returns the call whose sub-agent can be ended alone, by the name of its task.
    ///
    /// # Errors
    ///
    /// Why none can, in words.
    pub(crate) fn stoppable(&self, task: &str) -> Result<ToolUseId, String> {
        self.tasks.stoppable(task)
    }

    /// Continues with the frames of another session. Returns the ends of agents that were at work in the one before.
    pub(crate) fn begin_session(&mut self, frame: Frame) -> Vec<Value> {
        let ends = self.tasks.end_background(&mut self.frame, "stopped");
        *self = Self::new(frame, self.shown);
        ends
    }

    /// Returns the ends of agents in the background of which nothing comes any more.
    pub(crate) fn end_background(&mut self) -> Vec<Value> {
        self.tasks.end_background(&mut self.frame, "failed")
    }

    /// Begins a run, for a prompt of this name in the program.
    pub(crate) fn begin_run(&mut self, prompt: Option<String>) {
        self.prompt = prompt;
        self.is_woken = false;
    }

    /// Shows other things from now on.
    pub(crate) fn show(&mut self, shown: EventFilter) {
        self.shown = shown;
    }

    /// Forgets what only the run under way needs.
    pub(crate) fn end_of_run(&mut self) {
        self.tasks.forget_ended();
        self.seen.clear();
        self.hooks.clear();
    }

    /// Begins a run that the session began by itself.
    pub(crate) fn begin_woken_run(&mut self) {
        self.prompt = None;
        self.is_woken = true;
    }

    /// Whether the prompt of the run is shown to the program that wrote it.
    fn is_shown_again(&self) -> bool {
        self.shown.prompts && !self.is_woken
    }

    /// Returns the lines that an event causes.
    pub(crate) fn event(&mut self, event: &Event) -> Vec<Value> {
        match event {
            Event::ModelStreamed { json, .. } => self.streamed(json).into_iter().collect(),
            Event::MessageRecorded { message } => self.recorded(message, None),
            Event::ModelRetry { .. } => self.frame.retry(event).into_iter().collect(),
            Event::AgentStarted { agent, call, description, in_background } => {
                let asks = TaskOrigin { is_direct: true, in_background: *in_background };
                vec![self.tasks.started(&mut self.frame, agent, call, description, asks)]
            }
            Event::ToolFinished { call, is_error, .. } => {
                self.tasks.call_ended(&mut self.frame, call, *is_error)
            }
            Event::Agent { agent, event } => self.of_agent(agent, event),
            Event::HookMessage { text, .. } => {
                let fields = json!({"content": text.as_ref(), "level": "info"});
                vec![self.frame.system("informational", fields)]
            }
            Event::HookStarted { .. } | Event::HookFinished { .. } => self.hook(None, event),
            _ => Vec::new(),
        }
    }

    fn streamed(&mut self, json: &str) -> Option<Value> {
        let event: Value = serde_json::from_str(json).ok()?;
        let kind = event["type"].as_str()?.to_owned();
        if !OF_ANSWER.contains(&&*kind) {
            return None;
        }
        let mut line = self.frame.stream_event(event);
        if let Some(prompt) = &self.prompt {
            line["user_message_uuid"] = prompt.as_str().into();
        }
        Some(line)
    }

    fn of_agent(&mut self, agent: &AgentId, event: &Event) -> Vec<Value> {
        match event {
            Event::MessageRecorded { message } => {
                let parent = self.tasks.call_of(agent);
                let is_new = !self.seen.contains(&message.message.id);
                let mut lines = self.recorded(message, parent.as_ref());
                if is_new {
                    lines.extend(self.tasks.progressed(&mut self.frame, agent, message));
                }
                lines
            }
            Event::RunFinished { reason, .. } => self.task_ended(agent, status_of(reason)),
            Event::RunLost { .. } => self.task_ended(agent, "failed"),
            Event::AgentStarted { agent, call, description, in_background } => {
                let asks = TaskOrigin { is_direct: false, in_background: *in_background };
                vec![self.tasks.started(&mut self.frame, agent, call, description, asks)]
            }
            Event::Agent { .. } => self.event(event),
            Event::HookStarted { .. } | Event::HookFinished { .. } => self.hook(Some(agent), event),
            _ => Vec::new(),
        }
    }

    fn recorded(&mut self, message: &RecordedMessage, parent: Option<&ToolUseId>) -> Vec<Value> {
        if !self.seen.insert(message.message.id.clone()) {
            return Vec::new();
        }
        let parent = parent.map(|it| it.as_str().to_owned());
        let parent = parent.as_deref();
        if let Some(boundary) = &message.boundary {
            let metadata = json!({
                "trigger": if boundary.trigger == "manual" { "manual" } else { "auto" },
                "pre_tokens": boundary.pre_tokens,
            });
            return match parent {
                None => vec![
                    self.frame.system("compact_boundary", json!({"compact_metadata": metadata})),
                ],
                Some(_) => Vec::new(),
            };
        }
        match (message.message.role, message.message.kind) {
            (Role::Assistant, _) => self.answer(message, parent),
            (Role::User, MessageKind::ToolResults) => {
                let of_block =
                    |block: &Block| self.frame.user(message, json!([content(block)]), parent);
                message.message.blocks.iter().map(of_block).collect()
            }
            (Role::User, MessageKind::Prompt) if parent.is_none() && self.is_shown_again() => {
                let mut line = self.frame.user(message, contents(message), None);
                line["isReplay"] = true.into();
                if let Some(prompt) = &self.prompt {
                    line["uuid"] = prompt.as_str().into();
                }
                vec![line]
            }
            // No program has written it.
            (Role::User, MessageKind::Prompt) if parent.is_none() && self.is_woken => {
                let mut line = self.frame.user(message, contents(message), None);
                line["origin"] = json!({"kind": "task-notification"});
                line["isSynthetic"] = true.into();
                vec![line]
            }
            (Role::User, MessageKind::Meta) if parent.is_none() && is_interruption(message) => {
                vec![self.frame.user(message, contents(message), None)]
            }
            _ => Vec::new(),
        }
    }

    /// One line per block. All have the name of the message's line in the transcript, so that whichever of
    /// them a program goes back to is there.
    fn answer(&mut self, message: &RecordedMessage, parent: Option<&str>) -> Vec<Value> {
        let is_shown =
            |it: &&Block| parent.is_none() || self.shown.agent_text || it.as_tool_use().is_some();
        let blocks: Vec<&Block> = message.message.blocks.iter().filter(is_shown).collect();
        let n_blocks = blocks.len();
        let mut lines = Vec::with_capacity(n_blocks);
        for (i, block) in blocks.into_iter().enumerate() {
            let is_last = i + 1 == n_blocks;
            let mut line = self.frame.assistant(message, block, is_last, parent);
            if let (Some(prompt), None) = (&self.prompt, parent) {
                line["user_message_uuid"] = prompt.as_str().into();
            }
            lines.push(line);
        }
        lines
    }

    fn task_ended(&mut self, agent: &AgentId, status: &str) -> Vec<Value> {
        self.tasks.note_end(&mut self.frame, agent, status).into_iter().collect()
    }

    /// The line of a hook that begins or ends.
    fn hook(&mut self, agent: Option<&AgentId>, event: &Event) -> Vec<Value> {
        let (Event::HookStarted { hook, firing, index, .. }
        | Event::HookFinished { hook, firing, index, .. }) = event
        else {
            return Vec::new();
        };
        if !self.shown.hooks && *hook != HookEvent::SessionStart {
            return Vec::new();
        }
        let key = (agent.cloned(), *firing, *index);
        let id = match event {
            Event::HookStarted { .. } => {
                let id = self.frame.uuid();
                self.hooks.insert(key, id.clone());
                id
            }
            _ => self.hooks.remove(&key).unwrap_or_else(|| self.frame.uuid()),
        };
        let mut fields =
            json!({"hook_id": id, "hook_name": hook.name(), "hook_event": hook.name()});
        let Event::HookFinished { effect, exit, stdout, stderr, .. } = event else {
            return vec![self.frame.system("hook_started", fields)];
        };
        let output = if stdout.is_empty() { stderr } else { stdout };
        let outcome = match (&**effect, exit) {
            ("error", None) => "cancelled",
            ("error", _) => "error",
            _ => "success",
        };
        merge(
            &mut fields,
            json!({"output": output, "stdout": stdout, "stderr": stderr, "exit_code": exit, "outcome": outcome}),
        );
        vec![self.frame.system("hook_response", fields)]
    }
}

fn contents(message: &RecordedMessage) -> Value {
    match &message.message.blocks[..] {
        [only] => match only.kind() {
            BlockKind::Text(text) => text.as_ref().into(),
            _ => json!([content(only)]),
        },
        blocks => blocks.iter().map(content).collect(),
    }
}

fn is_interruption(message: &RecordedMessage) -> bool {
    message.message.text().starts_with("[Request interrupted")
}
