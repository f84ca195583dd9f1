//! What loading found wrong. The codes are stable.

use serde::{Deserialize, Serialize};

/// One thing that was wrong, and how it was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// What.
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

/// What was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReportKind {
    /// There is nothing.
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
    /// Zero bytes; taken out.
    NulBlock,
    /// Bytes that are no UTF-8; replaced.
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
    /// A result beside the chain whose call is in it; taken in.
    AdoptedResult,
    /// A piece of an answer beside the chain that holds the rest of it; taken in.
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
