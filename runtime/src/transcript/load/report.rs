//! What loading found wrong. The codes are stable.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One thing that was wrong, and how it was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// What was wrong, by its kind.
    pub kind: ReportKind,
    /// The line, from 1, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// How many, if it is about several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

impl Report {
    pub(super) fn of(kind: ReportKind) -> Self {
        Self { kind, line: None, count: None }
    }

    pub(super) fn at(kind: ReportKind, line: u64) -> Self {
        Self { line: Some(line), ..Self::of(kind) }
    }

    pub(super) fn counted(kind: ReportKind, line: u64, count: u64) -> Self {
        Self { count: Some(count), ..Self::at(kind, line) }
    }
}

/// For people: the place, and what was done about it.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        f.write_str(self.kind.words())?;
        match self.count {
            Some(count) => write!(f, " ({count} of them)"),
            None => Ok(()),
        }
    }
}

/// What can be wrong with a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReportKind {
    /// The file has no lines.
    Empty,
    /// No JSON; passed over.
    BadLine,
    /// JSON without what its type needs; passed over.
    BadRecord,
    /// Blocks of a message that could not be read; left out.
    BadBlock,
    /// The last line is not whole; passed over.
    TornTail,
    /// The last line is whole and lacks its newline; kept.
    UnterminatedLastLine,
    /// A line was changed after it was written; taken as far as it can be read.
    Altered,
    /// Lines before this one are not there or cannot be read.
    MissingLines,
    /// Lines were moved; taken in the order in which they were written.
    Reordered,
    /// The numbers of lines do not rise, and their hashes do not give the order; taken as they are.
    Misplaced,
    /// Lines end with a carriage return; read without it.
    CrlfLineEnds,
    /// Lines end with a carriage return and no line feed; read one by one.
    CrLineEnds,
    /// A byte order mark at the beginning; left out.
    ByteOrderMark,
    /// Zero bytes; taken out.
    NulBlock,
    /// Bytes that are not UTF-8; replaced.
    #[serde(rename = "invalid_utf8")]
    InvalidUtf8,
    /// A line that was there before; passed over.
    DuplicateId,
    /// Another line with the name of an earlier one; passed over.
    DuplicateIdConflict,
    /// The parent is not there; linked to the message before.
    BrokenLink,
    /// The links run in a ring; linked to the message before.
    Cycle,
    /// Branches that are not part of the conversation; left out.
    Fork,
    /// A compaction that was not finished; without effect.
    BoundaryWithoutSummary,
    /// What a compaction preserved cannot be followed; left out.
    BrokenBoundary,
    /// A result next to the chain whose call is in it; taken in.
    AdoptedResult,
    /// A piece of an answer next to the chain that holds the rest of it; taken in.
    AdoptedAnswer,
    /// Reasoning without signature; left out.
    UnsignedThinking,
    /// A last answer of reasoning alone; left out.
    ThinkingOnlyDropped,
    /// Answers before the first prompt; left out.
    LeadingAssistantDropped,
    /// A call without result; one that says so was made up.
    OrphanToolUse,
    /// A second result; left out.
    DuplicateToolResult,
    /// A result without call; left out.
    OrphanToolResult,
}

impl ReportKind {
    fn words(self) -> &'static str {
        match self {
            Self::Empty => "it is empty",
            Self::BadLine => "a line is not JSON; it is passed over",
            Self::BadRecord => "a line lacks what its type needs; it is passed over",
            Self::BadBlock => "blocks of a message cannot be read; they are left out",
            Self::TornTail => "the last line is not whole; it is passed over",
            Self::UnterminatedLastLine => "the last line lacks its line end",
            Self::Altered => "the line was changed after it was written; it is read as it is",
            Self::MissingLines => "lines before it are missing or cannot be read",
            Self::Reordered => {
                "lines were moved from here on; they are taken in the order in which they were written"
            }
            Self::Misplaced => "lines are out of order from here on; they are taken as they are",
            Self::CrlfLineEnds => "lines end with a carriage return, which is left out",
            Self::CrLineEnds => "lines end with a carriage return alone; they are read one by one",
            Self::ByteOrderMark => "a byte order mark before it is left out",
            Self::NulBlock => "zero bytes are taken out",
            Self::InvalidUtf8 => "bytes that are not UTF-8 are replaced",
            Self::DuplicateId => "a line was there before; it is passed over",
            Self::DuplicateIdConflict => {
                "another line has the name of an earlier one; it is passed over"
            }
            Self::BrokenLink => "the line before is not there; it is linked to the message before",
            Self::Cycle => "links run in a ring; the line is linked to the message before",
            Self::Fork => "branches outside of the conversation are left out",
            Self::BoundaryWithoutSummary => "a compaction was not finished; it is without effect",
            Self::BrokenBoundary => {
                "what a compaction preserved cannot be followed; it is left out"
            }
            Self::AdoptedResult => "a result outside of the chain is taken in",
            Self::AdoptedAnswer => "a piece of an answer outside of the chain is taken in",
            Self::UnsignedThinking => "reasoning without a signature is left out",
            Self::ThinkingOnlyDropped => "a last answer of reasoning alone is left out",
            Self::LeadingAssistantDropped => "answers before the first prompt are left out",
            Self::OrphanToolUse => "a call has no result; one that says so stands for it",
            Self::DuplicateToolResult => "a second result is left out",
            Self::OrphanToolResult => "a result without a call is left out",
        }
    }
}
