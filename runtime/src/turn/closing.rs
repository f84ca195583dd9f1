//! Closes a turn that did not reach its end: interrupted, killed, crashed.
//!
//! Every open tool use gets an answer. A call that was past its point of no return is recorded as
//! what it did; of any other nothing is claimed but that it was interrupted. One `turn_end` record
//! says where and why.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    effect::{Append, HistoryUpdate},
    journal::Journal,
};
use crate::{
    approval::AnsweredBy,
    block::Block,
    entropy::EntropyStream,
    ids::{EntryId, RunId, ToolUseId},
    message::{Message, MessageKind},
    ports::agents::ends_shown,
    run::{RunEnd, history::History},
    step::Step,
    time::Timestamp,
    tool::{ToolErrorKind, ToolOutcome},
    transcript::{
        entry::{RecordKind, SidechainHead, ToolResultFields, UnconfirmedUsage},
        load::Ended,
    },
};

/// What represents a result whose line is lost.
const LOST: &str = "The result of this call is missing from the transcript. What it did is not known; \
                    it was not run again.";

/// A turn that is gone.
#[derive(Clone, Debug)]
pub struct OpenTurn {
    /// Id of the run that the turn belongs to.
    pub run: RunId,
    /// Counted from 1 within the run.
    pub number: u32,
    /// The key of all draws of the run.
    pub stream: EntropyStream,
    /// Where it was, if known.
    pub at_step: Option<Step>,
    /// The conversation, as far as it was recorded.
    pub history: History,
    /// The last conversation line.
    pub last_entry: Option<EntryId>,
    /// Outcomes of calls that could no longer be undone.
    pub committed: BTreeMap<ToolUseId, ToolOutcome>,
    /// Calls that are only to be given their results.
    pub ended: Ended,
    /// The call that somebody was asked about: it did not run.
    pub asked: Option<ToolUseId>,
    /// Why it is denied now.
    pub denial: DenialReason,
    /// Its model call, if that was under way and somebody counts it.
    pub in_doubt: Option<UnconfirmedUsage>,
}

/// Why a question ends with its turn. The model reads the words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DenialReason {
    /// The run was ended from outside.
    #[default]
    Interrupted,
    /// The process was killed, and the next one has no handler that could answer.
    NobodyLeft,
    /// The process was killed, and the time of the question was over when the session was opened again.
    Expired,
}

impl DenialReason {
    fn answered_by(self) -> AnsweredBy {
        match self {
            Self::Interrupted => AnsweredBy::Interrupt,
            Self::NobodyLeft => AnsweredBy::Nobody,
            Self::Expired => AnsweredBy::Expiry,
        }
    }

    /// Reads the reason from the record of it.
    pub(crate) fn from_answer(by: Option<AnsweredBy>) -> Self {
        match by {
            Some(AnsweredBy::Nobody) => Self::NobodyLeft,
            Some(AnsweredBy::Expiry) => Self::Expired,
            _ => Self::Interrupted,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Interrupted => {
                "the run was ended while permission was asked for; the call did not run"
            }
            Self::NobodyLeft => {
                "the process ended while permission was asked for, and nobody is there to answer \
                 now; the call did not run"
            }
            Self::Expired => "nobody answered in time; the call did not run",
        }
    }
}

/// The lines that close a turn.
#[derive(Debug)]
pub struct TurnClosing {
    /// To be written at once.
    pub append: Append,
    /// The answers in it.
    pub answered: Vec<ToolUseId>,
}

/// Returns the lines that close a turn which ended for this reason.
pub fn close(open: OpenTurn, at: Timestamp, end: RunEnd) -> TurnClosing {
    let OpenTurn { run, number, stream, at_step, history, last_entry, committed, ended, .. } = open;
    let OpenTurn { asked, denial, in_doubt, .. } = open;
    let mut journal = Journal::new(run, number, stream.child("closing"), last_entry);
    let mut answered = Vec::new();
    for (id, source) in open_calls(&history) {
        let outcome = match ended.get(&id) {
            Some(error) => lost(*error),
            None => {
                let outcome = match &asked {
                    Some(asked) if *asked == id => denied(denial),
                    _ => committed.get(&id).cloned().unwrap_or_else(interrupted),
                };
                let what = RecordKind::ToolEnd {
                    call: id.clone(),
                    error: outcome.error,
                    exit_code: outcome.exit_code,
                    duration_ms: outcome.duration_ms,
                    notes: None,
                    truncation: None,
                    sidechain: SidechainHead::of(&outcome.notes),
                };
                journal.record(at, what);
                outcome
            }
        };
        let structured = outcome.structured.as_deref().map(Into::into);
        journal.result(at, outcome.to_block(&id), ToolResultFields { structured, source });
        ends_shown(&outcome).for_each(|it| journal.record(at, it));
        answered.push(id);
    }
    if end == RunEnd::Interrupted {
        let id = journal.next_id(at);
        let blocks = vec![Block::text("[Request interrupted by user]")];
        journal.message(at, Message::user(id, MessageKind::Meta, blocks));
    }
    if let Some(call) = asked {
        let (allowed, reason) = (false, denial.words().to_owned());
        let (surface, input, rules) = (None, None, Vec::new());
        let by = Some(denial.answered_by());
        let interrupt = false;
        journal.record(
            at,
            RecordKind::Approval { call, allowed, reason, by, surface, input, rules, interrupt },
        );
    }
    journal.record(at, RecordKind::TurnEnd { reason: end.code().into(), at_step, in_doubt });
    journal.sync();
    let append = journal.take().map(|it| *it).unwrap_or_else(|| Append {
        lines: Vec::new(),
        stored: Vec::new(),
        title: None,
        ticket: 0,
        sync: true,
        is_awaited: false,
        updates: Vec::<HistoryUpdate>::new(),
    });
    TurnClosing { append, answered }
}

fn denied(denial: DenialReason) -> ToolOutcome {
    let text = format!("Permission denied: {}.", denial.words());
    ToolOutcome::failed(ToolErrorKind::PermissionDenied, text)
}

fn interrupted() -> ToolOutcome {
    let text = "Interrupted before it ended. Whether it had an effect is not known; \
                it was not run again.";
    ToolOutcome::failed(ToolErrorKind::Interrupted, text)
}

/// What is known of a call that ended as its record says.
fn lost(error: Option<ToolErrorKind>) -> ToolOutcome {
    let text = "The call ended and had its effect, if any. Its result was lost before it was \
                recorded; it was not run again.";
    ToolOutcome { error, ..ToolOutcome::ok(text) }
}

/// Makes results for calls that have none, wherever in the conversation they are; `None` when all have one. A run that
/// has ended asks for none of them again, but lines of it may be lost, and a stop check never ends a run while a call
/// is open.
pub fn answer_lost_calls<'a>(
    history: impl DoubleEndedIterator<Item = &'a Arc<Message>>,
    last_entry: Option<EntryId>,
    stream: EntropyStream,
    at: Timestamp,
) -> Option<Box<Append>> {
    let mut answered: BTreeSet<&ToolUseId> = BTreeSet::new();
    let mut lost: Vec<(ToolUseId, EntryId)> = Vec::new();
    for message in history.rev() {
        for block in message.blocks.iter().rev() {
            if let Some((id, ..)) = block.as_tool_result() {
                answered.insert(id);
            } else if let Some((id, ..)) = block.as_tool_use()
                && answered.insert(id)
            {
                lost.push((id.clone(), message.id.clone()));
            }
        }
    }
    let mut journal = Journal::new("".into(), 0, stream.child("lost"), last_entry);
    for (id, source) in lost.into_iter().rev() {
        let block = Block::tool_result(&id, LOST, true);
        journal.result(at, block, ToolResultFields { structured: None, source });
    }
    journal.sync();
    journal.take()
}

/// Tool uses of the last answer that have no result yet, with the line of the answer.
fn open_calls(history: &History) -> Vec<(ToolUseId, EntryId)> {
    let mut done: BTreeSet<&ToolUseId> = BTreeSet::new();
    let mut newest = history.iter().rev();
    let answer = newest.find(|message| {
        let results = message.blocks.iter().filter_map(Block::as_tool_result);
        done.extend(results.map(|(id, ..)| id));
        message.kind == MessageKind::Answer
    });
    let Some(answer) = answer else { return Vec::new() };
    let uses = answer.tool_uses().map(|(id, ..)| id).filter(|it| !done.contains(it));
    uses.map(|id| (id.clone(), answer.id.clone())).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{tool::ToolNote, transcript::entry::Line};

    fn open_turn(committed: BTreeMap<ToolUseId, ToolOutcome>) -> OpenTurn {
        let uses = ["a", "b", "c"].map(|id| Block::tool_use(&id.into(), &"Write".into(), "{}"));
        let answer = Message::answer("e1".into(), "msg", uses.to_vec());
        let result = vec![Block::tool_result(&"a".into(), "done", false)];
        let result = Message::user("e2".into(), MessageKind::ToolResults, result);
        OpenTurn {
            run: "r".into(),
            number: 1,
            stream: EntropyStream::from_seed(1),
            at_step: Some(Step::ToolExecution),
            history: [Arc::new(answer), Arc::new(result)].into_iter().collect(),
            last_entry: Some("e2".into()),
            committed,
            ended: BTreeMap::new(),
            asked: None,
            denial: DenialReason::default(),
            in_doubt: None,
        }
    }

    // REQ: SES-3, SES-9
    #[test]
    fn call_whose_end_is_on_record_is_given_a_result_and_no_second_end() {
        let ended = BTreeMap::from([("b".into(), None), ("c".into(), Some(ToolErrorKind::Failed))]);
        let closing =
            close(OpenTurn { ended, ..open_turn(BTreeMap::new()) }, Timestamp(5), RunEnd::Crashed);
        let failed: Vec<bool> = closing
            .append
            .updates
            .iter()
            .filter_map(|it| it.message()?.blocks.first()?.as_tool_result())
            .map(|(.., is_error)| is_error)
            .collect();
        assert_eq!(failed, [false, true]);
        let is_end = |it: &&Line| matches!(it, Line::Harness(record) if matches!(record.what, RecordKind::ToolEnd { .. }));
        assert_eq!(closing.append.lines.iter().filter(is_end).count(), 0);
        assert_eq!(closing.answered, ["b".into(), "c".into()]);
    }

    // REQ: SES-3, RUN-2
    #[test]
    fn open_calls_are_answered_and_what_is_done_is_recorded_as_done() {
        let committed = BTreeMap::from([("c".into(), ToolOutcome::ok("wrote it"))]);
        let closing = close(open_turn(committed), Timestamp(5), RunEnd::Interrupted);
        let texts: Vec<_> = closing
            .append
            .updates
            .iter()
            .filter_map(|updates| match updates {
                HistoryUpdate::Message(message) => message.blocks[0]
                    .as_tool_result()
                    .map(|it| (it.0.to_string(), it.2, it.1.contains("wrote it"))),
                _ => None,
            })
            .collect();
        assert_eq!(texts, [("b".to_owned(), true, false), ("c".to_owned(), false, true)]);
    }

    // REQ: AGT-8
    #[test]
    fn committed_result_that_shows_the_end_of_an_agent_has_the_record_of_it_after_it() {
        let note = ToolNote::BackgroundAgentEnded {
            agent: "a1".into(),
            call: "toolu_1".into(),
            description: "look about".into(),
            state: "completed".into(),
        };
        let outcome = ToolOutcome { notes: vec![note], ..ToolOutcome::ok("found") };
        let committed = BTreeMap::from([("c".into(), outcome)]);
        let closing = close(open_turn(committed), Timestamp(5), RunEnd::Interrupted);
        let lines = &closing.append.lines;
        let is_record = |it: &Line| matches!(it.record().map(|it| &it.what), Some(RecordKind::BackgroundAgent(it)) if it.state == "completed");
        let at = lines.iter().position(is_record).unwrap();
        assert!(matches!(&lines[at - 1], Line::Conversation(it) if it.message.text().is_empty()));
        assert_eq!(lines.iter().filter(|it| is_record(it)).count(), 1);
    }
}
