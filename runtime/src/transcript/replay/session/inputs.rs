//! Inputs of a session's machine, and the lines that it makes of them.

use std::time::Duration;

use super::Session;
use crate::{
    digest::Digest,
    session::{Now, SessionEffect, SessionInput, SpawnEffect, TreeQuestion},
    time::Timestamp,
    transcript::{
        entry::{Line, Record, RecordKind},
        replay::{
            ReplayError,
            line::{LineRef, SealedLine, excerpt},
        },
    },
};

impl Session {
    /// Passes an input to the machine and keeps what it wants.
    pub(super) fn feed(&mut self, at: Timestamp, input: SessionInput) {
        let Some(decisions) = &mut self.decisions else { return };
        let n_of_turn = match &input {
            SessionInput::Append { append, .. } => append.lines.len(),
            _ => 0,
        };
        let now = Now { at, elapsed: Duration::from_millis(at.0) };
        let mut written = Vec::new();
        for effect in self.machine.handle(now, input) {
            match effect {
                SessionEffect::Spawn(SpawnEffect::StartTurn { key, setup, .. }) => {
                    decisions.turn = Some((key, setup))
                }
                SessionEffect::Spawn(SpawnEffect::WatchTime { run, deadline }) => {
                    decisions.limit = Some((run, deadline));
                }
                SessionEffect::UnwatchTime => decisions.limit = None,
                SessionEffect::Spawn(SpawnEffect::ReadSettings) => decisions.wants_settings = true,
                SessionEffect::AskTop(TreeQuestion::Admit { agent, .. }) => {
                    decisions.asks_for = Some(agent);
                }
                SessionEffect::Write(batch) => {
                    // Those of the turn were held against the file as the turn made them.
                    let n_own = batch.lines.len() - n_of_turn;
                    decisions.made.extend(batch.lines.iter().take(n_own).cloned());
                    match batch.lines.last() {
                        Some(Line::Harness(last)) if is_run_end(last) => {
                            decisions.unanswered = Some(batch.ticket);
                        }
                        _ => written.push(batch.ticket),
                    }
                }
                _ => {}
            }
        }
        for ticket in written {
            self.feed(at, SessionInput::Written { ticket, result: Ok(Digest::default()) });
        }
    }

    /// Compares the next line that the machine made with one of the file. What the machine was given besides its inputs
    /// is taken from the file.
    pub(super) fn compare(&mut self, line: &SealedLine<'_>) -> Result<(), ReplayError> {
        let Some(decisions) = &mut self.decisions else { return Ok(()) };
        let Some(mut made) = decisions.made.pop_front() else {
            return Err(unmade(line));
        };
        if let (Line::Harness(made), LineRef::Harness(found)) = (&mut made, line.line()) {
            take_over_facts(&mut made.what, &found.what);
        }
        match line.difference(&made, self.facts()) {
            None => Ok(()),
            Some((expected, found)) => {
                Err(ReplayError::Decided { line: line.number, expected, found })
            }
        }
    }
}

/// Puts in what the machine was given besides its inputs, or what its writer added.
fn take_over_facts(made: &mut RecordKind, found: &RecordKind) {
    match (made, found) {
        (
            RecordKind::RunStart { origin, stream, setup, system, .. },
            RecordKind::RunStart {
                origin: origin_found,
                stream: stream_found,
                setup: setup_found,
                system: system_found,
                ..
            },
        ) => {
            origin.clone_from(origin_found);
            stream.clone_from(stream_found);
            setup.clone_from(setup_found);
            system.clone_from(system_found);
        }
        (RecordKind::RunEnd { head, .. }, RecordKind::RunEnd { head: found, .. }) => *head = *found,
        (RecordKind::TurnEnd { in_doubt, .. }, RecordKind::TurnEnd { in_doubt: found, .. }) => {
            *in_doubt = *found
        }
        _ => {}
    }
}

/// Makes the error of a line that the machine does not make.
pub(super) fn unmade(line: &SealedLine<'_>) -> ReplayError {
    let (expected, found) = (String::new(), excerpt(&line.line()));
    ReplayError::Decided { line: line.number, expected, found }
}

fn is_run_end(record: &Record) -> bool {
    matches!(record.what, RecordKind::RunEnd { .. })
}
