//! Loading a transcript, however damaged, to go on with it.
//!
//! What cannot be read is passed over and reported; the links are followed from the newest message
//! to the root or to the last compaction; what is left is made into a conversation that a model
//! accepts. Nothing is written here, and no permission is ever taken over.

mod background;
mod chain;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod cut;
mod indexed;
mod lines;
mod loader;
mod order;
mod recorded_state;
pub mod repair;
pub mod report;
mod seen_files;
mod skills;
mod tail;
mod tasks;
mod used;

use std::collections::BTreeMap;

use order::Placed;
use serde::{Deserialize, Serialize};

use crate::{
    approval::QuestionCounts,
    ids::{EntryId, RunId, ToolName, ToolUseId},
    message::Messages,
    run::{RunEnd, Sender},
    step::Step,
    time::Timestamp,
    tokens::Usage,
    tool::ToolErrorKind,
    transcript::entry::ShownPart,
    transcript::{
        entry::{MessageRecord, Stored},
        read::{NotALine, read_line},
    },
};

pub(crate) use background::ASKS;
pub use background::BackgroundTasks;
pub use cut::load_until;
pub use indexed::{IndexedLoad, TranscriptIndex};
pub(in crate::transcript) use lines::BYTE_ORDER_MARK;
pub(crate) use loader::Loader;
use loader::TranscriptSums;
pub(crate) use recorded_state::RecordedState;
pub use report::{Report, ReportKind};
pub use tail::{Tail, Torn, ends_of_runs, tail};
pub use used::UsageTotals;

/// Calls whose end is on record and whose result is not, with what went wrong: the file was torn
/// between the two.
pub type Ended = BTreeMap<ToolUseId, Option<ToolErrorKind>>;

/// Which lines are the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LoadAs {
    /// Those of the session; lines of sub-agents are left out.
    Session,
    /// The lines of a sub-agent.
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
    /// Calls without a result, oldest first. The one that goes on with the session records an
    /// answer for each.
    pub open: Vec<OpenCall>,
    /// A run that has no end yet.
    pub open_run: Option<OpenRun>,
    /// The newest conversation line, to link the next one to.
    pub last: Option<EntryId>,
    /// What of the context was appended to the conversation, oldest first.
    pub appended: Vec<ShownPart>,
    /// What a session goes on with in addition to the messages.
    pub(crate) state: RecordedState,
    /// What is in the background, and of whose end the model has not learned.
    pub background: BackgroundTasks,
    /// Where the next line goes.
    pub tail: Tail,
}

impl Loaded {
    /// Returns how its last run ended, `None` while none has.
    pub fn last_end(&self) -> Option<RunEnd> {
        self.state.last_end
    }

    /// Returns the messages for the agent that its conversation does not show yet, oldest first.
    pub fn unread(&self) -> &[MessageRecord] {
        &self.state.unread
    }

    /// Returns the usage of the whole file.
    pub fn used(&self) -> &UsageTotals {
        &self.state.used
    }
}

/// A call without a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCall {
    /// Id of the tool use, as the model issued it.
    pub call: ToolUseId,
    /// Name of the tool that the call uses.
    pub tool: ToolName,
    /// The line of the answer that asked for it.
    pub line: EntryId,
}

/// A run that has no end yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenRun {
    /// Id of the run that was open.
    pub run: RunId,
    /// Number of turns that had begun.
    pub turn: u32,
    /// The last step on record of a turn that has not ended; `None` between turns.
    pub step: Option<Step>,
    /// Calls of that turn whose end is on record, with what went wrong.
    pub ended: Ended,
    /// The question of that turn that has no answer, and when it expires.
    pub asked: Option<(ToolUseId, Timestamp)>,
    /// The line of its prompt.
    pub prompt: EntryId,
    /// What its turns have after the system prompt.
    pub system: Option<Stored>,
    /// Who asked for it.
    pub sender: Option<Sender>,
    /// What its own model calls used.
    pub usage: Usage,
    /// Calls that were denied.
    pub denied: Vec<ToolUseId>,
    /// Questions that it asked.
    pub questions: QuestionCounts,
    /// Whether the turn goes on with the calls of an earlier one, and has not decided about them.
    pub is_carried: bool,
}

impl OpenRun {
    pub(super) fn new(
        run: RunId,
        prompt: EntryId,
        system: Option<Stored>,
        sender: Option<Sender>,
    ) -> Self {
        Self {
            run,
            turn: 0,
            step: None,
            ended: Ended::new(),
            asked: None,
            prompt,
            system,
            sender,
            usage: Usage::default(),
            denied: Vec::new(),
            questions: QuestionCounts::default(),
            is_carried: false,
        }
    }
}

/// Loads a whole file.
pub fn load(bytes: &[u8], load_as: LoadAs) -> Loaded {
    let mut report = Vec::new();
    let mut readable = Vec::new();
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
        readable.push(Placed { number: line.number, read });
    }
    let mut loader = Loader::new(load_as);
    for Placed { number, read } in order::settle(readable, &mut report) {
        loader.take(number, &read, &mut report);
    }
    finished(loader, report, tail(bytes, 0))
}

/// Puts together what was found in all lines.
fn finished(loader: Loader, mut report: Vec<Report>, tail: Tail) -> Loaded {
    let Loader { nodes, sums, .. } = loader;
    let TranscriptSums { state, background, appended, open_run } = sums;
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
        appended,
        state,
        background,
        tail,
    }
}

#[cfg(test)]
mod tests;
