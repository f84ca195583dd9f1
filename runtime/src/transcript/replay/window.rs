//! The lines of one turn, and where those begin that closed it from outside.

use std::collections::BTreeMap;

use super::{
    ReplayError,
    background::ended_agent,
    line::{LineRef, SealedLine, excerpt},
};
use crate::{
    block::Block,
    entropy::EntropyStream,
    ids::ToolUseId,
    message::MessageKind,
    run::{Run, RunEnd, conversation::Conversation},
    step::Step,
    time::Timestamp,
    tool::{ToolErrorKind, ToolNote, ToolOutcome},
    transcript::entry::{ConversationLine, Line, ModeChange, Record, RecordKind, SidechainHead},
    turn::{DenialReason, OpenTurn, close},
};

/// The lines of one turn.
pub(super) struct TurnLines<'a> {
    pub(super) turn: u32,
    /// Its first line, by its place among all.
    pub(super) first: usize,
    pub(super) lines: Vec<&'a SealedLine<'a>>,
    /// The line after the last of them, by its place among all.
    pub(super) end: usize,
}

impl<'a> TurnLines<'a> {
    /// Returns the turn that begins with the record at place `first`.
    pub(super) fn at(all: &'a [SealedLine<'a>], first: usize, record: &Record) -> Self {
        let mut lines = Vec::new();
        let mut done = None;
        let mut end = first;
        for (place, line) in all.iter().enumerate().skip(first) {
            match line.line() {
                LineRef::Conversation(conversation_line)
                    if conversation_line.message.kind == MessageKind::Prompt =>
                {
                    break;
                }
                LineRef::Conversation(_) => lines.push(line),
                LineRef::Harness(other) => match &other.what {
                    RecordKind::RunStart { .. }
                    | RecordKind::RunResumed { .. }
                    | RecordKind::RunEnd { .. } => break,
                    _ if other.turn == 0 => continue,
                    _ if other.run != record.run || other.turn != record.turn => break,
                    RecordKind::TurnEnd { .. } => {
                        lines.push(line);
                        done = Some(lines.len());
                        end = place + 1;
                        break;
                    }
                    RecordKind::TurnStep { number: 9, .. } => {
                        lines.push(line);
                        done = Some(lines.len());
                        end = place + 1;
                        continue;
                    }
                    _ => lines.push(line),
                },
            }
            // After the ninth step only the end from outside still belongs to the turn.
            if done.is_none() {
                end = place + 1;
            }
        }
        lines.truncate(done.unwrap_or(lines.len()));
        Self { turn: record.turn, first, lines, end }
    }

    /// Returns the lines that the turn itself wrote, in two parts. The second begins with a record that was to be
    /// followed by what it reports, and that is lost; modes that were set from outside meanwhile may follow it.
    pub(super) fn recorded(
        &self,
        closing: Option<usize>,
    ) -> (&[&'a SealedLine<'a>], &[&'a SealedLine<'a>]) {
        let recorded = self.lines.get(..closing.unwrap_or(self.lines.len())).unwrap_or_default();
        let mut n_whole = recorded.len();
        for (place, line) in recorded.iter().enumerate().rev() {
            match is_torn(line) {
                true => n_whole = place,
                false if is_mode_from_outside(line) => {}
                false => break,
            }
        }
        recorded.split_at(n_whole)
    }

    /// Returns when and why the turn was ended from outside.
    pub(super) fn end_reason(&self) -> Option<(Timestamp, RunEnd)> {
        let last = self.lines.last()?;
        match &record(last)?.what {
            RecordKind::TurnEnd { reason, .. } => Some((last.timestamp(), end_of(reason))),
            _ => None,
        }
    }

    /// Returns where the lines begin that closed the turn from outside.
    pub(super) fn closing(&self, stream: EntropyStream, turn: u32) -> Option<usize> {
        let last = self.lines.last()?;
        let RecordKind::TurnEnd { .. } = record(last)?.what else { return None };
        let stream = stream.child("closing");
        let first_id = |line: &ConversationLine| {
            line.message.id == stream.entry_id(line.at, "entry", u64::from(turn) << 32 | 1)
        };
        let is_first = |line: &&'a SealedLine<'a>| conversation_line(line).is_some_and(first_id);
        // Without its name: the one that resumed the session closed it with another key. All lines
        // of a closing have one clock reading.
        let first = self.lines.iter().position(is_first).or_else(|| {
            let found = self.lines.iter().position(|it| {
                it.timestamp() == last.timestamp() && conversation_line(it).is_some()
            });
            found.filter(|it| {
                self.lines[*it..].iter().all(|line| line.timestamp() == last.timestamp())
            })
        });
        let Some(first) = first else { return Some(self.lines.len() - 1) };
        // The record of how a call ended is in front of its result. One that the turn itself wrote,
        // whose result was torn off, says more or has the torn line after it.
        let has_end = first.checked_sub(1).map(|it| self.lines[it]).is_some_and(|it| {
            let is_next =
                it.timestamp() == last.timestamp() && it.number + 1 == self.lines[first].number;
            is_next
                && matches!(
                    record(it).map(|it| &it.what),
                    Some(RecordKind::ToolEnd { notes: None, .. })
                )
        });
        Some(first - usize::from(has_end))
    }

    /// Compares the lines that closed the turn with what closes such a turn, and applies what they hold.
    pub(super) fn close(
        &self,
        first: usize,
        conversation: &mut Conversation,
        run: &Run,
    ) -> Result<(), ReplayError> {
        let lines = self.lines.get(first..).unwrap_or_default();
        let Some((last, RecordKind::TurnEnd { reason, at_step, in_doubt })) =
            lines.last().and_then(|it| Some((it, &record(it)?.what)))
        else {
            return Ok(());
        };
        let stream = conversation.stream.child(run.id.as_str());
        let denied = lines.iter().find_map(|it| match &record(it)?.what {
            RecordKind::Approval { call, by, .. } => Some((call, *by)),
            _ => None,
        });
        let open = OpenTurn {
            run: run.id.clone(),
            number: self.turn,
            stream,
            at_step: *at_step,
            history: conversation.history.clone(),
            last_entry: conversation.last_entry.clone(),
            committed: closed_outcomes(lines),
            ended: self.lines.iter().take(first).filter_map(|it| call_end(it)).collect(),
            asked: denied.map(|it| it.0.clone()),
            denial: DenialReason::from_answer(denied.and_then(|it| it.1)),
            in_doubt: *in_doubt,
        };
        let closing = close(open, last.timestamp(), end_of(reason));
        let is_ours = |line: &Line| match (line, lines.iter().find_map(|it| conversation_line(it)))
        {
            (Line::Conversation(made), Some(found)) => Some(made.message.id == found.message.id),
            _ => None,
        };
        // A turn that ended before its first record has its closing in front of it.
        let checked =
            1 < self.lines.len() && closing.append.lines.iter().find_map(is_ours).unwrap_or(true);
        if checked {
            let step = at_step.unwrap_or(Step::SettingsResolution);
            let mut made = closing.append.lines.iter();
            for line in lines {
                let differs = |(expected, found)| ReplayError::Differs {
                    line: line.number,
                    step,
                    expected,
                    found,
                };
                let made =
                    made.next().ok_or_else(|| differs((String::new(), excerpt(&line.line()))))?;
                if let Some(difference) = line.difference(made, &conversation.facts) {
                    return Err(differs(difference));
                }
            }
        }
        closing.append.lines.iter().take(lines.len()).for_each(|it| conversation.note(it));
        for line in lines.iter().filter_map(|it| conversation_line(it)) {
            conversation.apply(crate::turn::effect::HistoryUpdate::Message(line.message.clone()));
        }
        Ok(())
    }
}

/// The end that a code names.
fn end_of(code: &str) -> RunEnd {
    RunEnd::read(code).unwrap_or(RunEnd::Crashed)
}

/// The call whose end this records, with what went wrong.
fn call_end(line: &SealedLine<'_>) -> Option<(ToolUseId, Option<ToolErrorKind>)> {
    match &record(line)?.what {
        RecordKind::ToolEnd { call, error, .. } => Some((call.clone(), *error)),
        _ => None,
    }
}

/// Returns the outcomes of calls that a closing recorded.
pub(super) fn closed_outcomes(lines: &[&SealedLine<'_>]) -> BTreeMap<ToolUseId, ToolOutcome> {
    let outcome = |place: usize| {
        let RecordKind::ToolEnd { call, error, exit_code, duration_ms, sidechain, .. } =
            &record(lines.get(place)?)?.what
        else {
            return None;
        };
        let line = conversation_line(lines.get(place + 1)?)?;
        let (_, text, _) = line.message.blocks.first().and_then(Block::as_tool_result)?;
        let structured = line.tool_result.as_ref()?.structured.as_ref().map(|it| it.to_string());
        let mut notes = ends_shown(lines.get(place + 2..).unwrap_or_default());
        notes.extend(sidechain.iter().flat_map(SidechainHead::notes));
        let outcome = ToolOutcome {
            structured,
            error: *error,
            exit_code: *exit_code,
            duration_ms: *duration_ms,
            notes,
            ..ToolOutcome::ok(text)
        };
        Some((call.clone(), outcome))
    };
    (0..lines.len()).filter_map(outcome).collect()
}

/// Returns which ends of agents in the background a result shows, by the records after it.
fn ends_shown(lines: &[&SealedLine<'_>]) -> Vec<ToolNote> {
    let agents = lines.iter().map_while(|it| ended_agent(&record(it)?.what));
    agents.map(|it| it.end_note()).collect()
}

/// Whether more belongs after this record.
fn is_torn(line: &SealedLine<'_>) -> bool {
    match record(line).map(|it| &it.what) {
        // Of several handlers, or in front of a result.
        Some(RecordKind::ToolEnd { .. } | RecordKind::Hook { .. }) => true,
        Some(RecordKind::ModelAttempt { purpose, outcome, unsaid: None, .. }) => {
            purpose == "turn" && outcome == "ok"
        }
        // In front of what the hook did, or of how the call ended.
        Some(RecordKind::ModelAttempt { purpose, .. }) => {
            matches!(purpose.as_str(), "hook" | "synthesis")
        }
        _ => false,
    }
}

/// Whether the line records a mode that no call of the turn has set.
fn is_mode_from_outside(line: &SealedLine<'_>) -> bool {
    matches!(record(line).map(|it| &it.what), Some(RecordKind::Mode(ModeChange { call: None, .. })))
}

pub(super) fn record<'a>(line: &SealedLine<'a>) -> Option<&'a Record> {
    match line.line() {
        LineRef::Harness(record) => Some(record),
        LineRef::Conversation(_) => None,
    }
}

pub(super) fn conversation_line<'a>(line: &SealedLine<'a>) -> Option<&'a ConversationLine> {
    match line.line() {
        LineRef::Conversation(line) => Some(line),
        LineRef::Harness(_) => None,
    }
}
