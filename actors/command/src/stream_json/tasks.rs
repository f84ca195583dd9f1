//! Sub-agents as tasks: their beginning, how far they are, and their end.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use ennead_runtime::{
    event::RecordedMessage,
    ids::{AgentId, ToolUseId},
    time::Timestamp,
    tokens::Usage,
};
use serde_json::{Value, json};

use super::frames::Frame;

/// How a task began.
#[derive(Clone, Copy, Debug)]
pub(super) struct TaskOrigin {
    /// Whether the session's own model asked for it.
    pub(super) is_direct: bool,
    /// Whether its call ends before it does.
    pub(super) in_background: bool,
}

/// A sub-agent that was announced.
#[derive(Clone, Debug)]
struct Task {
    call: ToolUseId,
    description: String,
    origin: TaskOrigin,
    is_ended: bool,
    /// When its first message was recorded, and its last.
    times: Option<(Timestamp, Timestamp)>,
    usage: Usage,
    n_calls: u64,
}

impl Task {
    fn usage(&self) -> Value {
        let duration_ms = self.times.map_or(0, |(first, last)| last.millis_since(first));
        json!({
            "total_tokens": self.usage.total(),
            "tool_uses": self.n_calls,
            "duration_ms": duration_ms,
        })
    }
}

/// The sub-agents of a run.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    all: BTreeMap<AgentId, Task>,
    /// The folder that holds the transcripts of sub-agents.
    folder: Option<PathBuf>,
}

impl Tasks {
    /// Sets the transcript of the session. Those of its sub-agents are in the folder next to it.
    pub(super) fn set_transcript(&mut self, transcript: &Path) {
        self.folder = Some(transcript.with_extension("").join("subagents"));
    }

    /// Forgets those that have ended.
    pub(super) fn forget_ended(&mut self) {
        self.all.retain(|_, it| !it.is_ended);
    }

    /// Returns the call that asked for an agent.
    pub(super) fn call_of(&self, agent: &AgentId) -> Option<ToolUseId> {
        self.all.get(agent).map(|it| it.call.clone())
    }

    /// Returns the call whose agent can be ended alone, by the name of the task; the reason in words where there is
    /// none.
    pub(super) fn stoppable(&self, task: &str) -> Result<ToolUseId, String> {
        let found = self.all.iter().find(|(agent, it)| agent.as_str() == task && !it.is_ended);
        match found {
            None => Err(format!("No task found with ID: {task}")),
            Some((_, it)) if it.origin.is_direct => Ok(it.call.clone()),
            Some(_) => Err(format!("the task {task} is of another agent; stop that one")),
        }
    }

    /// Notes that an agent begins, and returns its line.
    pub(super) fn started(
        &mut self,
        frame: &mut Frame,
        agent: &AgentId,
        call: &ToolUseId,
        description: &str,
        origin: TaskOrigin,
    ) -> Value {
        let task = Task {
            call: call.clone(),
            description: description.to_owned(),
            origin,
            is_ended: false,
            times: None,
            usage: Usage::default(),
            n_calls: 0,
        };
        self.all.insert(agent.clone(), task);
        let fields = json!({
            "task_id": agent,
            "tool_use_id": call,
            "description": description,
            "task_type": "local_agent",
        });
        frame.system("task_started", fields)
    }

    /// Notes that a message of an agent was recorded, and returns a line for an answer that asks for tools.
    pub(super) fn progressed(
        &mut self,
        frame: &mut Frame,
        agent: &AgentId,
        message: &RecordedMessage,
    ) -> Option<Value> {
        let task = self.all.get_mut(agent).filter(|it| !it.is_ended)?;
        let first = task.times.map_or(message.at, |it| it.0);
        task.times = Some((first, message.at));
        let answer = message.answer.as_ref()?;
        task.usage = task.usage + answer.usage;
        let calls: Vec<_> = message.message.tool_uses().collect();
        let (_, last_tool, _) = calls.last()?;
        task.n_calls += calls.len() as u64;
        let fields = json!({
            "task_id": agent,
            "tool_use_id": task.call,
            "description": task.description,
            "usage": task.usage(),
            "last_tool_name": last_tool,
        });
        Some(frame.system("task_progress", fields))
    }

    /// Notes that an agent has ended, and returns its line, once.
    pub(super) fn note_end(
        &mut self,
        frame: &mut Frame,
        agent: &AgentId,
        status: &str,
    ) -> Option<Value> {
        let task = self.all.get_mut(agent).filter(|it| !it.is_ended)?;
        task.is_ended = true;
        // The transcript holds its answer, and all that led to it.
        let file = |it: &PathBuf| it.join(format!("agent-{agent}.jsonl")).display().to_string();
        let output = self.folder.as_ref().map(file);
        let fields = json!({
            "task_id": agent,
            "tool_use_id": task.call,
            "status": status,
            "output_file": output.unwrap_or_default(),
            "summary": task.description,
            "usage": task.usage(),
        });
        Some(frame.system("task_notification", fields))
    }

    /// Notes that all agents in the background have ended in this way, and returns the lines of those of which that was
    /// not known.
    pub(super) fn end_background(&mut self, frame: &mut Frame, status: &str) -> Vec<Value> {
        let open = self.all.iter().filter(|(_, it)| !it.is_ended && it.origin.in_background);
        let open: Vec<AgentId> = open.map(|it| it.0.clone()).collect();
        open.iter().filter_map(|it| self.note_end(frame, it, status)).collect()
    }

    /// Notes that the call of agents has ended, and so have these, whatever became of them.
    pub(super) fn call_ended(
        &mut self,
        frame: &mut Frame,
        call: &ToolUseId,
        is_error: bool,
    ) -> Vec<Value> {
        let is_open = |it: &Task| it.call == *call && !it.is_ended && !it.origin.in_background;
        let open: Vec<AgentId> =
            self.all.iter().filter(|it| is_open(it.1)).map(|it| it.0.clone()).collect();
        let status = if is_error { "failed" } else { "completed" };
        open.iter().filter_map(|it| self.note_end(frame, it, status)).collect()
    }
}

/// Returns what a program calls the end of a sub-agent.
pub(super) fn status_of(reason: &str) -> &'static str {
    match reason {
        "no_pending_tools" | "explicit_stop" => "completed",
        "interrupted" => "stopped",
        _ => "failed",
    }
}
