//! Commands in the background, read off their records and the message that reported them.

use super::{
    line::{LineRef, SealedLine},
    window::record,
};
use crate::{
    ids::RunId,
    message::{Message, MessageKind},
    ports::shells::{EndedShell, ShellState, ShellStatus},
    transcript::entry::RecordKind,
};

/// In front of the file that has all of the output.
const OUTPUT: &str = " all of its output is in ";

/// Returns the command that a record reports as going on.
pub(super) fn kept_shell(what: &RecordKind) -> Option<ShellStatus> {
    status(what).filter(|it| it.state == ShellState::Running)
}

/// Returns the commands that were reported as ended in front of a turn, by the lines from a place on.
pub(super) fn ended_shells(lines: &[SealedLine<'_>], from: usize, run: &RunId) -> Vec<EndedShell> {
    let rest = lines.get(from..).unwrap_or_default();
    let ended = |line: &SealedLine<'_>| {
        let record = record(line).filter(|it| it.run.as_ref() == Some(run) && it.turn == 0)?;
        status(&record.what).filter(|it| it.state != ShellState::Running)
    };
    let mut all: Vec<ShellStatus> = rest.iter().map_while(ended).collect();
    let message = rest.get(all.len()).and_then(reported).filter(|_| !all.is_empty());
    let outputs = message.map(outputs).unwrap_or_default();
    for (status, output) in all.iter_mut().zip(&outputs) {
        status.output = output.as_str().into();
    }
    let known = |(n, status)| EndedShell { status, is_known: outputs.len() <= n };
    all.into_iter().enumerate().map(known).collect()
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
    let of_command = |line: &str| {
        let output = line.split_once(OUTPUT).map_or("", |it| it.1);
        line.contains("The background command ")
            .then(|| output.strip_suffix('.').unwrap_or(output).to_owned())
    };
    text.lines().filter_map(of_command).collect()
}

fn status(what: &RecordKind) -> Option<ShellStatus> {
    let RecordKind::Shell { shell, command, state, exit_code, .. } = what else { return None };
    Some(ShellStatus {
        shell: shell.clone(),
        command: command.as_str().into(),
        state: ShellState::read(state, *exit_code)?,
        n_bytes: 0,
        output: "".into(),
    })
}
