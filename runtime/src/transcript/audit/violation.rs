//! What can be wrong with a transcript. The codes are stable.

use crate::{
    digest::Digest,
    ids::{EntryId, ToolUseId},
};

/// The first thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
#[non_exhaustive]
pub struct Violation {
    /// Where, from 1. What is missing is named at the line where it should have been there.
    pub line: u64,
    /// The rule that was broken, with its particulars.
    pub what: ViolationKind,
}

macro_rules! wrong {
    ($($(#[doc = $doc:literal])* $name:ident $({ $($field:ident: $type:ty),* })?, $code:literal, $text:literal;)*) => {
        /// What is wrong with a line.
        #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
        #[non_exhaustive]
        pub enum ViolationKind {
            $($(#[doc = $doc])* #[error($text)] $name $({ $(#[expect(missing_docs, reason = "named by the text")] $field: $type),* })?,)*
        }

        impl ViolationKind {
            /// Returns a short name that does not change.
            pub fn code(&self) -> &'static str {
                match self {
                    $(Self::$name { .. } => $code,)*
                }
            }
        }
    };
}

wrong! {
    /// It is not a line and no `repair` record speaks of it.
    NotALine, "not_a_line", "no transcript line";
    /// An editor put a mark before the first line.
    ByteOrderMark, "byte_order_mark", "a byte order mark is before the first line";
    /// Somebody gave the lines the line ends of another system.
    CrLineEnds { count: u64 }, "cr_line_ends", "{count} lines end with a carriage return alone";
    /// An editor gave the lines the line ends of Windows.
    CrlfLineEnds { count: u64 }, "crlf_line_ends", "{count} lines end with a carriage return before their line feed (CRLF)";
    /// The last line is not whole.
    TornTail, "torn_tail", "the file ends within a line";
    /// The bytes are not those that were hashed.
    Altered, "altered", "the line was altered";
    /// Of lines that one hash covers one was altered, and its check sum with it.
    AlteredWithSum { to: u64 }, "altered_with_sum", "a line from here to line {to} was altered, its check sum with it";
    /// A line before it is missing, doubled or somewhere else.
    OutOfSequence { expected: u64, found: u64 }, "out_of_sequence", "line number {found} is where {expected} should be";
    /// It was sealed after another line.
    NotLinked, "not_linked", "the line does not follow the one before it";
    /// A conversation line or record that was not written here.
    ForeignLine { kind: String }, "foreign_line", "a line of type {kind} was not written by the harness";
    /// A record that this version does not know.
    UnknownRecord, "unknown_record", "a record of an unknown kind";
    /// A `repair` record that does not fit what is there.
    WrongRepair, "wrong_repair", "the repair record does not fit the bytes before it";
    /// A name that an earlier line has.
    DoubledId { id: EntryId }, "doubled_id", "the line {id} was there before";
    /// The parent is not an earlier line.
    UnknownParent, "unknown_parent", "the parent is not an earlier line";
    /// The session begins otherwise than with a prompt.
    NoPrompt, "no_prompt", "no prompt is in front";
    /// A run inside a run.
    RunInRun, "run_in_run", "a run begins before the last one has ended";
    /// A record of a run outside of it, a second end among them.
    OutsideRun, "outside_run", "this belongs to a run and none is open";
    /// A record that names another run or turn.
    WrongTurn, "wrong_turn", "this belongs to another run or turn";
    /// The step is not the one that comes next.
    WrongStep { expected: u8, found: u8 }, "wrong_step", "step {found} is where step {expected} should be";
    /// The detail is not that of the step.
    WrongDetail, "wrong_detail", "the record does not fit its step";
    /// Something that happens only at another point of a turn.
    OutOfPlace, "out_of_place", "this cannot be at this point of a turn";
    /// Attempts without a gap, causes for all but the first.
    WrongAttempt, "wrong_attempt", "the model attempts do not follow one another";
    /// The count is not that of the lines.
    WrongCount { of: &'static str, recorded: u64, counted: u64 }, "wrong_count", "{recorded} {of} recorded, {counted} counted";
    /// The shapers ran in another order than cheapest first.
    ShaperOrder, "shaper_order", "a cheaper shaper comes after a dearer one";
    /// No answer although the model call succeeded, or the other way round.
    WrongAnswer, "wrong_answer", "answer and model call do not agree";
    /// More than one reactive compaction in a turn.
    SecondCompaction, "second_compaction", "a second reactive compaction in one turn";
    /// A compaction boundary without the summary after it.
    NoSummary, "no_summary", "no summary follows the compaction boundary";
    /// Nothing asked for this.
    UnknownCall { call: ToolUseId }, "unknown_call", "no tool use {call} is open";
    /// A call was decided about a second time.
    SecondDecision { call: ToolUseId }, "second_decision", "{call} was decided about twice";
    /// A call ran without a decision.
    NoDecision { call: ToolUseId }, "no_decision", "{call} was not decided about";
    /// A call ran although it was denied.
    NotAllowed { call: ToolUseId }, "not_allowed", "{call} was not allowed";
    /// What was decided about is not what the model asked for or what ran.
    WrongDigest { call: ToolUseId }, "wrong_digest", "the digest of {call} is another one";
    /// The tool is another one.
    WrongTool { call: ToolUseId }, "wrong_tool", "{call} is for another tool";
    /// A second result, or a second end.
    SecondResult { call: ToolUseId }, "second_result", "{call} has a second result";
    /// A call has no result when its turn ends.
    NoResult { call: ToolUseId }, "no_result", "{call} has no result";
    /// Results in another order than the tool uses.
    ResultOrder { call: ToolUseId }, "result_order", "the result of {call} comes before an earlier one";
    /// The stop check says otherwise.
    WrongStop { recorded: String, computed: String }, "wrong_stop", "step 9 says {recorded}, the conversation says {computed}";
    /// The run's end does not follow from its last turn.
    WrongEnd, "wrong_end", "the end of the run does not follow from its last turn";
    /// The run's end does not name the record before it.
    WrongHead, "wrong_head", "the end of the run names another head";
    /// The file ends before the run does.
    NoEnd, "no_end", "the run has no end";
    /// Whole lines are missing at the end.
    CutOff { seq: u64 }, "cut_off", "the transcript was cut off: the .checkpoint next to it knows its line number {seq}; remove that file if you put another transcript here yourself";
    /// The end was taken away and another one written.
    NotAsClosed, "not_as_closed", "the .checkpoint next to the transcript knows another line of this number; remove that file if you put another transcript here yourself";
    /// A text that is named is not there.
    NoText { digest: Digest }, "no_text", "the stored text {digest} is missing";
    /// A text that is named is another one.
    WrongText { digest: Digest }, "wrong_text", "the stored text {digest} was altered";
    /// The sub-agent's file ends otherwise.
    WrongSidechain, "wrong_sidechain", "the sub-agent's transcript ends with another hash";
    /// A check from outside.
    Other { why: String }, "other", "{why}";
}
