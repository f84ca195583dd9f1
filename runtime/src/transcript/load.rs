//! Loading a transcript, however damaged, to go on with it.
//!
//! What cannot be read is passed over and reported; the links are followed from the newest message
//! to the root or to the last compaction; what is left is made into a conversation that a model
//! accepts. Nothing is written here, and no permission is ever taken over.

mod chain;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod lines;
pub mod repair;
pub mod report;
mod tail;
mod used;

use crate::{
    ids::{EntryId, RunId, ToolName, ToolUseId},
    message::Messages,
    step::Step,
    transcript::{
        entry::{Record, What},
        read::{Entry, NotALine, read_line},
    },
    turn::Ended,
};

pub use report::{Report, ReportKind};
pub use tail::{Tail, Torn, tail};
pub use used::Used;

/// Which lines are the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadAs {
    /// Those of the session; lines of sub-agents are left out.
    Session,
    /// Those of a sub-agent.
    Sidechain,
}

/// A conversation to go on with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// What a model accepts: from the last compaction on, roles in turn, every call answered.
    pub messages: Messages,
    /// The same as it was recorded: one message per line, marks included, nothing made up.
    pub recorded: Messages,
    /// What was found wrong on the way.
    pub report: Vec<Report>,
    /// Calls without a result, oldest first. Whoever goes on with the session records an answer
    /// for each.
    pub open: Vec<OpenCall>,
    /// A run that has no end yet.
    pub open_run: Option<OpenRun>,
    /// The newest conversation line, to link the next one to.
    pub last: Option<EntryId>,
    /// Of the whole file.
    pub used: Used,
    /// Where the next line goes.
    pub tail: Tail,
}

/// A call without a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCall {
    /// The call.
    pub call: ToolUseId,
    /// The tool.
    pub tool: ToolName,
    /// The line of the answer that asked for it.
    pub line: EntryId,
}

/// A run that has no end yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRun {
    /// Which.
    pub run: RunId,
    /// Turns begun.
    pub turn: u32,
    /// The last step on record of a turn that has not ended; `None` between turns.
    pub step: Option<Step>,
    /// Calls of that turn whose end is on record, with what went wrong.
    pub ended: Ended,
}

/// Loads a whole file.
pub fn load(bytes: &[u8], load_as: LoadAs) -> Loaded {
    let mut report = Vec::new();
    let mut nodes = chain::Nodes::default();
    let mut used = Used::default();
    let mut open_run = None;
    for line in lines::split(bytes, &mut report) {
        let read = match read_line(&line.text) {
            Ok(read) => read,
            Err(_) if !line.terminated => {
                report.push(Report::at(ReportKind::TornTail, line.number));
                continue;
            }
            Err(NotALine::Json(_)) => {
                report.push(Report::at(ReportKind::BadLine, line.number));
                continue;
            }
            Err(NotALine::Record { .. }) => {
                report.push(Report::at(ReportKind::BadRecord, line.number));
                continue;
            }
        };
        if !line.terminated {
            report.push(Report::at(ReportKind::UnterminatedLastLine, line.number));
        }
        match read.entry {
            Entry::Harness(record) => {
                used.note(&record);
                follow_run(&mut open_run, *record);
            }
            Entry::Conversation { line: said, sidechain, bad_blocks } => {
                if bad_blocks != 0 {
                    report.push(Report::counted(ReportKind::BadBlock, line.number, bad_blocks));
                }
                if sidechain == (load_as == LoadAs::Sidechain) {
                    used.said(&said);
                    nodes.add_said(line.number, *said, &mut report);
                }
            }
            Entry::Other { id: Some(id), parent, sidechain, .. } => {
                if sidechain == (load_as == LoadAs::Sidechain) {
                    nodes.add_other(id, parent);
                }
            }
            Entry::Other { id: None, .. } => {}
        }
    }
    let last = nodes.last();
    let recorded = nodes.conversation(&mut report);
    let repaired = repair::repair(&recorded);
    report.extend(repaired.report);
    if repaired.messages.is_empty() && report.is_empty() {
        report.push(Report::of(ReportKind::Empty));
    }
    Loaded {
        messages: repaired.messages,
        recorded,
        report,
        open: repaired.open,
        open_run,
        last,
        used,
        tail: tail(bytes, 0),
    }
}

fn follow_run(open: &mut Option<OpenRun>, record: Record) {
    match record.what {
        What::RunStart { .. } => {
            let begun = |run| OpenRun { run, turn: 0, step: None, ended: Ended::new() };
            *open = record.run.map(begun);
        }
        What::TurnStep { step, .. } => {
            if let Some(open) = open {
                open.turn = record.turn;
                open.step = (step != Step::StopCheck).then_some(step);
                if step == Step::SettingsResolution {
                    open.ended.clear();
                }
            }
        }
        What::ToolEnd { call, error, .. } => {
            if let Some(open) = open {
                open.ended.insert(call, error);
            }
        }
        What::TurnEnd { .. } => {
            if let Some(open) = open {
                open.step = None;
            }
        }
        What::RunEnd { .. } => *open = None,
        _ => {}
    }
}
