//! What was in the background, read off its records and the messages that reported it.

use super::{
    line::{LineRef, SealedLine},
    window::record,
};
use crate::{
    ids::RunId,
    message::{Message, MessageKind},
    ports::{
        agents::{BackgroundAgent, BackgroundState, EndedAgent},
        shells::{EndedShell, ShellState, ShellStatus},
    },
    session::SessionInput,
    step3_context_assembly::in_reminder,
    transcript::entry::{BackgroundRecord, RecordKind, ShellRecord},
};

/// In front of the file that has all of the output of a command.
const OUTPUT: &str = " all of its output is in ";

/// Something in the background.
enum Task {
    Shell(ShellStatus),
    Agent(BackgroundAgent),
}

impl Task {
    fn read(what: &RecordKind) -> Option<Self> {
        match what {
            RecordKind::Shell(ShellRecord { shell, command, state, exit_code, .. }) => {
                Some(Self::Shell(ShellStatus {
                    shell: shell.clone(),
                    command: command.as_str().into(),
                    state: ShellState::read(state, *exit_code)?,
                    n_bytes: 0,
                    output: "".into(),
                }))
            }
            RecordKind::BackgroundAgent(BackgroundRecord {
                agent,
                call,
                description,
                state,
                ..
            }) => Some(Self::Agent(BackgroundAgent {
                agent: agent.clone(),
                call: call.clone(),
                description: description.as_str().into(),
                state: BackgroundState::read(state)?,
            })),
            _ => None,
        }
    }

    fn is_running(&self) -> bool {
        match self {
            Self::Shell(status) => status.state == ShellState::Running,
            Self::Agent(agent) => agent.state == BackgroundState::Running,
        }
    }
}

/// Returns the agent that a record reports as ended.
pub(super) fn ended_agent(what: &RecordKind) -> Option<BackgroundAgent> {
    match Task::read(what).filter(|it| !it.is_running())? {
        Task::Agent(agent) => Some(agent),
        Task::Shell(_) => None,
    }
}

/// Returns what a record reports as going on.
pub(super) fn kept(what: &RecordKind) -> Option<SessionInput> {
    Some(match Task::read(what).filter(Task::is_running)? {
        Task::Shell(status) => SessionInput::ShellKept(Box::new(status)),
        Task::Agent(agent) => SessionInput::AgentKept(Box::new(agent)),
    })
}

/// Returns what was reported as ended in front of a turn, by the lines from a place on.
pub(super) fn ended(lines: &[SealedLine<'_>], from: usize, run: &RunId) -> Vec<SessionInput> {
    // What else a run begins with.
    let is_other = |line: &&SealedLine<'_>| {
        let what = record(line).filter(|it| it.turn == 0).map(|it| &it.what);
        matches!(what, Some(RecordKind::Alert { .. } | RecordKind::Mode(_)))
    };
    let rest = lines.get(from..).unwrap_or_default();
    let n_others = rest.iter().take_while(is_other).count();
    let rest = rest.get(n_others..).unwrap_or_default();
    let ended = |line: &SealedLine<'_>| {
        let record = record(line).filter(|it| it.run.as_ref() == Some(run) && it.turn == 0)?;
        Task::read(&record.what).filter(|it| !it.is_running())
    };
    let (mut shells, mut agents, mut n_records) = (Vec::new(), Vec::new(), 0);
    for task in rest.iter().map_while(ended) {
        n_records += 1;
        match task {
            Task::Shell(status) => shells.push(status),
            Task::Agent(agent) => agents.push(agent),
        }
    }
    let mut messages = rest.get(n_records..).unwrap_or_default().iter().map_while(reported);
    let mut next = messages.next();
    let outputs = next.filter(|_| !shells.is_empty()).map(outputs).unwrap_or_default();
    if !outputs.is_empty() {
        next = messages.next();
    }
    let mut inputs = Vec::new();
    if !shells.is_empty() {
        let shells = shells.into_iter().enumerate().map(|(n, mut status)| {
            if let Some(output) = outputs.get(n) {
                status.output = output.as_str().into();
            }
            EndedShell { status, is_known: outputs.len() <= n }
        });
        inputs.push(SessionInput::ShellsEnded(shells.collect()));
    }
    if !agents.is_empty() {
        let agents = agents.into_iter().map(|agent| {
            let report = next.and_then(|it| EndedAgent::reported(&agent.agent, it));
            if report.is_some() {
                next = messages.next();
            }
            EndedAgent { agent, is_known: report.is_none(), report: report.unwrap_or_default() }
        });
        inputs.push(SessionInput::AgentsEnded(agents.collect()));
    }
    inputs
}

fn reported<'a>(line: &'a SealedLine<'_>) -> Option<&'a Message> {
    match line.line() {
        LineRef::Conversation(conversation) if conversation.message.kind == MessageKind::Meta => {
            Some(&conversation.message)
        }
        _ => None,
    }
}

/// The files that a message names, one for each command; empty where it names none.
fn outputs(message: &Message) -> Vec<String> {
    let text = message.text();
    if !in_reminder(&text).is_some_and(|it| it.starts_with("The background command ")) {
        return Vec::new();
    }
    let of_command = |line: &str| {
        let output = line.split_once(OUTPUT).map_or("", |it| it.1);
        line.contains("The background command ")
            .then(|| output.strip_suffix('.').unwrap_or(output).to_owned())
    };
    text.lines().filter_map(of_command).collect()
}
